// Small poker games for two: cards, chips, actions. Each game supplies `read` for its positions.

import { calm, el, replace, svg, wait } from "/app/dom.js";

export const RANKS = ["jack", "queen", "king"];
const SUITS = {
  spade:
    "M12 2C9 7 3 9.5 3 14.2c0 2.6 2 4.3 4.3 4.3 1.5 0 2.8-.7 3.6-1.8-.1 2-.8 3.7-2.1 5.3h6.4c-1.3-1.6-2-3.3-2.1-5.3.8 1.1 2.1 1.8 3.6 1.8 2.3 0 4.3-1.7 4.3-4.3C21 9.5 15 7 12 2Z",
  heart:
    "M12 21C6 16 2.5 12.6 2.5 8.4 2.5 5.3 4.8 3 7.6 3 9.4 3 11 4 12 5.7 13 4 14.6 3 16.4 3c2.8 0 5.1 2.3 5.1 5.4C21.5 12.6 18 16 12 21Z",
};
const MOVE_MS = 450;

// `read(state)` returns { cards: [card, card], table: card or null, chips: [n, n], rounds: [[action]] }
// where a card is { rank, suit }; `called(history, action)` is an action's name after the earlier
// actions of its round; `price(position, seat, action)` the chips that it costs; `keys` letters
// by action name.
export function pokerPage({ rules, read, called, price, keys }) {
  const nameOf = (state, action) => called(read(state).rounds.at(-1), action);
  return {
    rules,
    actionName: nameOf,
    make: (host, session) => new PokerTable(host, session, { read, called, nameOf, price, keys }),
    describe(before, { seats, actions }, after, session) {
      const lines = [`${session.nameOf(seats[0])}: ${nameOf(before, actions[0])}`];
      const [was, now] = [read(before), read(after)];
      if (now.table && !was.table) lines.push(`the table's card is a ${RANKS[now.table.rank]}`);
      if (after.over && after.end === "showdown") {
        const shown = now.cards.map(({ rank }, seat) => `${session.nameOf(seat)} a ${RANKS[rank]}`);
        lines.push(`showdown: ${shown.join(", ")}`);
      }
      return lines;
    },
    score(state, seat) {
      if (!state.over) return `${counted(read(state).chips[seat])} in`;
      const won = state.scores[seat];
      return won > 0 ? `+${won}` : String(won);
    },
    result(state, session) {
      const won = Math.max(...state.scores);
      const how = state.end === "fold" ? "Folded" : "Showdown";
      if (won === 0) return `${how}: the pot is shared`;
      const winner = state.scores.indexOf(won);
      const who = winner === session.person ? "you win" : `${session.nameOf(winner)} wins`;
      return `${how}: ${who} ${counted(won)}`;
    },
  };
}

function counted(chips) {
  return `${chips} chip${chips === 1 ? "" : "s"}`;
}

