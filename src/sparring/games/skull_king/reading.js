// A position of Skull King in plain numbers, and what every seat may know of it.

import { widen } from "/app/engine/engine.js";

export const CARDS = 74;
export const TIGRESS = 71;
// A card on the table is a token, 1 + its id; the Tigress as an escape has a separate one.
export const TIGRESS_AS_PIRATE = 72;
export const TIGRESS_AS_ESCAPE = 75;
export const SUITS = ["black", "green", "purple", "yellow"];
export const PHASES = ["bid", "cannon", "play", "rosie", "discard", "wager", "harry", "over"];
export const PIRATES = ["Rosie", "Bendt", "Rascal", "Juanita Jade", "Harry"];
export const LOADS = ["grapeshot", "cannonball"];
export const ACTION = {
  play: 11,
  tigressEscape: 85,
  rosie: 86,
  wager: 94,
  harry: 97,
  grapeshot: 100,
};
const [WHALE, KRAKEN] = [2, 3]; // tokens
const PER_SEAT = [
  "bid",
  "won",
  "bonus",
  "total",
  "wager",
  "cannon",
  "void_suits",
  "last_bid",
  "last_won",
  "last_bonus",
  "last_points",
  "last_loot_exact",
];

export function read(state) {
  const raw = state.fields();
  const one = (name) => raw[name][0];
  const { rules } = state;
  const players = rules.seats;
  const ghost = players === 2 && Boolean(rules.settings.ghost);
  const seats = players + ghost;
  const size = one("trick_size");
  const trick = Array.from({ length: size }, (_, i) => ({
    seat: raw.trick_seat[i],
    token: raw.trick_token[i],
  }));
  const laidByGhost = one("tricks_done") + trick.some(({ seat }) => seat === players);
  const at = {
    players,
    seats,
    ghost,
    settings: rules.settings,
    phase: PHASES[one("phase")],
    rounds: rules.settings.rounds.filter((cards) => cards > 0).length,
    trick,
    hands: Array.from({ length: seats }, (_, seat) => cardsIn(raw.hand, seat)),
    seen: Array.from({ length: players }, (_, seat) => cardsIn(raw.priv, seat)),
    ghostNext: ghost ? raw.ghost_order[laidByGhost] : -1,
    loot: [0, 1]
      .map((i) => ({ by: raw.loot_by[i], ally: raw.loot_with[i] }))
      .filter(({ by }) => by >= 0),
  };
  for (const name of ["actor", "leader", "round", "cards", "follow", "pending", "harry", "placed"])
    at[name] = one(name);
  at.tricksDone = one("tricks_done");
  for (const name of PER_SEAT) at[name] = Array.from(raw[name].slice(0, seats));
  return at;
}

// The ids in the index-th set of a field with 128 bits per set.
export function cardsIn(words, index) {
  const bits = words[2 * index] | (words[2 * index + 1] << 64n);
  const cards = [];
  for (let card = 0; card < CARDS; ++card) if ((bits >> BigInt(card)) & 1n) cards.push(card);
  return cards;
}

export function suitOf(card) {
  return card >= 10 && card <= 65 ? Math.floor((card - 10) / 14) : -1;
}

export function numberOf(card) {
  return suitOf(card) < 0 ? 0 : ((card - 10) % 14) + 1;
}

export function kindOf(card) {
  if (suitOf(card) >= 0) return "suit";
  if (card >= 3 && card <= 4) return "mermaid";
  if (card >= 5 && card <= 9) return "pirate";
  if (card >= 66 && card <= 70) return "escape";
  if (card >= 72) return "loot";
  return { 0: "king", 1: "whale", 2: "kraken", [TIGRESS]: "tigress" }[card];
}

export function cardName(card) {
  const suit = suitOf(card);
  if (suit >= 0) return `${SUITS[suit]} ${numberOf(card)}`;
  if (kindOf(card) === "pirate") return PIRATES[card - 5];
  return {
    king: "the Skull King",
    whale: "the White Whale",
    kraken: "the Kraken",
    mermaid: "a mermaid",
    escape: "an escape",
    loot: "loot",
    tigress: "the Tigress",
  }[kindOf(card)];
}

