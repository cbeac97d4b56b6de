// Kuhn poker in a browser.

import { pokerPage } from "/app/play/poker.js";

const BET = 1;

export const page = pokerPage({
  rules: [
    "Three cards: jack, queen, king. Each of the two gets one and puts in a chip; the third stays hidden.",
    "Check, or bet one more chip. A player who faces a bet calls or folds. After two checks, or a call, the higher card wins the other's chips; a player who folds loses the chips already put in.",
    "A jack that never bets is predictable, a queen that always calls loses: mix your actions. Keys: c checks and calls, b bets, f folds.",
  ],
  read(state) {
    const { cards, moves, length, chips } = state.fields();
    return {
      cards: Array.from(cards, (rank) => ({ rank, suit: "spade" })),
      chips: [...chips],
      rounds: [Array.from(moves.slice(0, length[0]))],
    };
  },
  called(history, action) {
    const faced = history.at(-1) === BET;
    return faced ? ["fold", "call"][action] : ["check", "bet"][action];
  },
  price: (at, seat, action) => (action === BET ? 1 : 0),
  keys: { check: "c", call: "c", bet: "b", fold: "f" },
});
