// The players' areas in Kuhhandel: open animals and hidden money.

import { el, replace } from "/app/dom.js";
import {
  KINDS,
  NOTES,
  VALUES,
  cardsIn,
  counted,
  knownMoney,
  nameOf,
  pileWords,
  sees,
  worth,
} from "/games/kuhhandel/reading.js";
import { animal, hiddenNote, note } from "/games/kuhhandel/wares.js";
import { capital } from "/games/kuhhandel/words.js";

const MAX_NOTES = 12; // more would not fit; the number stands beside them

export class Plate {
  // `add(index)` is called when the person chooses a note of their hand.
  constructor(session, seat, add) {
    this.session = session;
    this.seat = seat;
    this.add = add;
    this.farm = el("div", { class: "kh-farm" });
    this.money = el("div", { class: "kh-money" });
    this.head = el("div", { class: "kh-who" });
    this.status = el("div", { class: "kh-status" });
    const top = el("div", { class: "kh-top" }, this.head, this.status);
    this.element = el("div", { class: "kh-plate", "data-seat": seat }, top, this.farm, this.money);
  }

  // `pile` is what the person takes out of the hand just now, null if nothing is asked.
  draw(at, pile = null) {
    const { session, seat, element } = this;
    element.classList.toggle("acts", at.phase !== "done" && seat === at.actor);
    element.classList.toggle("mine", seat === session.person);
    replace(
      this.head,
      el("span", { class: `kh-disc disc-${seat}`, "aria-hidden": "true" }, String(seat)),
      el("span", { class: "kh-name" }, capital(nameOf(session, seat))),
      el("span", { class: "kh-points", title: "points" }, String(at.scores[seat])),
    );
    const status = statusOf(at, seat);
    this.status.className = `kh-status ${status.kind}`;
    this.status.textContent = status.words;
    replace(this.farm, farmOf(at.animals[seat]));
    if (seat === session.person) this.drawHand(at, pile);
    else this.drawMoney(at);
  }

  // The number of notes; the tooltip has what the person knows for certain.
  drawMoney(at) {
    const { known, hidden, all } = knownMoney(this.session, at, this.seat);
    this.money.classList.toggle("open", hidden === 0);
    const words =
      hidden === 0
        ? `${worth(known)} in ${counted(all, "note")}`
        : `${counted(all, "note")}, at least ${worth(known)}`;
    const sure = cardsIn(known) > 0 ? `Known: ${pileWords(known)}` : "Nothing is known of it";
    this.money.title = hidden ? `${sure}; ${hidden} unknown` : sure;
    const notes = sees(this.session, this.seat)
      ? known.flatMap((count, index) => Array.from({ length: count }, () => note(index))).reverse()
      : Array.from({ length: all }, hiddenNote);
    replace(
      this.money,
      el("span", { class: "kh-backs", "aria-hidden": "true" }, notes.slice(0, MAX_NOTES)),
      el("span", { class: "kh-sum" }, words),
    );
  }

  drawHand(at, pile) {
    const hand = at.money[this.seat];
    const stacks = NOTES.map((value, index) => ({ value, index, count: hand[index] }))
      .filter(({ count }) => count > 0)
      .reverse()
      .map(({ value, index, count }) => {
        const left = count - (pile?.counts[index] ?? 0);
        const able = pile !== null && left > 0 && pile.takes(index);
        return el(
          "button",
          {
            type: "button",
            class: "kh-stack",
            "data-note": value,
            disabled: !able,
            "aria-label": `${left} of ${value}${able ? ", lay one down" : ""}`,
            onclick: () => this.add(index),
          },
          note(index),
          el("span", {}, `× ${left}`),
        );
      });
    const sum = el("span", { class: "kh-sum" }, `You have ${worth(hand)}`);
    replace(this.money, el("span", { class: "kh-stacks" }, stacks), sum);
  }
}

// What a seat has to do with the auction or the trade.
function statusOf(at, seat) {
  if (at.lot >= 0) {
    if (seat === at.turn) return { kind: "leads", words: "auctions" };
    if (at.exposed.includes(seat)) return { kind: "out", words: "showed the money" };
    if (seat === at.highBidder) return { kind: "high", words: `bids ${at.highBid}` };
    if (at.passed.includes(seat)) return { kind: "out", words: "passes" };
    if (at.lastBids[seat] > 0) return { kind: "", words: `bid ${at.lastBids[seat]}` };
    return { kind: "", words: "" };
  }
  if (at.target >= 0 && seat === at.turn) return { kind: "leads", words: "challenges" };
  if (at.target >= 0 && seat === at.target) return { kind: "high", words: "is challenged" };
  return { kind: "", words: "" };
}

export function farmOf(counts) {
  const held = counts.flatMap((count, kind) => (count > 0 ? [{ count, kind }] : []));
  if (held.length === 0) return [el("span", { class: "kh-none" }, "no animals yet")];
  return held.map(({ count, kind }) =>
    el(
      "span",
      {
        class: `kh-kind${count === 4 ? " whole" : ""}`,
        title: `${counted(count, KINDS[kind])} of 4, a quartet is worth ${VALUES[kind]}`,
      },
      animal(kind, { title: false }),
      el("b", {}, count === 4 ? String(VALUES[kind]) : `${count}`),
    ),
  );
}
