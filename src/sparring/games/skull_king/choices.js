// Decisions of a person other than playing a card: bids, loads, abilities of pirates.

import { el } from "/app/dom.js";
import { ACTION, LOADS, SUITS, TIGRESS, bidOf, nameOf } from "/games/skull_king/reading.js";
import { capital, counted } from "/games/skull_king/words.js";

// Returns { words, buttons } of a decision. `picked` is the Tigress while she waits for a role.
export function choicesOf(session, at, ask, picked, act) {
  if (picked === TIGRESS) return tigress(act);
  switch (at.phase) {
    case "bid":
      return bids(session, at, ask, act);
    case "cannon":
      return loads(at, ask, act);
    case "rosie":
      return rosie(session, at, ask, act);
    case "wager":
      return wagers(at, ask, act);
    case "harry":
      return harry(at, ask, act);
    case "discard":
      return { words: `Bendt: discard ${counted(at.pending, "card")}.`, buttons: [] };
    default:
      return { words: cardWords(at), buttons: [] };
  }
}

function cardWords(at) {
  if (at.trick.length === 0) return "Your turn: you lead. Play any card.";
  if (at.follow < SUITS.length) return `Your turn: ${SUITS[at.follow]} was led.`;
  return "Your turn: there is no suit to follow.";
}

function button(action, words, act, more = {}) {
  const { note = null, kind = "", ...rest } = more;
  return el(
    "button",
    {
      type: "button",
      class: `sk-choice ${kind}`,
      "data-action": action,
      onclick: () => act(action),
      ...rest,
    },
    el("b", {}, words),
    note ? el("small", {}, note) : null,
  );
}

function tigress(act) {
  return {
    words: "The Tigress comes…",
    buttons: [
      button(ACTION.play + TIGRESS, "as a pirate", act, {
        kind: "red",
        note: "beats numbers and mermaids",
      }),
      button(ACTION.tigressEscape, "as an escape", act, { note: "loses" }),
      el(
        "button",
        { type: "button", class: "sk-choice quiet", onclick: () => act(null) },
        "another card",
      ),
    ],
  };
}

function bids(session, at, ask, act) {
  const placed = at.bid
    .slice(0, at.players)
    .map((_, seat) => bidOf(session, at, seat))
    .filter((bid) => bid !== null);
  const open = at.settings.open_bids
    ? ` Bid so far: ${placed.reduce((a, b) => a + b, 0)} by ${counted(placed.length, "player")}.`
    : "";
  return {
    words: `How many tricks will you take?${open}`,
    buttons: ask.legal.map((action) =>
      button(action, String(action), act, { kind: "chip", "aria-label": `bid ${action}` }),
    ),
  };
}

function loads(at, ask, act) {
  const notes = [
    `exact ${10 * at.cards}, one off ${5 * at.cards}`,
    `exact ${15 * at.cards}, else nothing`,
  ];
  return {
    words: "What do you load?",
    buttons: ask.legal.map((action) => {
      const load = action - ACTION.grapeshot;
      return button(action, LOADS[load], act, { note: notes[load] });
    }),
  };
}

function rosie(session, at, ask, act) {
  return {
    words: "Rosie: who leads the next trick?",
    buttons: ask.legal.map((action) => {
      const seat = (at.actor + action - ACTION.rosie) % at.players;
      return button(action, capital(nameOf(session, seat)), act, { "data-leads": seat });
    }),
  };
}

function wagers(at, ask, act) {
  const bid = at.bid[at.actor];
  return {
    words: `Rascal: wager on your bid of ${bid}? An exact bid wins it, any other loses it.`,
    buttons: ask.legal.map((action) =>
      button(action, String(10 * (action - ACTION.wager)), act, { kind: "chip" }),
    ),
  };
}

function harry(at, ask, act) {
  const bid = at.bid[at.actor];
  const words = ["one less", "keep it", "one more"];
  return {
    words: `Harry: you took ${at.won[at.actor]} and bid ${bid}. Change your bid?`,
    buttons: ask.legal.map((action) => {
      const change = action - ACTION.harry - 1;
      return button(action, String(bid + change), act, { kind: "chip", note: words[change + 1] });
    }),
  };
}

// The text while another player decides.
export function waiting(session, at) {
  if (at.phase === "over" || at.actor < 0) return "";
  const who = capital(nameOf(session, at.actor));
  const doing = {
    bid: "is bidding",
    cannon: "loads",
    play: at.trick.length === 0 ? "leads" : "plays",
    rosie: "chooses who leads",
    discard: "discards",
    wager: "may wager",
    harry: "may change the bid",
  };
  return `${who} ${doing[at.phase]}…`;
}
