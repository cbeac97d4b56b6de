// Decisions of a person in Kuhhandel: turns, bids, answers, and piles of notes.

import { el } from "/app/dom.js";
import {
  ACTION,
  KINDS,
  NOTES,
  VALUES,
  cardsIn,
  counted,
  nameOf,
  tradeOf,
  worth,
} from "/games/kuhhandel/reading.js";
import { bidActions, bidRange, pileActions } from "/games/kuhhandel/wishes.js";
import { animal, note } from "/games/kuhhandel/wares.js";
import { capital } from "/games/kuhhandel/words.js";

function choice(action, words, onclick, more = {}) {
  const { note: small = null, picture = null, kind = "", ...rest } = more;
  return el(
    "button",
    { type: "button", class: `kh-choice ${kind}`, "data-action": action, onclick, ...rest },
    picture,
    el("span", {}, el("b", {}, words), small ? el("small", {}, small) : null),
  );
}

// Auction or trade.
export function turnChoices(session, at, ask, act) {
  const trades = ask.legal.filter((action) => action !== ACTION.auction);
  const buttons = trades.map((action) => {
    const { seat, kind, stake } = tradeOf(at, action);
    const two = stake === 2 ? "two for two" : `${at.animals[at.actor][kind]} of yours`;
    return choice(
      action,
      `${capital(KINDS[kind])} with ${nameOf(session, seat)}`,
      () => act([action]),
      {
        picture: animal(kind, { title: false }),
        note: `${two}, worth ${VALUES[kind]}`,
      },
    );
  });
  if (ask.legal.includes(ACTION.auction)) {
    const left = `${counted(at.deckLeft, "card")} left`;
    const auction = choice(ACTION.auction, "Auction", () => act([ACTION.auction]), {
      note: left,
      kind: "main",
    });
    buttons.unshift(auction);
  }
  const words = ask.legal.includes(ACTION.auction)
    ? trades.length > 0
      ? "Your turn: auction the next animal, or trade."
      : "Your turn: auction the next animal."
    : "Your turn: the deck is empty, so you trade.";
  return { words, inside: [el("div", { class: "kh-buttons" }, buttons)] };
}

export function plainChoices(session, at, ask, act) {
  const button = (action, words, more) => choice(action, words, () => act([action]), more);
  if (at.phase === "decide") {
    const buyer = nameOf(session, at.highBidder);
    const able = ask.legal.includes(ACTION.buy);
    const funds = worth(at.money[at.actor]);
    return {
      words: `The highest bid is ${at.highBid}, by ${buyer}.`,
      inside: [
        el(
          "div",
          { class: "kh-buttons" },
          button(ACTION.sell, `Sell for ${at.highBid}`, { note: `to ${buyer}`, kind: "main" }),
          button(ACTION.buy, `Buy for ${at.highBid}`, {
            note: able ? `you pay ${buyer}` : `you have only ${funds}`,
            disabled: !able,
          }),
        ),
      ],
    };
  }
  const challenger = nameOf(session, at.turn);
  const notes = counted(cardsIn(at.offer), "note");
  const stake = counted(at.stake, KINDS[at.traded]);
  return {
    words: `${capital(challenger)} offers ${notes} for your ${stake}.`,
    inside: [
      el(
        "div",
        { class: "kh-buttons" },
        button(ACTION.accept, `Take the ${cardsIn(at.offer) === 1 ? "note" : "notes"}`, {
          note: `and give ${stake}`,
        }),
        button(ACTION.counter, "Counter", { note: "lay down notes too", kind: "main" }),
      ),
    ],
  };
}

// To bid: the amount can be stepped or typed.
export class BidBox {
  constructor(state, act, { preset = null } = {}) {
    this.state = state;
    this.act = act;
    this.range = bidRange(state);
    this.amount = preset ?? this.range.low;
    this.field = el("input", {
      type: "text",
      inputmode: "numeric",
      autocomplete: "off",
      class: "kh-amount",
      "aria-label": "your bid",
      oninput: () => this.typed(),
      onkeydown: (event) => event.key === "Enter" && this.bid(),
    });
    this.button = el("button", {
      type: "button",
      class: "kh-choice main kh-bid",
      onclick: () => this.bid(),
    });
    this.warning = el("p", { class: "kh-warning", role: "status" });
    const more = [10, 50, 100].map((by) =>
      el(
        "button",
        { type: "button", class: "kh-step", onclick: () => this.set(this.amount + by) },
        `+${by}`,
      ),
    );
    const less = el(
      "button",
      { type: "button", class: "kh-step", onclick: () => this.set(this.amount - 10) },
      "-10",
    );
    const pass = choice(ACTION.pass, "Pass", () => act([ACTION.pass]));
    const bidding = state.legal().includes(ACTION.pass);
    this.inside = [
      el(
        "div",
        { class: "kh-buttons" },
        less,
        this.field,
        more,
        this.button,
        bidding ? pass : null,
      ),
      this.warning,
    ];
    this.set(this.amount);
  }

