// Laser hockey for people: names, configuration and state fields, set-up, checks. Host only.
#pragma once

#include "games/laser_hockey/match.hpp"
#include "games/laser_hockey/observation.hpp"

#if SPARRING_HOST
#include <cmath>

namespace sparring::laser_hockey {

// A row is copied as it lies: the names are those of the members.
static_assert(offsetof(Seen, x) == byte_of(kRacketFeatures, "x") &&
              offsetof(Seen, y) == byte_of(kRacketFeatures, "y") &&
              offsetof(Seen, angle) == byte_of(kRacketFeatures, "angle") &&
              offsetof(Seen, vx) == byte_of(kRacketFeatures, "vx") &&
              offsetof(Seen, vy) == byte_of(kRacketFeatures, "vy") &&
              offsetof(Seen, spin) == byte_of(kRacketFeatures, "spin"));
static_assert(offsetof(View, own) == byte_of(kRow, "own") &&
              offsetof(View, other) == byte_of(kRow, "other") &&
              offsetof(View, puck_x) == byte_of(kRow, "puck", "x") &&
              offsetof(View, puck_y) == byte_of(kRow, "puck", "y") &&
              offsetof(View, puck_vx) == byte_of(kRow, "puck", "vx") &&
              offsetof(View, puck_vy) == byte_of(kRow, "puck", "vy") &&
              offsetof(View, own_keep) == byte_of(kRow, "keep", "own") &&
              offsetof(View, other_keep) == byte_of(kRow, "keep", "other"));

template <class Control>
Spec Match<Control>::spec(const Config& config) {
  std::vector<Block> blocks = blocks_of(kRow);
  if (!config.keep_mode) blocks.pop_back();
  if (!config.scale_observation)
    for (Block& block : blocks)
      for (Column& column : block.columns) column.divisor = 1;
  return {.name = Control::kName,
          .title = Control::kTitle,
          .rules_version = 1,
          .blocks = blocks,
          .role_names = {"player"}};
}

template <class Control>
std::vector<Stat> Match<Control>::stats(const Config& config) {
  std::vector<Stat> stats = {
      {"goals", {kGoals}, {kGames}, "goals per game"},
      {"conceded", {kConceded}, {kGames}, "goals of the other per game"},
      {"touches", {kTouches}, {kGames}, "contacts with the puck per game"},
  };
  if (!config.keep_mode) return stats;
  stats.push_back({"shots", {kShots}, {kGames}, "kept pucks that were shot, per game"});
  stats.push_back({"keep_time", {kHeld}, {kSteps}, "share of the time with the puck kept"});
  return stats;
}

template <class Control>
std::string Match<Control>::action_name(const Config& config, int action) {
  static constexpr const char* kNames[kDirections] = {
      "back", "forward", "right", "left", "turn clockwise", "turn counter-clockwise"};
  const int levels = config.fineness - 1;
  if (action == 0) return "nothing";
  const int direction = (action - 1) / levels, level = (action - 1) % levels + 1;
  if (direction == kDirections) return "shoot";
  if (levels == 1) return kNames[direction];
  return std::string(kNames[direction]) + " " + std::to_string(level) + "/" +
         std::to_string(levels);
}

template <class Control>
std::vector<Field> Match<Control>::config_fields() {
  std::vector<Field> fields = {
      SPARRING_CONFIG(mode, 0, 3, "NORMAL|TRAIN_SHOOTING|TRAIN_DEFENSE|MIXTURE",
                      "how episodes start; MIXTURE draws one of the three", true),
      SPARRING_CONFIG(mixture, 0, 1e6, "", "MIXTURE: weights of the three modes", true),
      SPARRING_CONFIG(keep_mode, 0, 1, "", "rackets catch the puck and shoot it"),
      SPARRING_CONFIG(profile, 0, 1, "EXACT|FAST",
                      "EXACT follows the original step by step, FAST in its statistics"),
      SPARRING_CONFIG(serve, 0, 3, "DRAWN|ALTERNATING|LEFT|RIGHT",
                      "NORMAL: in whose half the puck starts", true),
      SPARRING_CONFIG(clear_keep_on_reset, 0, 1, "",
                      "0: a puck kept at the end is kept in the next episode, as in the original",
                      true),
      SPARRING_CONFIG(safe_spawn, 0, 1, "",
                      "0: training modes may start a racket inside a wall, as in the original",
                      true),
      SPARRING_CONFIG(timeout_as_terminated, 0, 1, "",
                      "1: the time limit terminates instead of truncating, as in the original"),
      SPARRING_CONFIG(scale_observation, 0, 1, "", "divide observations by fixed numbers"),
  };
  if (kActions > 0)
    fields.push_back(SPARRING_CONFIG(fineness, 2, Discrete::kMaxLevels + 1, "",
                                     "strengths of every direction, nothing included"));
  return fields;
}

// The bodies are shown as plain numbers: x and y of the center of mass, angle, speed x and y, spin.
template <class Control>
std::vector<Field> Match<Control>::state_fields() {
  return {
      field<f32[3 * sizeof(Body) / sizeof(f32)]>("body", offsetof(Game, body)),
      field<f32[4]>("turn", offsetof(Game, turn)),
      field<f32[2]>("kick", offsetof(Game, kick)),
      SPARRING_STATE(phase),
      SPARRING_STATE(time),
      SPARRING_STATE(mode),
      SPARRING_STATE(keep),
      SPARRING_STATE(touching),
      SPARRING_STATE(server),
      SPARRING_STATE(winner),
  };
}

template <class Control>
std::string Match<Control>::invalid(const Config& config) {
  if (config.mixture[0] + config.mixture[1] + config.mixture[2] <= 0)
    return "mixture needs at least one weight above 0";
  return {};
}

// A position that is set up has its bodies within 1000 m and radians; what a step adds to that is
// much less than 10.
inline constexpr i64 kFarthestStart = 1000, kFarthestStep = 10, kLongestMatch = 251;

// Mode, time, both keep counters, touching bits, server; then the bits of 22 doubles: left racket,
// right racket and puck with x, y, angle, vx, vy and spin each (positions from the center of the
// rink, rackets at their origin), the kick, both phases.
template <class Control>
std::string Match<Control>::setup(const Config& config, const std::vector<i64>& data) {
  constexpr size_t kWhole = 6, kNumbers = 22;
  constexpr f64 kMost = kFarthestStart;
  if (data.size() != kWhole + kNumbers)
    return "a position has 28 numbers, not " + std::to_string(data.size());
  const auto within = [&](size_t at, i64 high) { return data[at] >= 0 && data[at] <= high; };
  Match fresh{};
  if (!within(0, kModes - 1)) return "mode must be 0..2";
  fresh.mode = static_cast<u8>(data[0]);
  if (!within(1, fresh.max_time())) return "time is past the limit of the mode";
  fresh.time = static_cast<u16>(data[1]);
  for (size_t at = 0; at < 2; ++at) {
    if (!within(2 + at, kCaught) || data[2 + at] == 1) return "a keep counter must be 0 or 2..15";
    if (!config.keep_mode && data[2 + at]) return "a keep counter needs keep_mode";
    fresh.keep[at] = static_cast<u8>(data[2 + at]);
  }
  if (!within(4, 15)) return "touching must be 0..15";
  if (!within(5, 1)) return "server must be 0 or 1";
  fresh.touching = static_cast<u8>(data[4]);
  fresh.server = static_cast<u8>(data[5]);
  f32 number[kNumbers];
  for (size_t i = 0; i < kNumbers; ++i) {
    f64 given;
    copy_bytes(&given, &data[kWhole + i], sizeof given);
    if (!(given >= -kMost && given <= kMost))
      return "number " + std::to_string(i) + " is not within -1000..1000";
    const bool x = i < 18 && i % 6 == 0, y = i < 18 && i % 6 == 1;
    number[i] = static_cast<f32>(given + (x ? f64{kCenter.x} : y ? f64{kCenter.y} : 0));
  }
  for (int i = kLeft; i <= kPuck; ++i) {
    const f32* from = number + 6 * i;
    fresh.body[i] = {{from[0], from[1]}, from[2], {from[3], from[4]}, from[5]};
    if (i != kPuck) fresh.place_racket(i, {from[0], from[1]}, from[2]);
  }
  fresh.kick = {number[18], number[19]};
  for (int at = 0; at < 2; ++at) {
    f64 given;
    copy_bytes(&given, &data[kWhole + 20 + static_cast<size_t>(at)], sizeof given);
    fresh.phase[at] = static_cast<f32>(std::remainder(given, 2 * 3.14159265358979324));
  }
  sparring::Bounds declared(&fresh, sizeof fresh);
  fresh.bounds(config, declared);
  if (!declared.error().empty()) return declared.error();
  if (const char* wrong = fresh.audit(config)) return wrong;
  *this = fresh;
  return {};
}

// A step moves a body by 2 m and a quarter turn at most, that is 100 m/s and 78.5 rad/s; a wall at
// the end of the step can still turn one into the other.
inline constexpr i64 kFastest = 120, kMaxSpin = 400;

template <class Control>
void Match<Control>::bounds(const Config& config, sparring::Bounds& bounds) const {
  constexpr i64 kFarthest = kFarthestStart + kFarthestStep * kLongestMatch;
  for (const Body& at : body) {
    bounds.within("center x", at.center.x, -kFarthest, kFarthest);
    bounds.within("center y", at.center.y, -kFarthest, kFarthest);
    bounds.within("angle", at.angle, -kFarthest, kFarthest);
    bounds.within("velocity x", at.velocity.x, -kFastest, kFastest);
    bounds.within("velocity y", at.velocity.y, -kFastest, kFastest);
    bounds.within("spin", at.spin, -kMaxSpin, kMaxSpin);
  }
  for (const SinCos& each : turn) {
    bounds.within("sine", each.sin, -2, 2);
    bounds.within("cosine", each.cos, -2, 2);
  }
  bounds.within("kick x", kick.x, -kFarthestStart, kFarthestStart);
  bounds.within("kick y", kick.y, -kFarthestStart, kFarthestStart);
  bounds.within("phase", phase, -4, 4);
  bounds.within("time", time, 0, kLongestMatch);
  bounds.within("mode", mode, 0, kModes - 1);
  bounds.within("keep", keep, 0, config.keep_mode ? kCaught : 0);
  bounds.within("touching", touching, 0, 15);
  bounds.within("server", server, 0, 1);
  bounds.within("winner", winner, -1, 1);
}

// What no position may leave, whatever the players do; null if all holds.
template <class Control>
const char* Match<Control>::audit(const Config&) const {
  const f32 farthest = static_cast<f32>(kFarthestStart + kFarthestStep * (time + 1));
  for (const Body& at : body) {
    if (length(at.velocity) > static_cast<f32>(kFastest))
      return "a body is faster than physics allows";
    const Vec from = at.center - kCenter;
    if (max(magnitude(from.x), magnitude(from.y)) > farthest || magnitude(at.angle) > farthest)
      return "a body is farther than it can have come";
  }
  for (int at = kLeft; at <= kRight; ++at) {
    const SinCos wanted = sincos_of(body[at].angle);
    if (turn[at].sin != wanted.sin || turn[at].cos != wanted.cos)
      return "a racket is turned by another angle than its own";
  }
  for (u8 count : keep)
    if (count == 1) return "a kept puck was not let go";
  if (time > max_time() + 1) return "the match is longer than its limit";
  const int scored = winner == 1 ? kInRightGoal : winner == -1 ? kInLeftGoal : 0;
  return (touching & scored) == scored ? nullptr : "the winner's puck missed the goal";
}

}  // namespace sparring::laser_hockey
#endif  // SPARRING_HOST
