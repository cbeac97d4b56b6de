// Laser hockey: a match from the serve to the goal. Section numbers are those of the specification;
// docs/games/laser_hockey.md lists the flags.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"
#include "games/laser_hockey/controls.hpp"

namespace sparring::laser_hockey {

enum Mode : u8 { kNormal, kShooting, kDefense, kModes };
inline constexpr int kMixture = kModes;  // of the configuration only: a mode is drawn
enum Profile { kExact, kFast };
enum Serve { kDrawn, kAlternating, kLeftServes, kRightServes };

struct Config {
  i32 mode = kNormal;
  f32 mixture[kModes] = {1, 1, 1};  // weights of the modes
  i32 keep_mode = 1;
  i32 profile = kExact;
  i32 serve = kDrawn;
  i32 clear_keep_on_reset = 1;
  i32 safe_spawn = 1;
  i32 timeout_as_terminated = 0;
  i32 scale_observation = 0;
  i32 fineness = 2;  // discrete actions: steps from nothing to full strength, plus one
};

// Counted by racket; a puck is touched when it comes into contact, and held from the catch on.
enum Counter { kSteps, kHeld, kTouches, kShots, kGames, kGoals, kConceded };

enum Part { kGoalPart, kClosenessPart, kTouchPart, kDirectionPart };
enum End { kGoalEnd, kTimeEnd };

// Bots (section 11).
enum Bot { kIdle, kWeak, kStrong };

template <class Control>
struct Match {
  using Game = Match;
  using Config = laser_hockey::Config;
  using Action = typename Control::Action;
  static constexpr int kMaxSeats = 2, kRows = 2, kRoles = 1, kActions = Control::kActions;
  static constexpr const char* kParts[] = {"goal", "closeness", "touch", "direction"};
  static constexpr const char* kBots[] = {"idle", "weak", "strong"};
  static constexpr const char* kEnds[] = {"goal", "time limit"};
  static constexpr const char* kCounters[] = {"steps", "held",  "touches", "shots",
                                              "games", "goals", "conceded"};

  Body body[3];    // left racket, right racket, puck
  SinCos turn[2];  // of the rackets
  Vec kick;        // speed that the puck is given in the first step (TRAIN_DEFENSE)
  f32 phase[2];    // of the rotation that the scripted players go through
  u16 time;
  u8 mode;
  u8 keep[2];   // steps for which the puck can still be kept; 0: not kept
  u8 touching;  // bits of Touch
  u8 server;
  i8 winner;  // 1: left, -1: right, 0: nobody

  SPARRING_FN static Shape shape(const Config& config) {
    return {.seats = 2,
            .actions = Control::count(config.fineness - 1, config.keep_mode),
            .obs_bytes = config.keep_mode ? 80 : 64};
  }

  // The original reward: ten for a goal, and a penalty for being far from a puck that lies in the
  // own half.
  SPARRING_FN static f32 default_weight(const Config&, int part) {
    return part == kGoalPart ? 10.0f : part == kClosenessPart ? 1.0f : 0.0f;
  }

  SPARRING_FN int seat(int row) const { return row; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return static_cast<f32>(at == 0 ? winner : -winner);  // never -0
  }

  SPARRING_FN int max_time() const { return mode == kNormal ? 250 : 80; }

  // Where a racket or the puck is, from the center of the rink.
  SPARRING_FN Vec place(int at) const {
    const Vec origin = at == kPuck ? body[kPuck].center : pose_of(body[at], at, turn[at]).origin;
    return origin - kCenter;
  }

  // `where` is the racket's origin in the rink.
  SPARRING_FN void place_racket(int at, Vec where, f32 angle) {
    turn[at] = sincos_of(angle);
    body[at].angle = angle;
    body[at].center = where + rotated(turn[at], center_of_mass(at));
  }

