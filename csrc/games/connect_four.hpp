// Connect Four: 7 columns, 6 rows, four in a row win.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::connect_four {

struct Config {};

inline constexpr int kColumns = 7, kHeight = 6, kCells = kColumns * kHeight;
// A column has 7 bits in a board, the lowest cell first; the seventh stays empty, so that a shift
// never leads from one column into the next.
inline constexpr int kStride = kHeight + 1;

// Cells row by row from the bottom: a1 is the lowest of the left column.
inline constexpr Feature kCellNames[] = {{"a1"}, {"b1"}, {"c1"}, {"d1"}, {"e1"}, {"f1"}, {"g1"},  //
                                         {"a2"}, {"b2"}, {"c2"}, {"d2"}, {"e2"}, {"f2"}, {"g2"},  //
                                         {"a3"}, {"b3"}, {"c3"}, {"d3"}, {"e3"}, {"f3"}, {"g3"},  //
                                         {"a4"}, {"b4"}, {"c4"}, {"d4"}, {"e4"}, {"f4"}, {"g4"},  //
                                         {"a5"}, {"b5"}, {"c5"}, {"d5"}, {"e5"}, {"f5"}, {"g5"},  //
                                         {"a6"}, {"b6"}, {"c6"}, {"d6"}, {"e6"}, {"f6"}, {"g6"}};
inline constexpr Feature kTurn[] = {{"to move"}};
inline constexpr Section kRow[] = {{"own", kCellNames}, {"other", kCellNames}, {"turn", kTurn}};

SPARRING_FN constexpr u64 bit_of(int column, int row) { return u64{1} << (column * kStride + row); }
SPARRING_FN constexpr u64 column_mask(int column) {
  return (bit_of(column, kHeight) - 1) ^ (bit_of(column, 0) - 1);
}
SPARRING_FN constexpr u64 bottom_row() {
  u64 row = 0;
  for (int column = 0; column < kColumns; ++column) row |= bit_of(column, 0);
  return row;
}
inline constexpr u64 kBottom = bottom_row();
inline constexpr u64 kBoard = kBottom * ((u64{1} << kHeight) - 1);

// Whether a set of cells contains four in a row.
SPARRING_FN constexpr bool has_four(u64 set) {
  for (const int step : {1, kStride - 1, kStride, kStride + 1}) {
    const u64 pairs = set & (set >> step);
    if (pairs & (pairs >> (2 * step))) return true;
  }
  return false;
}

// Cells, empty or not, that complete four in a row with three cells of a set.
SPARRING_FN constexpr u64 completing(u64 set) {
  u64 found = (set << 1) & (set << 2) & (set << 3);  // vertically only on top
  for (const int step : {kStride - 1, kStride, kStride + 1}) {
    const u64 up = (set << step) & (set << (2 * step));
    const u64 down = (set >> step) & (set >> (2 * step));
    found |= up & (set << (3 * step));
    found |= up & (set >> step);
    found |= down & (set << step);
    found |= down & (set >> (3 * step));
  }
  return found & kBoard;
}

// A position seen by the player to move.
struct Position {
  u64 mine, taken;  // cells of the mover; cells of both

  SPARRING_FN constexpr u64 theirs() const { return mine ^ taken; }
  // The lowest empty cell of every column that is not full.
  SPARRING_FN constexpr u64 playable() const { return (taken + kBottom) & kBoard; }
  SPARRING_FN constexpr Position after(u64 move) const { return {theirs(), taken | move}; }
};

inline constexpr int kWin = 10000;
inline constexpr int kMaxDepth = 8;
inline constexpr int kOrder[kColumns] = {3, 2, 4, 1, 5, 0, 6};

// Cells that would complete four for each side: threats that the other cannot fill at once count.
SPARRING_FN inline int evaluate(const Position& at) {
  const u64 empty = kBoard & ~at.taken;
  return 4 * (popcount(completing(at.mine) & empty) - popcount(completing(at.theirs()) & empty)) +
         popcount(at.mine & column_mask(kColumns / 2)) -
         popcount(at.theirs() & column_mask(kColumns / 2));
}

// Value of a position for its mover by alpha-beta to a depth, without recursion: device code has
// small stacks.
SPARRING_FN inline int searched(const Position& root, int depth, int alpha, int beta) {
  Position at[kMaxDepth + 1];
  int low[kMaxDepth + 1], high[kMaxDepth + 1], next[kMaxDepth + 1];
  int ply = 0, value = 0;
  at[0] = root, low[0] = alpha, high[0] = beta, next[0] = 0;
  bool entering = true;
  for (;;) {
    bool leaving = false;
    if (entering) {
      const u64 playable = at[ply].playable();
      if (completing(at[ply].mine) & playable) {
        value = kWin - ply, leaving = true;
      } else if (!playable) {
        value = 0, leaving = true;
      } else if (ply == depth) {
        value = evaluate(at[ply]), leaving = true;
      }
    }
    if (!leaving) {
      const u64 playable = at[ply].playable();
      while (next[ply] < kColumns && !(playable & column_mask(kOrder[next[ply]]))) ++next[ply];
      if (next[ply] == kColumns || low[ply] >= high[ply]) {
        value = low[ply], leaving = true;
      } else {
        at[ply + 1] = at[ply].after(playable & column_mask(kOrder[next[ply]++]));
        low[ply + 1] = -high[ply], high[ply + 1] = -low[ply], next[ply + 1] = 0;
        ++ply;
        entering = true;
        continue;
      }
    }
    if (ply == 0) return value;
    --ply;
    if (-value > low[ply]) low[ply] = -value;
    entering = false;
  }
}

