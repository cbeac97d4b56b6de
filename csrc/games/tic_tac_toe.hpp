// Tic-tac-toe: the smallest complete game, kept as the example of docs/inside/add-a-game.md.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::tic_tac_toe {

struct Config {};

// What a seat sees: own stones, the other's, and whether it is to move. `observe` and `spec` both
// go by these names.
inline constexpr Feature kCells[] = {{"a1"}, {"b1"}, {"c1"}, {"a2"}, {"b2"},
                                     {"c2"}, {"a3"}, {"b3"}, {"c3"}};
inline constexpr Feature kTurn[] = {{"to move"}};
inline constexpr Section kRow[] = {{"own", kCells}, {"other", kCells}, {"turn", kTurn}};

inline constexpr u16 kLines[8] = {0007, 0070, 0700, 0111, 0222, 0444, 0124, 0421};

struct Game {
  using Config = tic_tac_toe::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = 9;
  static constexpr const char* kParts[] = {"result"};
  static constexpr int kWinPart = 0;
  static constexpr const char* kBots[] = {"careful"};
  static constexpr const char* kEnds[] = {"three in a row", "board full"};

  u16 stones[2];  // bit 3 * row + column
  u8 mover, over;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = 9, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return mover; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return has_line(stones[at]) ? 1.0f : has_line(stones[1 - at]) ? -1.0f : 0.0f;
  }

  SPARRING_FN void reset(const Config&, Rng&) { *this = Game{}; }

  SPARRING_FN void legal(const Config&, int, Legal<Game>& out) const {
    out.word[0] = 0777 & ~(stones[0] | stones[1]);
  }

  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    constexpr int own = byte_of(kRow, "own"), other = byte_of(kRow, "other");
    for (int i = 0; i < 9; ++i) {
      out[own + i] = stones[me] >> i & 1;
      out[other + i] = stones[1 - me] >> i & 1;
    }
    out[byte_of(kRow, "turn", "to move")] = !over && mover == me;
  }

  SPARRING_FN void step(const Config&, const Action* actions, Rng&, Result& result) {
    stones[mover] |= static_cast<u16>(1 << actions[0]);
    if (has_line(stones[mover])) {
      result.add_reward(0, mover, 1.0f);
      result.add_reward(0, 1 - mover, -1.0f);
      result.terminate(0);
    } else if ((stones[0] | stones[1]) == 0777) {
      result.terminate(1);
    }
    over = result.terminated;
    mover ^= 1;
  }

  // careful: wins if it can, blocks if it must, otherwise plays anywhere.
  SPARRING_FN Action act(int, const Config&, int, const Legal<Game>& legal, Rng& rng) const {
    for (int who : {int{mover}, 1 - mover})
      for (int i = 0; i < 9; ++i)
        if (legal.test(i) && has_line(static_cast<u16>(stones[who] | 1 << i))) return i;
    return legal.select(rng.below(legal.count()));
  }

  SPARRING_FN static bool has_line(u16 set) {
    for (u16 line : kLines)
      if ((set & line) == line) return true;
    return false;
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = "tic_tac_toe",
            .title = "Tic-tac-toe: three in a row",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .board = {3, 3},
            .zero_sum = true,
            .chance = false};
  }

  static std::string action_name(const Config&, int action) { return kCells[action].name; }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(stones), SPARRING_STATE(mover), SPARRING_STATE(over)};
  }

  // What each field may hold: a state that comes from a file is checked before it is played.
  void bounds(const Config&, Bounds& bounds) const {
    bounds.within("stones", stones, 0, 0777);
    bounds.within("mover", mover, 0, 1);
    bounds.within("over", over, 0, 1);
  }

  // And what they may hold together.
  const char* audit(const Config&) const {
    if (stones[0] & stones[1]) return "two stones on one square";
    const int ahead = popcount(stones[0]) - popcount(stones[1]);
    if (ahead != 0 && ahead != (mover ? 1 : -1)) return "somebody moved twice";
    if (has_line(stones[mover])) return "a move after three in a row";
    const bool full = (stones[0] | stones[1]) == 0777;
    return over != (has_line(stones[1 - mover]) || full) ? "the end is not where it is" : nullptr;
  }

  bool ended(const Config&) const { return over; }

  std::string text(const Config&, int) const {
    std::string board;
    for (int i = 0; i < 9; ++i) {
      board += stones[0] >> i & 1 ? 'X' : stones[1] >> i & 1 ? 'O' : '.';
      board += i % 3 == 2 ? '\n' : ' ';
    }
    return board;
  }
#endif
};

}  // namespace sparring::tic_tac_toe