  set(amount) {
    this.amount = Math.max(this.range.low, Math.min(this.range.high, amount));
    this.field.value = String(this.amount);
    this.update();
  }

  typed() {
    this.amount = Number(this.field.value);
    this.update();
  }

  update() {
    const { amount, range } = this;
    const fits = amount >= range.low && amount <= range.high && amount % 10 === 0;
    this.button.textContent = fits ? `Bid ${amount}` : "Bid";
    this.button.disabled = !fits;
    if (fits && amount === range.low) this.button.dataset.action = ACTION.raise;
    else delete this.button.dataset.action;
    this.warning.textContent = fits ? "" : `Bid tens from ${range.low} to ${range.high}.`;
    this.warn?.(fits ? amount : 0);
  }

  bid() {
    const actions = bidActions(this.state, this.amount);
    if (actions) this.act(actions);
  }
}

// To pay or offer: notes are moved from the hand to a pile, which is then laid down.
export class PileBox {
  constructor(state, at, act, { preset = null, changed }) {
    this.state = state;
    this.at = at;
    this.act = act;
    this.changed = changed;
    this.locked = [...at.chosen];
    this.counts = preset ?? [...at.chosen];
    this.pile = el("div", { class: "kh-laying", role: "group", "aria-label": "notes to lay down" });
    this.button = el("button", {
      type: "button",
      class: "kh-choice main kh-confirm",
      onclick: () => this.confirm(),
    });
    this.warning = el("p", { class: "kh-warning", role: "status" });
    this.inside = [el("div", { class: "kh-buttons" }, this.pile, this.button), this.warning];
    this.update();
  }

  get price() {
    return this.at.phase === "pay" ? this.at.highBid : 0;
  }

  // Whether a note of this kind may go to the pile: zeros pay nothing, what was named is named.
  takes(index) {
    if (index > this.at.pointer) return false;
    return !(this.at.phase === "pay" && NOTES[index] === 0);
  }

  add(index) {
    if (!this.takes(index) || this.counts[index] >= this.at.money[this.at.actor][index]) return;
    this.counts[index] += 1;
    this.update();
    this.changed();
  }

  remove(index) {
    if (this.counts[index] <= this.locked[index]) return;
    this.counts[index] -= 1;
    this.update();
    this.changed();
  }

  update() {
    const notes = NOTES.map((value, index) => ({ value, index }))
      .reverse()
      .flatMap(({ value, index }) =>
        Array.from({ length: this.counts[index] }, () =>
          el(
            "button",
            {
              type: "button",
              class: "kh-back",
              "aria-label": `take back ${value}`,
              title: "Take it back",
              onclick: () => this.remove(index),
            },
            note(index),
          ),
        ),
      );
    const empty = el("span", { class: "kh-none" }, "choose notes below");
    this.pile.replaceChildren(...(notes.length > 0 ? notes : [empty]));
    this.actions = pileActions(this.state, this.counts);
    this.button.disabled = this.actions === null;
    const sum = worth(this.counts);
    const cards = counted(cardsIn(this.counts), "note");
    const verb = { pay: "Pay", offer: "Offer", counter: "Counter with" }[this.at.phase];
    this.button.textContent = this.price ? `${verb} ${sum}` : `${verb} ${cards} (${sum})`;
    this.warning.textContent = this.why(sum);
  }

  why(sum) {
    if (this.actions) return sum > this.price && this.price ? "No change is given." : "";
    if (this.price && sum < this.price) return `${this.price - sum} still missing.`;
    if (this.price) return "That is more than needed: leave out a note.";
    return "Lay down at least one note.";
  }

  confirm() {
    if (this.actions) this.act(this.actions);
  }
}

// The text while another player decides.
export function waiting(session, at) {
  if (at.phase === "done" || at.actor < 0) return "";
  const doing = {
    turn: "auctions or trades",
    bid: "bids or passes",
    tens: "bids or passes",
    decide: "sells or buys",
    pay: "pays",
    offer: "lays down an offer",
    respond: "thinks about the offer",
    counter: "lays down a counter-offer",
  };
  return `${capital(nameOf(session, at.actor))} ${doing[at.phase]}…`;
}