struct Game {
  using Config = connect_four::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = kColumns;
  static constexpr const char* kParts[] = {"result"};
  static constexpr int kWinPart = 0;
  static constexpr const char* kBots[] = {"careful", "ab4", "ab6"};
  static constexpr const char* kEnds[] = {"four in a row", "board full"};
  static constexpr int kDepths[] = {0, 4, 6};

  u64 stones[2];
  u8 mover, over;
  u8 spare[6];  // no padding: equal states have equal bytes

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = kColumns, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return mover; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return has_four(stones[at]) ? 1.0f : has_four(stones[1 - at]) ? -1.0f : 0.0f;
  }

  SPARRING_FN void reset(const Config&, Rng&) { *this = Game{}; }

  SPARRING_FN Position position() const { return {stones[mover], stones[0] | stones[1]}; }

  SPARRING_FN void legal(const Config&, int, Legal<Game>& out) const {
    const u64 taken = stones[0] | stones[1];
    out.word[0] = 0;
    for (int column = 0; column < kColumns; ++column)
      if (!(taken & bit_of(column, kHeight - 1))) out.set(column);
  }

  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    constexpr int own = byte_of(kRow, "own"), other = byte_of(kRow, "other");
    for (int i = 0; i < kCells; ++i) {
      const u64 cell = bit_of(i % kColumns, i / kColumns);
      out[own + i] = (stones[me] & cell) != 0;
      out[other + i] = (stones[1 - me] & cell) != 0;
    }
    out[byte_of(kRow, "turn", "to move")] = !over && mover == me;
  }

  SPARRING_FN void step(const Config&, const Action* actions, Rng&, Result& result) {
    stones[mover] |= position().playable() & column_mask(actions[0]);
    if (has_four(stones[mover])) {
      result.add_reward(0, mover, 1.0f);
      result.add_reward(0, 1 - mover, -1.0f);
      result.terminate(0);
    } else if ((stones[0] | stones[1]) == kBoard) {
      result.terminate(1);
    }
    over = result.terminated;
    mover ^= 1;
  }

  // careful: wins if it can, blocks if it must, gives no cell on which the other wins, otherwise
  // plays anywhere. ab4, ab6: alpha-beta of so many plies, equal moves by lot.
  SPARRING_FN Action act(int bot, const Config&, int, const Legal<Game>& legal, Rng& rng) const {
    const Position at = position();
    for (const u64 set : {at.mine, at.theirs()}) {
      const u64 cells = completing(set) & at.playable();
      if (!cells) continue;
      for (int column = 0; column < kColumns; ++column)
        if (cells & column_mask(column)) return column;
    }
    const int depth = kDepths[bot];
    int best = -2 * kWin, count = 0, chosen = 0;
    for (int column = 0; column < kColumns; ++column) {
      if (!legal.test(column)) continue;
      const Position next = at.after(at.playable() & column_mask(column));
      const bool gift = completing(next.mine) & next.playable();
      const int value = depth ? -searched(next, depth - 1, -2 * kWin, 2 * kWin) : -int{gift};
      if (value > best) best = value, count = 0;
      if (value == best && rng.below(++count) == 0) chosen = column;
    }
    return chosen;
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = "connect_four",
            .title = "Connect Four: four in a row",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .board = {kHeight, kColumns},
            .zero_sum = true,
            .chance = false};
  }

  static std::string action_name(const Config&, int action) {
    return std::string(1, static_cast<char>('a' + action));
  }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(stones), SPARRING_STATE(mover), SPARRING_STATE(over)};
  }

  void bounds(const Config&, Bounds& bounds) const {
    bounds.within("stones", stones, 0, kBoard);
    bounds.within("mover", mover, 0, 1);
    bounds.within("over", over, 0, 1);
    bounds.spare(spare);
  }

  const char* audit(const Config&) const {
    const u64 taken = stones[0] | stones[1];
    if (stones[0] & stones[1]) return "two stones on one cell";
    if (taken & ~kBoard) return "a stone above the board";
    if ((taken >> 1) & kBoard & ~taken) return "a stone with nothing below it";
    const int more = popcount(stones[0]) - popcount(stones[1]);
    if (more != (mover ? 1 : 0)) return "one side moved twice";
    if (has_four(stones[mover])) return "a move after four in a row";
    return over != (has_four(stones[1 - mover]) || taken == kBoard)
               ? "the game's end does not fit its board"
               : nullptr;
  }

  bool ended(const Config&) const { return over; }

  std::string text(const Config&, int) const {
    std::string board;
    for (int row = kHeight - 1; row >= 0; --row)
      for (int column = 0; column < kColumns; ++column) {
        const u64 cell = bit_of(column, row);
        board += stones[0] & cell ? 'X' : stones[1] & cell ? 'O' : '.';
        board += column == kColumns - 1 ? '\n' : ' ';
      }
    return board;
  }
#endif
};

}  // namespace sparring::connect_four