  // Section 7. Draws, each only where it is needed: mode, server, right racket x and y, puck x and
  // y, target y, both phases. What goes on from the episode before: whose turn it is to serve, the
  // phases, and kept pucks if the configuration says so. A fresh game is all zeros.
  SPARRING_FN void reset(const Config& config, Rng& rng) {
    const Match before = *this;
    *this = Match{};
    if (!config.clear_keep_on_reset)
      SPARRING_FOR (int at = 0; at < 2; ++at) keep[at] = before.keep[at];
    mode = draw_mode(config, rng);
    server = mode == kNormal ? draw_server(config, before.server, rng) : before.server;
    place_racket(kLeft, kCenter + Vec{-3, 0}, 0);
    const Vec spawn = mode == kNormal ? Vec{3, 0} : draw_spawn(config, rng);
    place_racket(kRight, kCenter + spawn, 0);
    if (mode == kDefense) {
      draw_attack(rng);
    } else {
      const f32 x = between(rng, 1, 2), y = between(rng, -1, 1);
      body[kPuck].center = kCenter + Vec{mode == kNormal && server == 1 ? x : -x, y};
    }
    SPARRING_FOR (int at = 0; at < 2; ++at)
      phase[at] = before.phase[at] == 0 ? between(rng, 0, kPi) : before.phase[at];
  }

  // Whose turn it is to serve goes on, and so do phases that the start does not give.
  SPARRING_FN void begin_from(const Config&, const Match& start, Rng& rng) {
    const Match before = *this;
    *this = start;
    server = before.server;
    SPARRING_FOR (int at = 0; at < 2; ++at)
      if (phase[at] == 0)
        phase[at] = before.phase[at] == 0 ? between(rng, 0, kPi) : before.phase[at];
  }

  // Section 4.
  SPARRING_FN void step(const Config& config, const Action* actions, Rng& rng, Result& result) {
    World world = open_world();
    Drive drive[3]{};
    Wish wish[2];
    SPARRING_FOR (int at = 0; at < 2; ++at) {
      wish[at] = Control::wish_of(config.fineness - 1, actions[at]);
      push_racket(world.body[at], place(at), at, wish[at], drive[at]);
      turn_racket(world.body[at], wish[at], drive[at]);
    }
    drive[kPuck].damping = puck_damping(world.body[kPuck]);
    drive[kPuck].force = kPuckMass / kStepSeconds * kick;
    kick = {0, 0};
    if (config.keep_mode)
      SPARRING_FOR (int at = 0; at < 2; ++at) {
        if (keep[at]) result.recorder.count(kHeld, at);
        const bool held = keep[at];
        hold_puck(world, at, wish[at], keep[at], drive[kPuck]);
        if (held && keep[at] == 0) result.recorder.count(kShots, at);
      }

    Contacts contacts;
    notice(config, find_contacts(world, contacts), world.body[kPuck], result);
    advance(world, drive, contacts, config.profile == kExact ? kExactEffort : kFastEffort);

    close_world(world);
    SPARRING_FOR (f32& each : phase) {
      each += between(rng, 0, 0.2f);
      if (each > kPi) each -= 2 * kPi;  // small numbers are exact numbers
    }
    pay(result);
    finish(config, result);
  }

  SPARRING_APART SPARRING_FN void observe(const Config& config, int me,
                                          u8* SPARRING_RESTRICT out) const;
  SPARRING_FN void legal(const Config& config, int, Legal<Match>& out) const {
    out.word[0] = (u64{1} << shape(config).actions) - 1;
  }
  SPARRING_FN Action act(int bot, const Config& config, int row, const Legal<Match>&,
                         Rng& rng) const;

#if SPARRING_HOST
  static Spec spec(const Config& config);
  static std::vector<Stat> stats(const Config& config);
  static std::string action_name(const Config& config, int action);
  static std::vector<Field> config_fields();
  static std::vector<Field> state_fields();
  static std::string invalid(const Config& config);
  std::string setup(const Config& config, const std::vector<i64>& data);
  void bounds(const Config& config, sparring::Bounds& bounds) const;
  const char* audit(const Config& config) const;
  bool ended(const Config&) const { return winner != 0 || time > max_time(); }
#endif

 private:
  SPARRING_FN static f32 between(Rng& rng, f32 low, f32 high) {
    return low + (high - low) * rng.uniform();
  }

  SPARRING_FN World open_world() const {
    constexpr SinCos kUpright = {0, 1};
    return {.body = {body[kLeft], body[kRight], body[kPuck], Body{}},
            .turn = {turn[kLeft], turn[kRight], kUpright, kUpright}};
  }

