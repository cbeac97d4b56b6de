// A position of Kuhhandel in plain numbers. A hand or pile is a count for each kind of note.

export const KINDS = [
  "rooster",
  "goose",
  "cat",
  "dog",
  "sheep",
  "goat",
  "donkey",
  "pig",
  "cow",
  "horse",
];
export const VALUES = [10, 40, 90, 160, 250, 350, 500, 650, 800, 1000]; // of a quartet
export const NOTES = [0, 10, 50, 100, 200, 500];
export const DONKEY = 6;
export const DONKEY_PAYS = [50, 100, 200, 500];
export const PHASES = [
  "turn",
  "bid",
  "tens",
  "decide",
  "pay",
  "offer",
  "respond",
  "counter",
  "done",
];
export const BIDS = ["bid", "tens"];
export const PILES = ["pay", "offer", "counter"];
export const ACTION = {
  auction: 0,
  trade: 1,
  pass: 41,
  raise: 42,
  sell: 43,
  buy: 44,
  accept: 45,
  counter: 46,
  number: 47,
};
const SEATS = 5;
const PLURALS = { goose: "geese", sheep: "sheep" };

export function read(state) {
  const raw = state.fields();
  const one = (name) => raw[name][0];
  const players = state.rules.seats;
  const seats = Array.from({ length: players }, (_, seat) => seat);
  const known = seats.map((who) => seats.map((of) => pileOf(raw.known[SEATS * who + of])));
  const bits = (name) => seats.filter((seat) => (one(name) >> seat) & 1);
  const at = {
    players,
    settings: state.rules.settings,
    phase: PHASES[one("phase")],
    deckLeft: raw.deck.length - one("drawn"),
    next: one("drawn") < raw.deck.length ? raw.deck[one("drawn")] : -1, // hidden until it is drawn
    animals: seats.map((seat) =>
      Array.from(raw.animals.slice(KINDS.length * seat, KINDS.length * (seat + 1))),
    ),
    money: seats.map((seat) => known[seat][seat]),
    known,
    highBid: 10 * one("high_tens"),
    highBidder: one("high_bidder"),
    lastBids: seats.map((seat) => 10 * raw.last_bid_tens[seat]),
    passed: bits("passed"),
    exposed: bits("exposed"),
    inPlay: worth(pileOf(one("in_play"))),
    offer: pileOf(one("offer")),
    chosen: pileOf(one("chosen")),
    tiedAt: 10 * one("tied_tens"),
    scores: seats.map((seat) => 10 * raw.quartets_tens[seat] * raw.quartets[seat]),
  };
  for (const name of ["actor", "turn", "donkeys", "lot", "hundreds", "target", "traded"])
    at[name] = one(name);
  for (const name of ["stake", "ties", "pointer"]) at[name] = one(name);
  return at;
}

// The counts that the native core packs into one number.
function pileOf(word) {
  return NOTES.map((_, index) => Number((BigInt(word) >> BigInt(8 * index)) & 0xffn));
}

export function worth(pile) {
  return pile.reduce((sum, count, index) => sum + count * NOTES[index], 0);
}

export function cardsIn(pile) {
  return pile.reduce((sum, count) => sum + count, 0);
}

export function minus(pile, other) {
  return pile.map((count, index) => count - other[index]);
}

export function nothing() {
  return NOTES.map(() => 0);
}

export function counted(count, thing) {
  return `${count} ${count === 1 ? thing : (PLURALS[thing] ?? `${thing}s`)}`;
}

// "100, 2 × 50 and 3 × 0", large notes first.
export function pileWords(pile) {
  const words = pile
    .map((count, index) =>
      count > 1 ? `${count} × ${NOTES[index]}` : count ? `${NOTES[index]}` : "",
    )
    .filter(Boolean)
    .reverse();
  if (words.length < 2) return words[0] ?? "nothing";
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

// Whom and what a trade names.
export function tradeOf(at, action) {
  const choice = action - ACTION.trade;
  const seat = (at.actor + 1 + Math.floor(choice / KINDS.length)) % at.players;
  const kind = choice % KINDS.length;
  return { seat, kind, stake: Math.min(at.animals[at.actor][kind], at.animals[seat][kind]) };
}

export function sees(session, seat) {
  if (session.sees) return session.sees(seat);
  return session.person < 0 || session.person === seat;
}

// What the person knows of a seat's money for certain, and how many notes there are besides.
export function knownMoney(session, at, seat) {
  const all = cardsIn(at.money[seat]);
  if (sees(session, seat)) return { known: at.money[seat], hidden: 0, all };
  const known = at.known[session.person][seat];
  return { known, hidden: all - cardsIn(known), all };
}

// Plates and sentences name a seat alike: "you", "dealer", or "dealer 2" among several.
export function nameOf(session, seat) {
  const { players } = session;
  if (seat === session.person) return "you";
  const { name } = players[seat];
  const alike = players.filter((player, at) => player.name === name && at !== session.person);
  return alike.length > 1 ? `${name} ${seat}` : name;
}

// Whether an action completed a bid or a pile.
export function isFinished(was, now) {
  if (BIDS.includes(was.phase)) return now.phase !== "tens";
  if (!PILES.includes(was.phase)) return true;
  const same = now.phase === was.phase && now.actor === was.actor;
  return !(same && now.pointer < was.pointer);
}

// The pile that an action completed; notes that had to follow are in it.
export function laidDown(was, action, now) {
  const hand = was.money[was.actor];
  if (was.phase === "pay") return minus(hand, now.money[was.actor]);
  const laid = [...was.chosen];
  const composing = PILES.includes(was.phase);
  if (composing) laid[was.pointer] += action - ACTION.number;
  const left = composing ? hand.slice(0, was.pointer) : hand;
  if (cardsIn(laid) === 0 && cardsIn(left) === 1) laid[hand.findIndex((count) => count > 0)] = 1;
  return laid;
}
