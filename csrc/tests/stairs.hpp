// A test game with goals: say how far you will climb, then climb or rest, one flight after another.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"
#include "core/goals.hpp"

namespace sparring::stairs {

struct Config {
  i32 flights = 2;  // goals of an episode
  i32 steps = 3;    // decisions about each of them
};

enum Part { kReached, kStep, kFlights };

inline constexpr Feature kPlace[] = {
    {"flight"}, {"step"}, {"height"}, {"pursues"}, {"goal", Type::kU8, 8}};
inline constexpr Section kRow[] = {{"place", kPlace}};
SPARRING_FN consteval int byte(const char* name) { return byte_of(kRow, "place", name); }

struct Game {
  using Config = stairs::Config;
  using Action = i32;  // how far, 0 to 7; or 8: rest, 9: climb
  static constexpr int kMaxSeats = 1, kRows = 1, kRoles = 2, kActions = 10;
  static constexpr int kRest = 8, kClimb = 9;
  static constexpr const char* kParts[] = {"reached", "step", "flights"};
  // A stage is a step, and one more the end of the flight.
  static constexpr int kGoalRole = 0, kStages = 9;

  u8 flight, step_number, goal, height;
  u8 climbed;  // bit s: step s was climbed

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 1, .actions = kActions, .obs_bytes = 16};
  }
  SPARRING_FN bool asks() const { return goal == 255; }
  SPARRING_FN int seat(int) const { return 0; }
  SPARRING_FN int role(int) const { return asks() ? 0 : 1; }
  SPARRING_FN f32 score(const Config&, int) const { return static_cast<f32>(flight); }
  SPARRING_FN void reset(const Config&, Rng&) {
    *this = Game{};
    goal = 255;
  }

  SPARRING_FN void legal(const Config& config, int, Legal<Game>& out) const {
    if (!asks()) {
      out.set(kRest);
      out.set(kClimb);
    }
    for (int g = 0; asks() && g <= config.steps; ++g) out.set(g);
  }
  SPARRING_FN void observe(const Config&, int, u8* out) const {
    zero_bytes(out, 16);
    out[byte("flight")] = flight;
    out[byte("step")] = step_number;
    out[byte("height")] = height;
    out[byte("pursues")] = !asks();
    out[byte("goal")] = asks() ? u8{0} : goal;
  }

  // A step is worth climbing as long as the goal is above.
  SPARRING_FN static f32 step_pay(int to_go, bool climbs) {
    return climbs == (to_go > 0) ? 1.0f : -1.0f;
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result) {
    if (asks()) {
      goal = static_cast<u8>(actions[0]);
      return;
    }
    const bool climbs = actions[0] == kClimb;
    result.add_reward(kStep, 0, step_pay(goal - height, climbs));
    climbed = static_cast<u8>(climbed | climbs << step_number);
    height = static_cast<u8>(height + climbs);
    if (++step_number < config.steps) return;
    result.add_reward(kReached, 0, height == goal ? 1.0f : 0.0f);
    result.recorder.record_goal(
        0, 1u | static_cast<u32>(goal << 1 | climbed << 9 | config.steps << 17));
    ++flight;
    step_number = height = climbed = 0;
    goal = 255;
    if (flight < config.flights) return;
    result.add_reward(kFlights, 0, 1.0f);
    result.terminate(0);
  }

  SPARRING_FN static GoalDecision goal_decision(const Config&, const u8* obs) {
    const bool pursues = obs[byte("pursues")];
    return {.role = pursues,
            .stage = obs[byte("flight")] * kStages + obs[byte("step")],
            .sets_goal = !pursues};
  }
  SPARRING_FN static int desired_goal(u32 goal_result) {
    return static_cast<int>(goal_result >> 1 & 255);
  }
  SPARRING_FN static int achieved_goal(u32 goal_result) { return popcount(goal_result >> 9 & 255); }
  SPARRING_FN static int goal_action(int to) { return to; }
  SPARRING_FN static void set_goal(const Config&, u8* obs, int to) {
    obs[byte("goal")] = static_cast<u8>(to);
  }
  SPARRING_FN static bool is_goal_reward(int part) { return part != kFlights; }
  SPARRING_FN static f32 goal_reward(const Config&, const f32* weight, int role, u32 goal_result,
                                     int to, int from, int until) {
    const int first = from % kStages, end = until - (from - first);
    const int steps = static_cast<int>(goal_result >> 17 & 15);
    f32 reward = 0;
    int high = 0;
    for (int s = 0; s < min(steps, end); ++s) {
      const bool climbs = goal_result >> (9 + s) & 1;
      if (s >= first) reward += weight[kStep * kRoles + role] * step_pay(to - high, climbs);
      high += climbs;
    }
    return end > steps && high == to ? reward + weight[kReached * kRoles + role] : reward;
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = "stairs",
            .title = "Stairs: a test game with goals",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"planner", "climber"},
            .chance = false};
  }
  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(flights, 1, 20, "", "goals of an episode"),
            SPARRING_CONFIG(steps, 1, 7, "", "decisions about each of them")};
  }
  void bounds(const Config& config, Bounds& bounds) const {
    bounds.within("flight", flight, 0, config.flights);
    bounds.within("step_number", step_number, 0, config.steps - 1);
    bounds.any(goal);
    bounds.within("height", height, 0, config.steps);
    bounds.within("climbed", climbed, 0, (1 << config.steps) - 1);
  }
  const char* audit(const Config& config) const {
    if (!asks() && goal > config.steps) return "a goal above the stairs";
    if (asks() && step_number) return "a step without a goal";
    if (climbed >> step_number || height != popcount(climbed)) return "steps do not add up";
    return flight == config.flights && !asks() ? "a goal behind the end" : nullptr;
  }
  bool ended(const Config& config) const { return flight == config.flights; }
  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(flight), SPARRING_STATE(goal), SPARRING_STATE(height)};
  }
#endif
};

}  // namespace sparring::stairs
