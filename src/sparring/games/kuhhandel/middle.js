// The middle of a table of Kuhhandel: the deck, the animal under the hammer, piles of a trade.

import { el } from "/app/dom.js";
import { KINDS, VALUES, cardsIn, counted, nameOf, worth } from "/games/kuhhandel/reading.js";
import { farmOf } from "/games/kuhhandel/seats.js";
import { animalCard, cardBack, pile } from "/games/kuhhandel/wares.js";
import { capital, seesPile } from "/games/kuhhandel/words.js";

// `counter` is the second pile of a trade while both lie there.
export function middleOf(session, at, { counter = null } = {}) {
  if (at.phase === "done") return [standings(session, at)];
  if (at.lot >= 0) return [deck(at), auction(session, at)];
  if (at.target >= 0) return [trade(session, at, counter)];
  return [deck(at), el("p", { class: "kh-idle" }, turnWords(session, at))];
}

function turnWords(session, at) {
  return at.turn === session.person ? "Your turn" : `${capital(nameOf(session, at.turn))}'s turn`;
}

function deck(at) {
  const words = at.deckLeft > 0 ? counted(at.deckLeft, "card") : "no cards left";
  return el(
    "div",
    { class: `kh-deck${at.deckLeft === 0 ? " empty" : ""}` },
    at.deckLeft > 0 ? cardBack() : null,
    el("span", {}, words),
  );
}

function auction(session, at) {
  const bid =
    at.highBidder >= 0
      ? [
          el("span", { class: "kh-high" }, String(at.highBid)),
          el("span", {}, `by ${nameOf(session, at.highBidder)}`),
        ]
      : [el("span", { class: "kh-high none" }, "no bid yet")];
  return el(
    "div",
    { class: "kh-auction" },
    el("div", { class: "kh-lot" }, animalCard(at.lot)),
    el(
      "div",
      { class: "kh-bids" },
      el(
        "span",
        {},
        `${capital(nameOf(session, at.turn))}${at.turn === session.person ? " auction" : " auctions"}`,
      ),
      el("b", {}, `a ${KINDS[at.lot]}`),
      bid,
    ),
  );
}

function trade(session, at, counter) {
  const both = [at.turn, at.target];
  const offered = cardsIn(at.offer) > 0 || ["respond", "counter"].includes(at.phase);
  const open = counter ? seesPile(session, both) : seesPile(session, [at.turn]);
  const side = (seat, notes, seen, role) =>
    el(
      "div",
      { class: `kh-side ${role}` },
      el("b", {}, capital(nameOf(session, seat))),
      notes ? pile(notes, seen) : el("div", { class: "kh-pile" }),
      el("small", {}, notes ? pileLabel(notes, seen) : role === "left" ? "offers…" : ""),
    );
  const cards = Array.from({ length: at.stake }, () => animalCard(at.traded));
  return el(
    "div",
    { class: "kh-trade" },
    side(at.turn, offered ? at.offer : null, open, "left"),
    el(
      "div",
      { class: `kh-lot${at.stake === 2 ? " two" : ""}` },
      cards,
      at.ties > 0 ? el("span", { class: "kh-tie" }, "tied: once more") : null,
    ),
    side(at.target, counter, counter !== null && seesPile(session, both), "right"),
  );
}

function pileLabel(notes, seen) {
  const cards = counted(cardsIn(notes), "note");
  return seen ? `${cards}, ${worth(notes)}` : cards;
}

function standings(session, at) {
  const seats = at.scores.map((_, seat) => seat).sort((a, b) => at.scores[b] - at.scores[a]);
  const rows = seats.map((seat) => {
    const kinds = at.animals[seat].flatMap((count, kind) => (count === 4 ? [kind] : []));
    const sum = kinds.reduce((total, kind) => total + VALUES[kind], 0);
    const whole = at.animals[seat].map((count) => (count === 4 ? 4 : 0));
    return el(
      "tr",
      { class: seat === session.person ? "me" : null },
      el("th", {}, capital(nameOf(session, seat))),
      el("td", {}, el("div", { class: "kh-farm" }, kinds.length > 0 ? farmOf(whole) : "–")),
      el("td", {}, `${sum} × ${kinds.length}`),
      el("td", { class: "total" }, String(at.scores[seat])),
    );
  });
  const head = ["", "quartets", "value × number", "points"].map((word) => el("th", {}, word));
  return el(
    "table",
    { class: "kh-standings" },
    el("caption", {}, "Final scores"),
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, rows),
  );
}
