// The two kinds of actions (section 9): four numbers, or one of a list.
#pragma once

#include "core/game.hpp"
#include "games/laser_hockey/players.hpp"

namespace sparring::laser_hockey {

inline constexpr int kDirections = 6;  // -x, +x, -y, +y, -torque, +torque

struct Continuous {
  using Action = Box<4>;
  static constexpr int kActions = 0;
  static constexpr const char* kName = "laser_hockey";
  static constexpr const char* kTitle = "Laser hockey: two rackets, one puck, continuous actions";

  SPARRING_FN static int count(int, bool) { return 0; }

  SPARRING_FN static Wish wish_of(int, const Action& action) {
    return {action.value[0], action.value[1], action.value[2], action.value[3]};
  }
  SPARRING_FN static Action action_of(int, const Wish& wish, Rng&) {
    return {{wish.x, wish.y, wish.torque, wish.shoot}};
  }
};

// Nothing, then every direction in `levels` strengths, then the shot where pucks can be kept.
struct Discrete {
  using Action = i32;
  static constexpr int kMaxLevels = 10;
  static constexpr int kActions = 2 + kDirections * kMaxLevels;
  static constexpr const char* kName = "laser_hockey_discrete";
  static constexpr const char* kTitle = "Laser hockey: two rackets, one puck, discrete actions";

  SPARRING_FN static int count(int levels, bool keeps) { return 1 + kDirections * levels + keeps; }

  SPARRING_FN static Wish wish_of(int levels, Action action) {
    Wish wish{};
    const int at = action - 1, direction = at / levels;
    if (action == 0) return wish;
    if (direction == kDirections) {
      wish.shoot = 1;
      return wish;
    }
    const f32 sign = direction & 1 ? 1.0f : -1.0f;
    const f32 value = sign * static_cast<f32>(at % levels + 1) / static_cast<f32>(levels);
    (direction < 2 ? wish.x : direction < 4 ? wish.y : wish.torque) = value;
    return wish;
  }

  // One direction at a time: drawn in proportion to what is wanted of each.
  SPARRING_FN static Action action_of(int levels, const Wish& wish, Rng& rng) {
    if (wish.shoot > 0) return 1 + kDirections * levels;
    const f32 x = magnitude(wish.x), y = magnitude(wish.y), torque = magnitude(wish.torque);
    const f32 at = rng.uniform() * (x + y + torque);
    const int axis = at < x ? 0 : at < x + y ? 1 : 2;
    const f32 wanted = axis == 0 ? wish.x : axis == 1 ? wish.y : wish.torque;
    const int level = static_cast<int>(magnitude(wanted) * static_cast<f32>(levels) + 0.5f);
    if (level == 0) return 0;
    return (2 * axis + (wanted > 0)) * levels + level;
  }
};

}  // namespace sparring::laser_hockey