class PokerTable {
  constructor(host, session, how) {
    Object.assign(this, { session, ...how });
    this.ask = null;
    this.focused = false;
    this.seats = [0, 1].map((seat) => this.makeSeat(seat));
    this.middle = el("div", { class: "poker-middle" });
    this.choices = el("div", { class: "poker-choices", role: "group", "aria-label": "Your move" });
    const bottom = Math.max(session.person, 0);
    host.append(
      el(
        "div",
        { class: "poker-felt" },
        this.seats[1 - bottom].element,
        this.middle,
        this.seats[bottom].element,
      ),
      this.choices,
    );
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  makeSeat(seat) {
    const card = el("div", { class: "poker-card-place" });
    const chips = el("div", { class: "poker-chips" });
    const lastAction = el("span", { class: "poker-action" });
    const name = el("span", { class: "poker-name" }, this.session.nameOf(seat));
    const words = el("div", { class: "poker-words" }, name, lastAction);
    const element = el("div", { class: "poker-seat", "data-seat": seat }, words, card, chips);
    return { element, card, chips, lastAction };
  }

  show(state, ask) {
    const at = this.read(state);
    this.ask = ask;
    this.seats.forEach(({ element, card, chips, lastAction }, seat) => {
      element.classList.toggle("to-move", state.seat() === seat);
      element.classList.toggle("won", state.over && state.scores[seat] > 0);
      const open = this.session.sees(seat);
      replace(card, drawCard(open ? at.cards[seat] : null));
      card.setAttribute("aria-label", open ? RANKS[at.cards[seat].rank] : "a hidden card");
      card.setAttribute("role", "img");
      replace(chips, drawChips(at.chips[seat], seat), el("small", {}, counted(at.chips[seat])));
      lastAction.textContent = lastActionName(at, seat, this.nameAfter(at));
    });
    this.showMiddle(at);
    this.showChoices(state, at, ask);
  }

  // Name of an action in a round, given the actions before it.
  nameAfter(at) {
    return (round, turn) => this.called(at.rounds[round].slice(0, turn), at.rounds[round][turn]);
  }

  showMiddle(at) {
    const all = at.chips[0] + at.chips[1];
    const card =
      at.table === undefined
        ? null
        : el(
            "div",
            {
              class: "poker-card-place",
              role: "img",
              "aria-label": at.table ? `on the table: ${RANKS[at.table.rank]}` : "a card face down",
            },
            drawCard(at.table),
          );
    replace(this.middle, card, el("span", { class: "poker-pot" }, `pot ${all}`));
  }

  showChoices(state, at, ask) {
    this.noteFocus();
    replace(
      this.choices,
      (ask?.legal ?? []).map((action) => {
        const name = this.nameOf(state, action);
        const cost = this.price(at, state.seat(), action);
        const title = name[0].toUpperCase() + name.slice(1);
        return el(
          "button",
          {
            type: "button",
            "data-action": action,
            "aria-keyshortcuts": this.keys[name],
            onclick: () => this.session.choose(action),
          },
          cost ? `${title} ${cost}` : title,
          el("kbd", { "aria-hidden": "true" }, this.keys[name]),
        );
      }),
    );
    if (!this.focused || !ask) return;
    this.focused = false;
    this.choices.firstElementChild.focus({ preventScroll: true });
  }

  // Buttons are replaced at every decision; keyboard focus stays on them.
  noteFocus() {
    this.focused ||= this.choices.contains(document.activeElement);
  }

  async animate(before, { seats, actions }, after) {
    const [seat] = seats;
    const { lastAction, chips, element } = this.seats[seat];
    const now = this.read(after);
    this.noteFocus();
    replace(this.choices);
    lastAction.textContent = this.nameOf(before, actions[0]);
    element.classList.remove("to-move");
    replace(chips, drawChips(now.chips[seat], seat), el("small", {}, counted(now.chips[seat])));
    if (seat === this.session.person || calm()) return;
    lastAction.classList.add("fresh");
    await wait(MOVE_MS);
    lastAction.classList.remove("fresh");
  }

  mark(action) {
    this.choices.querySelector(`[data-action="${action}"]`)?.classList.add("hinted");
  }

  key(event) {
    if (!this.ask || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea")) return;
    const { state } = this.session;
    const action = this.ask.legal.find((a) => this.keys[this.nameOf(state, a)] === event.key);
    if (action !== undefined) this.session.choose(action);
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
  }
}

// A seat's last action in the current round, or in the previous one while the current is empty.
function lastActionName(at, seat, nameAfter) {
  const round = at.rounds.at(-1).length > 0 ? at.rounds.length - 1 : at.rounds.length - 2;
  if (round < 0) return "";
  const turns = at.rounds[round].map((_, turn) => turn).filter((turn) => turn % 2 === seat);
  return turns.length ? nameAfter(round, turns.at(-1)) : "";
}

function drawCard(card) {
  if (!card) {
    return svg(
      "svg",
      { class: "poker-card back", viewBox: "0 0 60 84", "aria-hidden": "true" },
      svg("rect", { x: 1, y: 1, width: 58, height: 82, rx: 6 }),
      svg("rect", { class: "weave", x: 6, y: 6, width: 48, height: 72, rx: 3 }),
      svg("path", { class: "weave", d: "M6 42 30 6 54 42 30 78ZM18 42 30 24 42 42 30 60Z" }),
    );
  }
  const letter = RANKS[card.rank][0].toUpperCase();
  const corner = (turn) =>
    svg(
      "g",
      turn ? { transform: "rotate(180 30 42)" } : {},
      svg("text", { x: 10, y: 17, "text-anchor": "middle" }, letter),
      svg("path", { d: SUITS[card.suit], transform: "translate(5.5 20) scale(.38)" }),
    );
  return svg(
    "svg",
    { class: `poker-card ${card.suit}`, viewBox: "0 0 60 84", "aria-hidden": "true" },
    svg("rect", { x: 1, y: 1, width: 58, height: 82, rx: 6 }),
    svg("text", { class: "figure", x: 30, y: 54, "text-anchor": "middle" }, letter),
    corner(false),
    corner(true),
  );
}

function drawChips(count, seat) {
  const pile = Array.from({ length: count }, (_, at) => {
    const [x, y] = [16 + 30 * Math.floor(at / 5), 60 - 8 * (at % 5)];
    return svg(
      "g",
      {},
      svg("ellipse", { cx: x, cy: y + 4, rx: 13, ry: 7.5, class: "chip-side" }),
      svg("ellipse", { cx: x, cy: y, rx: 13, ry: 7.5 }),
      svg("ellipse", { cx: x, cy: y, rx: 8.5, ry: 4.6, class: "chip-ring" }),
    );
  });
  const width = 32 + 30 * Math.max(0, Math.ceil(count / 5) - 1);
  return svg(
    "svg",
    { class: `chip-pile seat-${seat}`, viewBox: `0 0 ${width} 74`, "aria-hidden": "true" },
    pile,
  );
}
