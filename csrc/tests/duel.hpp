// A test game that uses every part of the contract Skull King does not: both seats move at once,
// continuous actions, a time limit that truncates, extra state, two roles.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::duel {

struct Config {
  i32 limit = 20;   // steps until the game is cut
  f32 reach = 3;    // distance that wins
  i32 memory = 16;  // entries of the extra state
};

// Two seats push a marker along a line, seat 0 to the right, seat 1 to the left.
struct Game {
  using Config = duel::Config;
  using Action = Box<2>;  // push, and a guess of the other's push
  static constexpr int kMaxSeats = 2, kRows = 2, kRoles = 2, kActions = 0;
  static constexpr const char* kParts[] = {"win", "guess"};
  static constexpr const char* kBots[] = {"pusher"};
  static constexpr const char* kEnds[] = {"reached", "time limit"};

  f32 marker, wind;
  i32 steps;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = 0, .obs_bytes = 16};
  }
  SPARRING_FN static int extra_bytes(const Config& config) { return config.memory * 4; }

  SPARRING_FN int seat(int row) const { return row; }
  SPARRING_FN int role(int) const { return steps & 1; }
  SPARRING_FN f32 score(const Config& config, int at) const {
    const f32 ahead = at == 0 ? marker : -marker;
    return ahead >= config.reach ? 1.0f : ahead <= -config.reach ? -1.0f : 0.0f;
  }

  SPARRING_FN void reset(const Config& config, Rng& rng, u8* extra) {
    *this = Game{};
    wind = rng.uniform() - 0.5f;
    zero_bytes(extra, extra_bytes(config));
  }

  // The marker from the seat's extra, the sum of remembered markers, the time.
  SPARRING_FN void observe(const Config& config, int me, u8* out, const u8* extra) const {
    const f32 sign = me == 0 ? 1.0f : -1.0f;
    f32 memory = 0;
    for (int i = 0; i < config.memory; ++i) {
      f32 past;
      copy_bytes(&past, extra + 4 * i, 4);
      memory += past;
    }
    const f32 seen[3] = {sign * marker, sign * memory, static_cast<f32>(steps)};
    copy_bytes(out, seen, sizeof seen);
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng& rng, Result& result,
                        u8* extra) {
    const f32 push = actions[0].value[0] - actions[1].value[0];
    marker += push + wind * (rng.uniform() - 0.5f);
    copy_bytes(extra + 4 * (steps % config.memory), &marker, 4);
    ++steps;
    for (int s = 0; s < 2; ++s) {
      const f32 miss = actions[s].value[1] - actions[1 - s].value[0];
      result.add_reward(1, s, miss < 0 ? miss : -miss);
    }
    if (marker >= config.reach || marker <= -config.reach) {
      for (int s = 0; s < 2; ++s) result.add_reward(0, s, score(config, s));
      result.terminate(0);
    } else if (steps >= config.limit) {
      result.truncate(1);
    }
  }

  SPARRING_FN Action act(int, const Config&, int, const Legal<Game>&, Rng& rng, const u8*) const {
    return {{0.5f + 0.5f * rng.uniform(), 0.0f}};
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = "duel",
            .title = "Duel: a test game",
            .rules_version = 1,
            .blocks = {{"line",
                        1,
                        {{"marker", Type::kF32, 1},
                         {"memory", Type::kF32, 1},
                         {"time", Type::kF32, 20}}}},
            .role_names = {"even", "odd"}};
  }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(limit, 1, 1000, "", "steps until the game is cut"),
            SPARRING_CONFIG(reach, 0.5, 100, "", "distance that wins"),
            SPARRING_CONFIG(memory, 1, 64, "", "entries of the extra state")};
  }

  // A step moves the marker by less than 3.
  void bounds(const Config& config, Bounds& bounds) const {
    bounds.within("marker", marker, -config.reach - 3, config.reach + 3);
    bounds.within("wind", wind, -0.5, 0.5);
    bounds.within("steps", steps, 0, config.limit);
  }
  bool ended(const Config& config) const {
    return marker >= config.reach || marker <= -config.reach || steps == config.limit;
  }
  const char* check_extra(const Config& config, const u8* extra) const {
    for (int i = 0; i < config.memory; ++i) {
      f32 past;
      copy_bytes(&past, extra + 4 * i, 4);
      if (!(past >= -config.reach - 3 && past <= config.reach + 3)) return "a marker off the line";
    }
    return nullptr;
  }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(marker), SPARRING_STATE(wind), SPARRING_STATE(steps)};
  }
#endif
};

}  // namespace sparring::duel
