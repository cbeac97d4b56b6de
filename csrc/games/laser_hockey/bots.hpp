// The scripted players (section 11). They see what a player sees; the phase of their rotation is
// part of the match. With discrete actions they draw in which direction they push.
#pragma once

#include "games/laser_hockey/observation.hpp"

namespace sparring::laser_hockey {

// Drives one coordinate to its target; near it the speed is braked.
SPARRING_FN inline f32 drive_to(f32 target, f32 at, f32 speed, f32 gain, f32 brake_within) {
  constexpr f32 kBrake = 0.5f;
  const f32 error = target - at;
  const bool brakes = magnitude(error / (speed + 0.01f)) < brake_within;
  return clamp(error * gain - (brakes ? kBrake * speed : 0.0f), -1, 1);
}

SPARRING_FN inline Wish basic_wish(const View& view, f32 phase, bool weak) {
  constexpr f32 kHome = -3.5f, kSlow = 0.5f, kAbreast = 0.5f, kStrike = 0.2f, kLead = 0.1f;
  constexpr f32 kShootBelow = 7;
  const f32 gain = weak ? 0.5f : 10.0f;
  const Seen& own = view.own;
  Vec target = {kHome, 0};
  if (view.puck_vx < kSlow) {
    target.y = view.puck_y;
    if (own.x < view.puck_x && magnitude(own.y - view.puck_y) < kAbreast) {
      const f32 distance = length({own.x - view.puck_x, own.y - view.puck_y});
      target = {view.puck_x + kStrike, view.puck_y + kLead * view.puck_vy * distance};
    }
  }
  const f32 angle = kPi / 3 * sincos_of(phase).sin;
  return {drive_to(target.x, own.x, own.vx, gain, 0.1f),
          drive_to(target.y, own.y, own.vy, gain / 5, 0.1f),
          drive_to(angle, own.angle, own.spin, gain / 2, 1),
          view.own_keep > 0 && view.own_keep < kShootBelow ? 1.0f : 0.0f};
}

template <class Control>
SPARRING_FN inline typename Match<Control>::Action Match<Control>::act(int bot,
                                                                       const Config& config,
                                                                       int row, const Legal<Match>&,
                                                                       Rng& rng) const {
  const Wish wish =
      bot == kIdle ? Wish{} : basic_wish(view_of(*this, row), phase[row], bot == kWeak);
  return Control::action_of(config.fineness - 1, wish, rng);
}

}  // namespace sparring::laser_hockey
