// A test game for memory: each seat is shown a signal in its first decision, sees nothing in the
// next ones, and is asked for it in its last.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::signal {

struct Config {
  i32 seats = 1;   // they decide by turns, and have signals of their own
  i32 kinds = 4;   // of signals
  i32 blanks = 3;  // decisions of a seat in which it sees nothing
  i32 limit = 0;   // decisions of all seats until the game is cut; 0: it is not
};

inline constexpr Feature kShown[] = {{"kind"}};
inline constexpr Feature kAsked[] = {{"asked"}};
inline constexpr Section kRow[] = {{"shown", kShown, 8}, {"asked", kAsked}};

struct Game {
  using Config = signal::Config;
  using Action = i32;  // a kind; it counts where it is asked for
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = 8;
  static constexpr const char* kParts[] = {"right"};
  static constexpr const char* kEnds[] = {"asked", "cut"};

  i32 decisions;  // of all seats
  u8 mover;
  u8 signal[kMaxSeats], right[kMaxSeats];
  u8 spare[3];  // no padding: equal states have equal bytes

  SPARRING_FN static Shape shape(const Config& config) {
    return {.seats = config.seats, .actions = config.kinds, .obs_bytes = 16};
  }
  SPARRING_FN int turn(const Config& config) const { return decisions / config.seats; }
  SPARRING_FN int seat(int) const { return mover; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const { return static_cast<f32>(right[at]); }

  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    for (int s = 0; s < config.seats; ++s) signal[s] = static_cast<u8>(rng.below(config.kinds));
  }
  SPARRING_FN void legal(const Config& config, int, Legal<Game>& out) const {
    for (int kind = 0; kind < config.kinds; ++kind) out.set(kind);
  }
  SPARRING_FN void observe(const Config& config, int me, u8* out) const {
    zero_bytes(out, 16);
    if (turn(config) == 0) out[byte_of(kRow, "shown") + signal[me]] = 1;
    out[byte_of(kRow, "asked")] = turn(config) > config.blanks;
  }
  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result) {
    if (turn(config) > config.blanks && actions[0] == signal[mover]) {
      right[mover] = 1;
      result.add_reward(0, mover, 1.0f);
    }
    mover = static_cast<u8>((mover + 1) % config.seats);
    if (++decisions == config.seats * (config.blanks + 2)) {
      result.terminate(0);
    } else if (decisions == config.limit) {
      result.truncate(1);
    }
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = "signal",
            .title = "Signal: a test game for memory",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"watcher"}};
  }
  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(seats, 1, 2, "", "they decide by turns, and have signals of their own"),
            SPARRING_CONFIG(kinds, 2, 8, "", "kinds of signals"),
            SPARRING_CONFIG(blanks, 0, 60, "", "decisions of a seat in which it sees nothing"),
            SPARRING_CONFIG(limit, 0, 200, "", "decisions until the game is cut; 0: it is not")};
  }
  SPARRING_FN static int last(const Config& config) {
    const int asked = config.seats * (config.blanks + 2);
    return config.limit ? min(config.limit, asked) : asked;
  }
  void bounds(const Config& config, Bounds& bounds) const {
    bounds.within("decisions", decisions, 0, last(config));
    bounds.within("mover", mover, 0, config.seats - 1);
    bounds.within("signal", signal, 0, config.kinds - 1);
    bounds.within("right", right, 0, 1);
    bounds.spare(spare);
  }
  const char* audit(const Config& config) const {
    return mover != decisions % config.seats ? "another seat is to move" : nullptr;
  }
  bool ended(const Config& config) const { return decisions == last(config); }
  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(decisions), SPARRING_STATE(signal), SPARRING_STATE(right)};
  }
#endif
};

}  // namespace sparring::signal