  SPARRING_FN void close_world(const World& world) {
    SPARRING_FOR (int i = kLeft; i <= kPuck; ++i) body[i] = world.body[i];
    SPARRING_FOR (int i = kLeft; i <= kRight; ++i) turn[i] = world.turn[i];
  }

  SPARRING_FN static u8 draw_mode(const Config& config, Rng& rng) {
    if (config.mode != kMixture) return static_cast<u8>(config.mode);
    const f32* weight = config.mixture;
    f32 at = rng.uniform() * (weight[0] + weight[1] + weight[2]);
    int drawn = 0;
    while (drawn + 1 < kModes && at >= weight[drawn]) at -= weight[drawn++];
    while (weight[drawn] <= 0) --drawn;  // rounding must not choose what has no weight
    return static_cast<u8>(drawn);
  }

  SPARRING_FN static u8 draw_server(const Config& config, u8 last, Rng& rng) {
    if (config.serve == kDrawn) return static_cast<u8>(rng.below(2));
    if (config.serve == kAlternating) return 1 - last;
    return config.serve == kRightServes;
  }

  // In the training modes the right racket starts anywhere, in the original even inside a wall.
  SPARRING_FN static Vec draw_spawn(const Config& config, Rng& rng) {
    constexpr f32 kSafe = 3.4f;
    const f32 x = 3 + between(rng, -10.0f / 3, 10.0f / 6), y = between(rng, -2, 2);
    return {config.safe_spawn ? min(x, kSafe) : x, y};
  }

  // TRAIN_DEFENSE: the puck is shot from the right half toward the left goal.
  SPARRING_FN void draw_attack(Rng& rng) {
    const f32 x = between(rng, 0, 10.0f / 3), y = 0.8f * between(rng, -4, 4);
    const Vec way = Vec{-5, 0.6f * between(rng, -1.25f, 1.25f)} - Vec{x, y};
    body[kPuck].center = kCenter + Vec{x, y};
    kick = kShotSpeed / length(way) * way;
  }

  // What happens when the puck begins to touch a racket or a goal.
  SPARRING_FN void notice(const Config& config, u8 touches, const Body& puck, Result& result) {
    const int begun = touches & ~touching;
    touching = touches;
    if (begun & kOnLeft) result.recorder.count(kTouches, kLeft);
    if (begun & kOnRight) result.recorder.count(kTouches, kRight);
    if (config.keep_mode) {
      if (begun & kOnLeft) catch_puck(puck, kLeft, keep[kLeft]);
      if (begun & kOnRight) catch_puck(puck, kRight, keep[kRight]);
    }
    if (begun & kInRightGoal) winner = 1;
    if (begun & kInLeftGoal) winner = -1;
  }

  // Section 10.
  SPARRING_FN void pay(Result& result) const {
    const f32 limit = static_cast<f32>(max_time());
    const f32 per_meter = -30 / (250.0f / 60 * limit / 2);
    const Vec puck = place(kPuck);
    const f32 puck_speed = body[kPuck].velocity.x;
    SPARRING_FOR (int at = 0; at < 2; ++at) {
      const f32 side = side_of(at);
      if (side * puck.x < 0 && side * puck_speed <= 0)
        result.add_reward(kClosenessPart, at, per_meter * length(place(at) - puck));
      result.add_reward(kTouchPart, at, keep[at] == kCaught);
      result.add_reward(kDirectionPart, at, side * puck_speed / (25 * limit));
      if (winner) result.add_reward(kGoalPart, at, side * static_cast<f32>(winner));
    }
  }

  SPARRING_FN void finish(const Config& config, Result& result) {
    const bool late = time++ >= max_time();
    if (winner)
      result.terminate(kGoalEnd);
    else if (late && config.timeout_as_terminated)
      result.terminate(kTimeEnd);
    else if (late)
      result.truncate(kTimeEnd);
    SPARRING_FOR (int at = 0; result.recorder.counts && at < 2; ++at) {
      result.recorder.count(kSteps, at);
      if (!result.over()) continue;
      result.recorder.count(kGames, at);
      if (winner) result.recorder.count(score(config, at) > 0 ? kGoals : kConceded, at);
    }
  }
};

}  // namespace sparring::laser_hockey

#include "games/laser_hockey/bots.hpp"
#include "games/laser_hockey/describe.hpp"
#include "games/laser_hockey/observation.hpp"
