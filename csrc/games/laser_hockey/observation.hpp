// What a player sees (section 8): himself, the other, the puck, all from his own side.
#pragma once

#include "games/laser_hockey/match.hpp"

namespace sparring::laser_hockey {

// What the numbers of a row are; with scale_observation they are divided, which brings them near 1.
inline constexpr Feature kRacketFeatures[] = {{"x", Type::kF32},           {"y", Type::kF32},
                                              {"angle", Type::kF32, 0.5f}, {"vx", Type::kF32, 4},
                                              {"vy", Type::kF32, 4},       {"spin", Type::kF32, 4}};
inline constexpr Feature kPuckFeatures[] = {
    {"x", Type::kF32, 2}, {"y", Type::kF32, 2}, {"vx", Type::kF32, 10}, {"vy", Type::kF32, 10}};
inline constexpr Feature kKeepFeatures[] = {{"own", Type::kF32, 4}, {"other", Type::kF32, 4}};
inline constexpr Section kRow[] = {{"own", kRacketFeatures},
                                   {"other", kRacketFeatures},
                                   {"puck", kPuckFeatures},
                                   {"keep", kKeepFeatures}};  // with keep_mode alone

// A racket or the puck as one side sees it; rotations look the same from both.
struct Seen {
  f32 x, y, angle, vx, vy, spin;
};

struct View {
  Seen own, other;
  f32 puck_x, puck_y, puck_vx, puck_vy;
  f32 own_keep, other_keep;
};

template <class Control>
SPARRING_FN inline Seen seen_racket(const Match<Control>& match, int at, f32 side) {
  const Body& racket = match.body[at];
  const Vec place = match.place(at);
  return {side * place.x,           side * place.y,           racket.angle,
          side * racket.velocity.x, side * racket.velocity.y, racket.spin};
}

template <class Control>
SPARRING_FN inline View view_of(const Match<Control>& match, int me) {
  const f32 side = side_of(me);
  const Body& puck = match.body[kPuck];
  const Vec place = match.place(kPuck);
  return {.own = seen_racket(match, me, side),
          .other = seen_racket(match, 1 - me, side),
          .puck_x = side * place.x,
          .puck_y = side * place.y,
          .puck_vx = side * puck.velocity.x,
          .puck_vy = side * puck.velocity.y,
          .own_keep = static_cast<f32>(match.keep[me]),
          .other_keep = static_cast<f32>(match.keep[1 - me])};
}

template <class Control>
SPARRING_APART SPARRING_FN inline void Match<Control>::observe(const Config& config, int me,
                                                               u8* SPARRING_RESTRICT out) const {
  static_assert(sizeof(View) == bytes_of(kRow));
  const View view = view_of(*this, me);
  copy_bytes(out, &view, config.keep_mode ? bytes_of(kRow) : byte_of(kRow, "keep"));
}

}  // namespace sparring::laser_hockey
