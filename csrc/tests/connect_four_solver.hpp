// A perfect solver of Connect Four: alpha-beta with null windows, ordered moves and a table.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "games/connect_four.hpp"

namespace sparring::connect_four {

// A bit above the stones of every column, and the mover's stones: no other position has the same.
constexpr u64 key_of(const Position& at) { return (at.taken + kBottom) | at.mine; }

// A key or a set of cells, reflected.
constexpr u64 mirrored(u64 set) {
  u64 turned = 0;
  for (int column = 0; column < kColumns; ++column)
    turned |= (set >> (column * kStride) & 127) << ((kColumns - 1 - column) * kStride);
  return turned;
}

// What is known of positions. A bucket has two entries: one that took many nodes to find, and the
// latest of the others. An entry has 49 bits of key, the logarithm of its nodes, and two bits per
// question, "at least 0?" and "at least 1?": 0 unknown, 2 no, 3 yes.
class Table {
 public:
  explicit Table(int bits) : shift_(64 - bits), entries_(size_t{2} << bits) {}

  u32 find(u64 key) const {
    const u64* bucket = &entries_[place_of(key)];
    for (int at = 0; at < 2; ++at)
      if (bucket[at] >> kKeyShift == key) return bucket[at] & 15;
    return 0;
  }

  void keep(u64 key, u32 known, u64 nodes) {
    u64* bucket = &entries_[place_of(key)];
    const u64 work = std::bit_width(nodes);
    const bool same = bucket[0] >> kKeyShift == key;
    const bool first = same || work >= (bucket[0] >> 4 & 63);
    if (first && !same) bucket[1] = bucket[0];
    bucket[first ? 0 : 1] = key << kKeyShift | work << 4 | known;
  }

 private:
  static constexpr int kKeyShift = 15;

  size_t place_of(u64 key) const { return (key * 0x9E3779B97F4A7C15u >> shift_) * 2; }

  int shift_;
  std::vector<u64> entries_;
};

// Values are 1 if the mover wins, 0 for a draw, -1 if it loses, with best play of both.
class Solver {
 public:
  explicit Solver(int table_bits) : table_(table_bits) {}

  int value(const Position& at) {
    if (completing(at.mine) & at.playable()) return 1;
    return at_least(at, 1) ? 1 : at_least(at, 0) ? 0 : -1;
  }

  // The value of a move for the one who makes it.
  int value_of(const Position& at, u64 move) {
    return completing(at.mine) & move ? 1 : -value(at.after(move));
  }

 private:
  // Whether the value is at least 0 or 1, where the mover cannot win at once. Both ask whether one
  // side, the attacker, wins: the mover for 1, the other for 0.
  bool at_least(const Position& at, int bound) {
    ++nodes_;
    const u64 empty = kBoard & ~at.taken, threats = completing(at.theirs()) & empty;
    u64 moves = at.playable();
    if (const u64 forced = moves & threats) {
      if (forced & (forced - 1)) return false;
      moves = forced;
    }
    if (!has_four((bound ? at.mine : at.theirs()) | empty)) return !bound;
    moves &= ~(threats >> 1);  // a stone there lets the other win on top of it
    if (!moves) return false;
    if (!(moves & (moves - 1))) return !at_least(at.after(moves), 1 - bound);
    return looked_up(at, bound, moves);
  }

  bool looked_up(const Position& at, int bound, u64 moves) {
    const u64 key = std::min(key_of(at), mirrored(key_of(at)));
    const u32 known = table_.find(key);
    if (const u32 answer = known >> (2 * bound) & 3) return answer & 1;
    const u64 before = nodes_;
    const bool holds = tried(at, bound, moves);
    // Who wins also draws, and who cannot draw cannot win.
    const u32 found = holds == (bound == 1) ? (holds ? 15u : 10u) : (2u | holds) << (2 * bound);
    table_.keep(key, known | found, nodes_ - before);
    return holds;
  }

  // Moves that leave the mover more cells to win on come first, then those near the middle.
  bool tried(const Position& at, int bound, u64 moves) {
    u64 order[kColumns];
    int score[kColumns], count = 0;
    for (const int column : kOrder) {
      const u64 move = moves & column_mask(column);
      if (!move) continue;
      const int threats = popcount(completing(at.mine | move) & ~at.taken);
      int place = count++;
      for (; place && score[place - 1] < threats; --place)
        order[place] = order[place - 1], score[place] = score[place - 1];
      order[place] = move, score[place] = threats;
    }
    return std::any_of(order, order + count,
                       [&](u64 move) { return !at_least(at.after(move), 1 - bound); });
  }

  Table table_;
  u64 nodes_ = 0;
};

}  // namespace sparring::connect_four
