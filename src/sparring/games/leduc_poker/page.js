// Leduc poker in a browser.

import { pokerPage } from "/app/play/poker.js";

const CALL = 1;
const RAISE = 2;
const MAX_MOVES = 4; // of a round
const RAISES = [2, 4]; // chips, by round

export const page = pokerPage({
  rules: [
    "Six cards: two jacks, two queens, two kings. Each of the two gets one and puts in a chip; a third card is for both and lies face down.",
    "Two rounds of check or call, raise, fold, with at most two raises in each: of 2 chips in the first round, of 4 in the second. Between them the table's card is turned up.",
    "A pair with it wins, else the higher card; equal cards share. Keys: c checks and calls, r raises, f folds.",
  ],
  read(state) {
    const { cards, moves, length, chips, round } = state.fields();
    const [first, second, table] = Array.from(cards, (card) => ({
      rank: card >> 1,
      suit: card & 1 ? "heart" : "spade",
    }));
    return {
      cards: [first, second],
      table: round[0] === 1 ? table : null,
      chips: [...chips],
      rounds: Array.from({ length: round[0] + 1 }, (_, at) =>
        Array.from(moves.slice(MAX_MOVES * at, MAX_MOVES * at + length[at])),
      ),
    };
  },
  called(history, action) {
    if (action === CALL) return history.at(-1) === RAISE ? "call" : "check";
    return action === RAISE ? "raise" : "fold";
  },
  price({ chips, rounds }, seat, action) {
    const owed = chips[1 - seat] - chips[seat];
    if (action === CALL) return owed;
    return action === RAISE ? owed + RAISES[rounds.length - 1] : 0;
  },
  keys: { check: "c", call: "c", raise: "r", fold: "f" },
});
