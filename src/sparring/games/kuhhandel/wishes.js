// One wish of a person, such as a bid of 130 or a pile of notes, as the actions that it takes.

import { ACTION, isFinished, laidDown, read, worth } from "/games/kuhhandel/reading.js";

// The actions of a bid, null if it cannot be made.
export function bidActions(state, amount) {
  const at = read(state);
  const tens = ACTION.number + (amount % 100) / 10;
  if (at.phase === "tens") {
    return Math.floor(amount / 100) === at.hundreds ? within(state, [tens]) : null;
  }
  if (amount === at.highBid + 10) return within(state, [ACTION.raise]);
  const hundreds = ACTION.number + Math.floor(amount / 100);
  if (!state.legal().includes(hundreds)) return null;
  const copy = state.clone();
  copy.apply(hundreds);
  const after = read(copy);
  const asked = after.phase === "tens";
  const legal = asked ? copy.legal().includes(tens) : after.lastBids[at.actor] === amount;
  copy.free();
  if (!legal) return null;
  return asked ? [hundreds, tens] : [hundreds];
}

function within(state, actions) {
  return state.legal().includes(actions[0]) ? actions : null;
}

// Smallest and largest bid.
export function bidRange(state) {
  const at = read(state);
  const legal = state.legal();
  const numbers = legal.filter((action) => action >= ACTION.number).map((a) => a - ACTION.number);
  if (at.phase === "tens") {
    const from = 100 * at.hundreds;
    return { low: from + 10 * numbers[0], high: from + 10 * numbers.at(-1) };
  }
  const low = at.highBid + 10;
  if (numbers.length === 0) return { low, high: low };
  const top = numbers.at(-1);
  let high = low;
  for (let digit = 9; digit >= 0 && high === low; --digit) {
    if (bidActions(state, 100 * top + 10 * digit)) high = 100 * top + 10 * digit;
  }
  return { low, high };
}

// The actions that lay down or pay these notes, null if that cannot be done.
export function pileActions(state, wanted) {
  const copy = state.clone();
  const actions = [];
  let laid = null;
  while (laid === null) {
    const was = read(copy);
    const action = ACTION.number + wanted[was.pointer] - was.chosen[was.pointer];
    if (!copy.legal().includes(action) || !copy.apply(action)) break;
    actions.push(action);
    const now = read(copy);
    if (isFinished(was, now)) laid = laidDown(was, action, now);
  }
  copy.free();
  return laid?.every((count, index) => count === wanted[index]) ? actions : null;
}

// The payment that gives away least, with the fewest notes.
export function bestPayment(state) {
  const hand = read(state).money[read(state).actor];
  const price = read(state).highBid;
  let best = null;
  const seek = (index, pile) => {
    const sum = worth(pile);
    if (best && sum > best.sum) return;
    if (sum >= price || index === 0) {
      if (sum < price) return;
      const cards = pile.reduce((a, b) => a + b, 0);
      if (!best || sum < best.sum || cards < best.cards) best = { sum, cards, pile };
      return;
    }
    for (let count = hand[index]; count >= 0; --count) {
      seek(
        index - 1,
        pile.map((held, at) => (at === index ? count : held)),
      );
    }
  };
  seek(
    hand.length - 1,
    hand.map(() => 0),
  );
  return best?.pile ?? null;
}

// What an adviser would do, the whole bid or pile. `next(state)` gives its next action.
export function wholeAdvice(state, first, next) {
  const copy = state.clone();
  let action = first;
  let advice = null;
  while (advice === null) {
    const was = read(copy);
    copy.apply(action);
    const now = read(copy);
    if (isFinished(was, now)) {
      advice = { pile: laidDown(was, action, now), bid: now.lastBids[was.actor], action };
    } else action = next(copy);
  }
  copy.free();
  return advice;
}
