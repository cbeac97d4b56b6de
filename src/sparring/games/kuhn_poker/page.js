// Kuhn poker in a browser.

import { pokerPage } from "/app/play/poker.js";

const BET = 1;

export const page = pokerPage({
  rules: [
    "Three cards: jack, queen, king. Each of the two gets one and puts in a chip; nobody sees the third.",
    "Check, or bet one more chip. Who faces a bet calls it or folds. After two checks, or a call, the higher card wins what the other has put in; who folds loses what lies in.",
    "A jack that never bets is read like a book, a queen that always calls is robbed: play at odds. Keys: c checks and calls, b bets, f folds.",
  ],
  read(state) {
    const { cards, moves, length, chips } = state.fields();
    return {
      cards: Array.from(cards, (rank) => ({ rank, suit: "spade" })),
      chips: [...chips],
      rounds: [Array.from(moves.slice(0, length[0]))],
    };
  },
  called(said, action) {
    const faced = said.at(-1) === BET;
    return faced ? ["fold", "call"][action] : ["check", "bet"][action];
  },
  price: (at, seat, action) => (action === BET ? 1 : 0),
  keys: { check: "c", call: "c", bet: "b", fold: "f" },
});
