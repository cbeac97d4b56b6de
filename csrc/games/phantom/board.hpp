// Board games of nine cells in which nobody sees the other's stones. Who plays onto a stone of the
// other learns that it is there, and plays again, or loses the turn.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::phantom {

inline constexpr int kCells = 9;
inline constexpr u16 kAll = (1 << kCells) - 1;

// What a seat sees: its stones, those of the other that it ran into, its place, and whether it is
// to move. In which order it found them is not shown.
inline constexpr Feature kCell[] = {{"a1"}, {"b1"}, {"c1"}, {"a2"}, {"b2"},
                                    {"c2"}, {"a3"}, {"b3"}, {"c3"}};
inline constexpr Feature kTurn[] = {{"second seat"}, {"to move"}};
inline constexpr Section kRow[] = {{"own", kCell}, {"found", kCell}, {"turn", kTurn}};

// Goal says who has won: kName, kTitle, kEnds (won, then a full board) and won(seat, stones). The
// flag `abrupt` of its Config: whether a stone that was found costs the turn.
template <class Goal>
struct Board {
  using Config = typename Goal::Config;
  using Action = i32;  // a cell, row by row
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = kCells;
  static constexpr const char* kParts[] = {"result"};
  static constexpr const char* kBots[] = {"careful"};
  static constexpr const char* kEnds[] = {Goal::kWonBy, "board full"};

  u16 stones[2];  // bit 3 * row + column
  u16 found[2];   // stones of the other that each seat ran into
  u8 mover, over;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = kCells, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return mover; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return static_cast<f32>(Goal::won(at, stones[at]) - Goal::won(1 - at, stones[1 - at]));
  }

  SPARRING_FN void reset(const Config&, Rng&) { *this = Board{}; }

  SPARRING_FN void legal(const Config&, int, Legal<Board>& out) const {
    out.word[0] = kAll & ~(stones[mover] | found[mover]);
  }

  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    constexpr int own = byte_of(kRow, "own"), other = byte_of(kRow, "found");
    for (int i = 0; i < kCells; ++i) {
      out[own + i] = stones[me] >> i & 1;
      out[other + i] = found[me] >> i & 1;
    }
    out[byte_of(kRow, "turn", "second seat")] = me == 1;
    out[byte_of(kRow, "turn", "to move")] = !over && mover == me;
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result) {
    const int me = mover;
    const u16 cell = static_cast<u16>(1 << actions[0]);
    if (stones[1 - me] & cell) {
      found[me] |= cell;
      mover = static_cast<u8>(config.abrupt ? 1 - me : me);
      return;
    }
    stones[me] |= cell;
    mover ^= 1;
    if (Goal::won(me, stones[me])) {
      result.add_reward(0, me, 1.0f);
      result.add_reward(0, 1 - me, -1.0f);
      result.terminate(0);
    } else if ((stones[0] | stones[1]) == kAll) {
      result.terminate(1);
    }
    over = result.terminated;
  }

  // careful wins if it can, takes the cell with which the stones it found would win, else any.
  SPARRING_FN Action act(int, const Config&, int, const Legal<Board>& legal, Rng& rng) const {
    for (int i = 0; i < kCells; ++i)
      if (legal.test(i) && Goal::won(mover, static_cast<u16>(stones[mover] | 1 << i))) return i;
    for (int i = 0; i < kCells; ++i)
      if (legal.test(i) && Goal::won(1 - mover, static_cast<u16>(found[mover] | 1 << i))) return i;
    return legal.select(rng.below(legal.count()));
  }

  // The other's stones and what it found, drawn from all that fit what the seat sees: they are
  // counted, then one is found again. Behind the end nothing is left to guess: the stones have
  // decided.
  SPARRING_FN void resample_hidden(const Config& config, int me, Rng& rng) {
    if (over) return;
    int fitting = 0;
    each_world(config, me, [&](const Board&) { return ++fitting, false; });
    int drawn = rng.below(fitting);
    Board chosen = *this;
    each_world(config, me, [&](const Board& world) {
      chosen = world;
      return drawn-- == 0;
    });
    *this = chosen;
  }

  // Calls until(world) for every world, and stops where it is true.
  template <class Until>
  SPARRING_FN void each_world(const Config& config, int me, const Until& until) const {
    Board world = *this;
    SPARRING_FOR (int theirs = 0; theirs <= kAll; ++theirs) {
      if ((theirs & stones[me]) || (found[me] & ~theirs)) continue;
      world.stones[1 - me] = static_cast<u16>(theirs);
      SPARRING_FOR (int seen = 0; seen <= stones[me]; ++seen) {
        if (seen & ~stones[me]) continue;
        world.found[1 - me] = static_cast<u16>(seen);
        if (!world.audit(config) && until(world)) return;
      }
    }
  }

  SPARRING_FN const char* audit(const Config& config) const {
    if (stones[0] & stones[1]) return "two stones on one cell";
    if ((found[0] & ~stones[1]) || (found[1] & ~stones[0])) return "a stone found where none is";
    if (turns(config, 0) - turns(config, 1) != mover) return "somebody moved twice";
    if (found[0] && !stones[0]) return "the first move finds nothing";
    if (Goal::won(mover, stones[mover])) return "a move after the end";
    const bool full = (stones[0] | stones[1]) == kAll;
    const bool won = Goal::won(1 - mover, stones[1 - mover]);
    return over != (won || full) ? "the end is not where it is" : nullptr;
  }

  // Moves of a seat that ended its turn.
  SPARRING_FN int turns(const Config& config, int at) const {
    return popcount(stones[at]) + (config.abrupt ? popcount(found[at]) : 0);
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = Goal::kName,
            .title = Goal::kTitle,
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .board = {3, 3},
            .zero_sum = true,
            .chance = false};
  }

  static std::string action_name(const Config&, int action) { return kCell[action].name; }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(abrupt, 0, 1, "", "1: a stone that is found costs the turn")};
  }

  static std::vector<Field> state_fields() {
    using Game = Board;
    return {SPARRING_STATE(stones), SPARRING_STATE(found), SPARRING_STATE(mover),
            SPARRING_STATE(over)};
  }

  void bounds(const Config&, Bounds& bounds) const {
    bounds.within("stones", stones, 0, kAll);
    bounds.within("found", found, 0, kAll);
    bounds.within("mover", mover, 0, 1);
    bounds.within("over", over, 0, 1);
  }

  bool ended(const Config&) const { return over; }

  std::string text(const Config&, int viewer) const {
    std::string told;
    for (int i = 0; i < kCells; ++i) {
      if (i % 3 == 0) told += std::string(Goal::kSlant * static_cast<size_t>(i / 3), ' ');
      told += shown(i, 0, viewer) ? 'X' : shown(i, 1, viewer) ? 'O' : '.';
      told += i % 3 == 2 ? '\n' : ' ';
    }
    return told;
  }

  // Whether a viewer sees a seat's stone on a cell.
  bool shown(int cell, int at, int viewer) const {
    const bool open = viewer < 0 || viewer == at || over;
    return (open ? stones[at] : found[viewer]) >> cell & 1;
  }
#endif
};

}  // namespace sparring::phantom
