// The players' plates in Skull King: bid, tricks taken, score.

import { el, replace } from "/app/dom.js";
import { backs, face } from "/games/skull_king/cards.js";
import { SUITS, bidOf, hasCommitted, loadOf, nameOf, sees } from "/games/skull_king/reading.js";
import { capital, counted } from "/games/skull_king/words.js";

// Where the others sit, in hundredths of the table, clockwise from the person's left.
const PLACES = {
  1: [[50, 11]],
  2: [
    [15, 26],
    [85, 26],
  ],
  3: [
    [12, 45],
    [50, 10],
    [88, 45],
  ],
  4: [
    [12, 55],
    [30, 10],
    [70, 10],
    [88, 55],
  ],
  5: [
    [11, 56],
    [18, 12],
    [50, 10],
    [82, 12],
    [89, 56],
  ],
  6: [
    [11, 74],
    [11, 38],
    [33, 10],
    [67, 10],
    [89, 38],
    [89, 74],
  ],
  7: [
    [11, 76],
    [11, 42],
    [20, 10],
    [50, 10],
    [80, 10],
    [89, 42],
    [89, 76],
  ],
};

// All seats but the one at the bottom, in the order of play.
export function othersOf(at, bottom) {
  const others = [];
  for (let k = 1; k < at.players; ++k) others.push((bottom + k) % at.players);
  if (at.ghost) others.push(at.players);
  return others;
}

// Where a seat's plate is and where its card of the trick lies, in hundredths.
export function placesOf(at, bottom) {
  const others = othersOf(at, bottom);
  const places = new Map([[bottom, { plate: [50, 100], card: [50, 79] }]]);
  others.forEach((seat, index) => {
    const plate = PLACES[others.length][index];
    const angle = Math.atan2((plate[1] - 52) * 0.6, plate[0] - 50);
    const card = [50 + 20 * Math.cos(angle), 57 + 21 * Math.sin(angle)];
    places.set(seat, { plate, card });
  });
  return places;
}

export class Plate {
  constructor(session, seat) {
    this.session = session;
    this.seat = seat;
    this.element = el("div", { class: "sk-plate", "data-seat": seat });
  }

  draw(at) {
    const { session, seat, element } = this;
    const mine = seat === session.person;
    const acts = at.phase !== "over" && seat === at.actor;
    element.classList.toggle("acts", acts);
    element.classList.toggle("mine", mine);
    const head = el(
      "div",
      { class: "sk-who" },
      el("span", { class: `sk-disc disc-${seat % 9}`, "aria-hidden": "true" }, mark(at, seat)),
      el("span", { class: "sk-name" }, capital(nameOf(session, seat))),
      seat < at.players ? el("span", { class: "sk-total" }, String(at.total[seat])) : null,
    );
    replace(element, head, this.numbers(at), mine ? null : this.cards(at), this.notes(at));
    element.setAttribute("aria-label", this.label(at));
  }

  // Tricks taken of those bid: a mark for each.
  numbers(at) {
    const { session, seat } = this;
    if (seat >= at.players) {
      return el("div", { class: "sk-numbers" }, `${counted(at.won[seat], "trick")} taken`);
    }
    const bid = bidOf(session, at, seat);
    if (bid === null) {
      const done = at.phase === "bid" && hasCommitted(at, seat);
      return el("div", { class: "sk-numbers quiet" }, done ? "has bid" : "no bid yet");
    }
    const won = at.won[seat];
    const played = at.phase !== "bid" && at.phase !== "cannon";
    const tone = !played ? "" : won === bid ? "exact" : won > bid ? "over" : "";
    const bonus =
      at.bonus[seat] > 0 ? el("span", { class: "sk-bonus" }, `+${at.bonus[seat]}`) : null;
    const words = played ? `${won} of ${bid}` : `bids ${bid}`;
    return el("div", { class: `sk-numbers ${tone}` }, el("b", {}, words), pips(bid, won), bonus);
  }

  cards(at) {
    const held = at.hands[this.seat];
    if (held.length === 0) return el("div", { class: "sk-held" });
    if (sees(this.session, this.seat) && this.seat < at.players) {
      return el(
        "div",
        { class: "sk-held open" },
        held.map((card) => face(card + 1, { inHand: true })),
      );
    }
    return el("div", { class: "sk-held", title: counted(held.length, "card") }, backs(held.length));
  }

  notes(at) {
    const { session, seat } = this;
    const notes = [];
    if (seat === at.leader && at.phase !== "over" && at.phase !== "bid") notes.push("leads");
    const load = loadOf(session, at, seat);
    if (load === "cannonball") notes.push("cannonball");
    if (load === null && at.phase === "cannon" && hasCommitted(at, seat)) notes.push("loaded");
    if (at.wager[seat]) notes.push(`wagers ${at.wager[seat]}`);
    if (at.harry === seat) notes.push("Harry");
    if (at.loot.some(({ by, ally }) => by === seat || ally === seat)) notes.push("loot");
    SUITS.forEach((suit, s) => {
      if ((at.void_suits[seat] >> s) & 1) notes.push(`no ${suit}`);
    });
    return el(
      "div",
      { class: "sk-notes" },
      notes.map((note) => el("span", {}, note)),
    );
  }

  label(at) {
    const { session, seat } = this;
    const bid = bidOf(session, at, seat);
    const words = [capital(nameOf(session, seat))];
    if (seat < at.players) words.push(`${at.total[seat]} points`);
    if (bid !== null) words.push(`bid ${bid}`);
    words.push(`${counted(at.won[seat], "trick")} taken`);
    words.push(`${counted(at.hands[seat].length, "card")} in hand`);
    return words.join(", ");
  }
}

function mark(at, seat) {
  return seat < at.players ? String(seat) : "☠";
}

function pips(bid, won) {
  const most = Math.max(bid, won);
  if (most === 0) return null;
  return el(
    "span",
    { class: "sk-pips", "aria-hidden": "true" },
    Array.from({ length: most }, (_, i) =>
      el("i", { class: i < Math.min(bid, won) ? "taken" : i < won ? "extra" : "" }),
    ),
  );
}
