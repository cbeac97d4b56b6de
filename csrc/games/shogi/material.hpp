// What pieces are worth to the bots and to the reward part "material" (section 9).
#pragma once

#include "games/shogi/position.hpp"

namespace sparring::shogi {

inline constexpr int kValue[kKinds + 1] = {90, 315, 405, 495, 855, 990, 540, 0};
inline constexpr int kPromotedValue[kKinds + 1] = {540, 540, 540, 540, 945, 1395, 540, 0};

// By what a move improves the balance: the captured piece as it stood and as it can be dropped...
SPARRING_FN inline int capture_gain(int kind, bool promoted) {
  return kValue[kind] + (promoted ? kPromotedValue[kind] : kValue[kind]);
}

// ...and the promotion.
SPARRING_FN inline int promotion_gain(int kind) { return kPromotedValue[kind] - kValue[kind]; }

SPARRING_FN inline int gain_of(const Change& change) {
  int gain = 0;
  if (change.captured != kNoKind) gain = capture_gain(change.captured, change.captured_promoted);
  if (change.promotes) gain += promotion_gain(change.kind);
  return gain;
}

// The same before the move is made.
SPARRING_FN inline int gain_of(const Position& position, int label, int to) {
  if (label >= kDrop) return 0;
  int gain = 0;
  if (position.side[kOther].has(to))
    gain = capture_gain(position.kind_at(to), position.promoted.has(to));
  if (label >= kPromote) gain += promotion_gain(position.kind_at(position.origin(label, to)));
  return gain;
}

}  // namespace sparring::shogi
