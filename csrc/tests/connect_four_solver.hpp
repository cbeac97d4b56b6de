// A perfect solver of Connect Four: alpha-beta with null windows, ordered moves, a table, and rules
// about who is left to move (V. Allis, "A Knowledge-based Approach of Connect-Four", 1988).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <span>
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

// What is known of positions, for any number of threads. A bucket has two entries: one that took
// many nodes to find, and the latest of the others. An entry is one word, so that no thread reads
// half of it: 49 bits of key, the logarithm of its nodes, and two bits per question, "at least 0?"
// and "at least 1?": 0 unknown, 2 no, 3 yes.
class Table {
 public:
  explicit Table(int bits) : shift_(64 - bits), entries_(size_t{2} << bits) {}

  void fetch(u64 key) const { __builtin_prefetch(bucket_of(key)); }

  u32 find(u64 key) const {
    const Entry* bucket = bucket_of(key);
    for (int at = 0; at < 2; ++at)
      if (const u64 entry = read(bucket[at]); entry >> kKeyShift == key) return entry & 15;
    return 0;
  }

  void keep(u64 key, u32 known, u64 nodes) {
    Entry* bucket = const_cast<Entry*>(bucket_of(key));
    const u64 work = std::bit_width(nodes), costly = read(bucket[0]);
    const bool same = costly >> kKeyShift == key;
    const bool first = same || work >= (costly >> 4 & 63);
    if (first && !same) write(bucket[1], costly);
    write(bucket[first ? 0 : 1], key << kKeyShift | work << 4 | known);
  }

 private:
  using Entry = std::atomic<u64>;
  static constexpr int kKeyShift = 15;

  static u64 read(const Entry& entry) { return entry.load(std::memory_order_relaxed); }
  static void write(Entry& entry, u64 word) { entry.store(word, std::memory_order_relaxed); }

  const Entry* bucket_of(u64 key) const {
    return &entries_[(key * 0x9E3779B97F4A7C15u >> shift_) * 2];
  }

  int shift_;
  std::vector<Entry> entries_;
};

// The second, fourth and sixth row: the player who always answers on top of the other's stone gets
// these cells, as long as every column has an even number of stones.
inline constexpr u64 kEvenRows = kBottom << 1 | kBottom << 3 | kBottom << 5;

// Whether the second player, who is not to move, keeps the first from winning, or wins, by
// answering on top of every stone (claimeven). Where a column has an odd number of stones there is
// a single cell of an even row: such columns come in pairs, and a stone in one of a pair is
// answered in the other. So the first gets cells of odd rows, and some of the single ones.
inline bool second_answers(const Position& at, bool wins) {
  const u64 empty = kBoard & ~at.taken, single = at.playable() & kEvenRows;
  if (has_four(at.mine | single | (empty & ~kEvenRows))) return false;
  return !wins || has_four(at.theirs() | (empty & kEvenRows & ~single));
}

// Whether the first player, who is not to move, wins by a threat on a cell of an odd row, over an
// odd number of stones: both fill the other columns in pairs as above, until the second player has
// to fill the cell below the threat.
inline bool first_answers(const Position& at) {
  const u64 empty = kBoard & ~at.taken, single = at.playable() & kEvenRows;
  const u64 threats = completing(at.theirs()) & empty & ~kEvenRows;
  for (int column = 0; column < kColumns; ++column) {
    const u64 cells = column_mask(column) & empty, threat = threats & cells;
    if (!threat || !(single & cells)) continue;
    const u64 below = cells & kEvenRows & ((threat & (~threat + 1)) - 1);
    if (!has_four(at.mine | single | below | (empty & ~kEvenRows & ~cells))) return true;
  }
  return false;
}

// Whether the mover's value is below a bound of 0 or 1, by these rules alone.
inline bool answered(const Position& at, int bound) {
  return popcount(at.taken) % 2 ? first_answers(at) : second_answers(at, bound == 0);
}

// Values are 1 if the mover wins, 0 for a draw, -1 if it loses, with best play of both.
class Solver {
 public:
  explicit Solver(Table& table) : table_(table) {}

  int value(const Position& at) {
    if (completing(at.mine) & at.playable()) return 1;
    return at_least(at, 1) ? 1 : at_least(at, 0) ? 0 : -1;
  }

  // The value of a move for the one who makes it.
  int value_of(const Position& at, u64 move) {
    return completing(at.mine) & move ? 1 : -value(at.after(move));
  }

 private:
  // Later positions are found faster than what the table knows of them is fetched.
  static constexpr int kFetched = 22;

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
    if (!moves || answered(at, bound)) return false;
    if (!(moves & (moves - 1))) return !at_least(at.after(moves), 1 - bound);
    return looked_up(at, bound, moves);
  }

  static u64 either_key(const Position& at) {
    const u64 key = key_of(at);
    return std::min(key, mirrored(key));
  }

  bool looked_up(const Position& at, int bound, u64 moves) {
    const u64 key = either_key(at);
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
    Position order[kColumns];
    int score[kColumns], count = 0;
    for (const int column : kOrder) {
      const u64 move = moves & column_mask(column);
      if (!move) continue;
      const int threats = popcount(completing(at.mine | move) & ~at.taken);
      int place = count++;
      for (; place && score[place - 1] < threats; --place)
        order[place] = order[place - 1], score[place] = score[place - 1];
      order[place] = at.after(move), score[place] = threats;
    }
    const std::span<const Position> next(order, static_cast<size_t>(count));
    return refuted_at_sight(next, 1 - bound) || refuted_by_table(next, 1 - bound) ||
           std::ranges::any_of(next, [&](const Position& to) { return !at_least(to, 1 - bound); });
  }

  static bool refuted_at_sight(std::span<const Position> some, int bound) {
    return std::ranges::any_of(some, [&](const Position& at) { return answered(at, bound); });
  }

  bool refuted_by_table(std::span<const Position> some, int bound) const {
    if (popcount(some[0].taken) > kFetched) return false;
    for (const Position& at : some) table_.fetch(either_key(at));
    return std::ranges::any_of(some, [&](const Position& at) {
      return (table_.find(either_key(at)) >> (2 * bound) & 3) == 2;
    });
  }

  Table& table_;
  u64 nodes_ = 0;
};

}  // namespace sparring::connect_four
