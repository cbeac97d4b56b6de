// A test game whose decisions can all be forced: one seat walks down a corridor.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::corridor {

struct Config {
  i32 length = 3;  // steps to the end; 0: it has none
  i32 door = 0;    // the step that offers a choice, from 1 on; 0: none does
};

struct Game {
  using Config = corridor::Config;
  using Action = i32;  // on, or through the door, which leads on too
  static constexpr int kMaxSeats = 1, kRows = 1, kRoles = 1, kActions = 2;
  static constexpr const char* kParts[] = {"doors"};
  static constexpr const char* kEnds[] = {"the end"};

  static constexpr int kFar = 1 << 30;  // in a corridor without an end

  i32 steps;
  i32 doors;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 1, .actions = 2, .obs_bytes = 16};
  }
  SPARRING_FN int seat(int) const { return 0; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int) const { return static_cast<f32>(doors); }
  SPARRING_FN void reset(const Config&, Rng&) { *this = Game{}; }

  SPARRING_FN void legal(const Config& config, int, Legal<Game>& out) const {
    out.set(0);
    if (steps + 1 == config.door) out.set(1);
  }
  SPARRING_FN void observe(const Config&, int, u8* out) const { out[0] = static_cast<u8>(steps); }
  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result) {
    doors += actions[0];
    result.add_reward(0, 0, static_cast<f32>(actions[0]));
    if (++steps == config.length) result.terminate(0);
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = "corridor",
            .title = "Corridor: a test game",
            .rules_version = 1,
            .blocks = {{"place", 1, {{"steps", Type::kU8, 1}}}},
            .role_names = {"walker"}};
  }
  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(length, 0, 200, "", "steps to the end; 0: it has none"),
            SPARRING_CONFIG(door, 0, 200, "", "the step that offers a choice; 0: none does")};
  }
  void bounds(const Config& config, Bounds& bounds) const {
    bounds.within("steps", steps, 0, config.length ? config.length : kFar);
    bounds.within("doors", doors, 0, 1);
  }
  const char* audit(const Config& config) const {
    return doors && (!config.door || steps < config.door) ? "a door before its step" : nullptr;
  }
  bool ended(const Config& config) const { return config.length && steps == config.length; }
  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(steps), SPARRING_STATE(doors)};
  }
#endif
};

}  // namespace sparring::corridor