export function tokenName(token) {
  if (token === TIGRESS_AS_PIRATE) return "the Tigress as a pirate";
  if (token === TIGRESS_AS_ESCAPE) return "the Tigress as an escape";
  return cardName(token - 1);
}

export function cardOf(token) {
  return token === TIGRESS_AS_ESCAPE ? TIGRESS : token - 1;
}

export function tokenOf(action) {
  return action === ACTION.tigressEscape ? TIGRESS_AS_ESCAPE : action - ACTION.play + 1;
}

// The trick as it lies after a card was played; the ghost follows the last player.
export function laidAfter(was, action) {
  const laid = [...was.trick, { seat: was.actor, token: tokenOf(action) }];
  if (was.ghost && !laid.some(({ seat }) => seat === was.players)) {
    const token = was.ghostNext === TIGRESS ? TIGRESS_AS_ESCAPE : was.ghostNext + 1;
    laid.push({ seat: was.players, token });
  }
  return laid;
}

// Cards of all players without those of the trick.
export function handsAfter(was, laid) {
  const out = laid.map(({ token }) => cardOf(token));
  return was.hands.map((cards) => cards.filter((card) => !out.includes(card)));
}

// Whether a trick is destroyed: the last leviathan decides.
export function isDestroyed(laid) {
  const tokens = laid.map(({ token }) => token);
  const last = tokens.findLast((token) => token === WHALE || token === KRAKEN);
  if (last === undefined) return false;
  return last === KRAKEN || !tokens.some((token) => suitOf(token - 1) >= 0);
}

export function roundEnded(was, now) {
  return now.round !== was.round || now.phase === "over";
}

// The seat that took the trick that ended between two positions, -1 for none.
export function takerOf(was, now, laid) {
  if (isDestroyed(laid)) return -1;
  const won = roundEnded(was, now) ? now.last_won : now.won;
  const seat = won.findIndex((tricks, at) => at < was.players && tricks > was.won[at]);
  return seat >= 0 ? seat : was.players;
}

// The seat that would win the trick as it lies, -1 for none. Public: every observation has it.
export function winningSeat(state, at) {
  if (at.trick.length === 0) return -1;
  const block = state.rules.blocks.find(({ name }) => name === "seat");
  const column = block.columns.indexOf("wins trick now");
  const seen = widen(state.observe(0), state.rules);
  for (let seat = 0; seat < block.rows; ++seat)
    if (seen[block.first + seat * block.columns.length + column]) return seat;
  return -1;
}

export function sees(session, seat) {
  if (session.sees) return session.sees(seat);
  return session.person < 0 || session.person === seat;
}

// A seat's bid, null while it is not placed or not to be known.
export function bidOf(session, at, seat) {
  if (seat >= at.players || at.bid[seat] < 0) return null;
  const open = at.phase !== "bid" || at.settings.open_bids || sees(session, seat);
  return open ? at.bid[seat] : null;
}

// A seat's load, null while it is not chosen or not to be known.
export function loadOf(session, at, seat) {
  if (!at.settings.cannonball || at.phase === "bid" || seat >= at.players) return null;
  if (at.phase !== "cannon") return LOADS[at.cannon[seat]];
  const chosen = (seat - at.leader + at.players) % at.players < at.placed;
  return chosen && sees(session, seat) ? LOADS[at.cannon[seat]] : null;
}

// Whether a seat has bid or loaded in the current phase.
export function hasCommitted(at, seat) {
  if (seat >= at.players) return false;
  if (at.phase === "bid") return at.bid[seat] >= 0;
  return (seat - at.leader + at.players) % at.players < at.placed;
}

// Plates and sentences name a seat alike: "you", "captain", or "captain 2" among several.
export function nameOf(session, seat) {
  const { players } = session;
  if (seat >= players.length) return "the ghost";
  if (seat === session.person) return "you";
  const { name } = players[seat];
  const alike = players.filter((player, at) => player.name === name && at !== session.person);
  return alike.length > 1 ? `${name} ${seat}` : name;
}
