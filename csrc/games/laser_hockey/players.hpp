// What players do to their rackets and to the puck (sections 5 and 6).
#pragma once

#include "games/laser_hockey/physics.hpp"

namespace sparring::laser_hockey {

// What a player wants, in his own frame: forces in x (toward the opponent) and y, a torque, a
// shot.
struct Wish {
  f32 x, y, torque, shoot;
};

// 1 for the left player. The right one sees everything rotated by half a turn.
SPARRING_FN constexpr f32 side_of(int seat) { return seat == 0 ? 1.0f : -1.0f; }

inline constexpr f32 kMassPerStep = kRacketMass / kStepSeconds;

// A racket at its limits: no force beyond them, and the speed along that axis is lost. `place` is
// its origin, from the center of the rink.
SPARRING_FN inline Vec within_limits(Body& racket, Vec place, int seat, Vec force) {
  constexpr f32 kFarthestBack = 3.5f, kFarthestAside = 2.8f;
  const f32 side = side_of(seat);
  const f32 forward = side * place.x, forward_force = side * force.x;
  if ((forward < -kFarthestBack && forward_force < 0) || (forward > 0 && forward_force > 0)) {
    racket.velocity.x = 0;
    force.x = 0;
  }
  if ((place.y > kFarthestAside && force.y > 0) || (place.y < -kFarthestAside && force.y < 0)) {
    racket.velocity.y = 0;
    force.y = 0;
  }
  return force;
}

// Section 5.1. Sets force and damping; may stop the racket at a limit.
SPARRING_FN inline void push_racket(Body& racket, Vec place, int seat, const Wish& wish,
                                    Drive& drive) {
  constexpr f32 kForce = 6000, kCenterZone = -0.5f, kGatedSpeed = 10;
  constexpr f32 kLooseDamping = 5, kTightDamping = 20;
  const f32 side = side_of(seat);
  Vec force = {side * kForce * wish.x, side * kForce * wish.y};
  if (side * place.x > kCenterZone) {  // the center line throws the racket back
    force.x = side * racket.velocity.x > 0 ? -2 * racket.velocity.x * kMassPerStep : 0.0f;
    force.x -= side * place.x * racket.velocity.x * kMassPerStep;
    drive.damping = kTightDamping;
    drive.force = within_limits(racket, place, seat, force);
    return;
  }
  const f32 speed = length(racket.velocity);
  if (speed < kGatedSpeed) {
    drive.damping = kLooseDamping;
    drive.force = within_limits(racket, place, seat, force);
    return;
  }
  drive.damping = kTightDamping;
  const bool slows = length(racket.velocity + 1 / kMassPerStep * force) < speed;
  drive.force = slows ? within_limits(racket, place, seat, force) : Vec{0, 0};
}

// Section 5.2. Beyond a third of a half turn the racket is turned back.
SPARRING_FN inline void turn_racket(const Body& racket, const Wish& wish, Drive& drive) {
  constexpr f32 kTorque = 400, kMaxAngle = kPi / 3, kBack = 0.1f * kMassPerStep;
  if (magnitude(racket.angle) <= kMaxAngle) {
    drive.torque = kTorque * wish.torque;
    drive.spin_damping = 2;
    return;
  }
  drive.torque = -kBack * racket.angle;
  if (racket.angle * racket.spin > 0) drive.torque -= kBack * racket.spin;
  drive.spin_damping = 10;
}

// Section 6.1: above its speed limit the puck is slowed down hard.
SPARRING_FN inline f32 puck_damping(const Body& puck) {
  constexpr f32 kFastest = 25;
  return length(puck.velocity) > kFastest ? 10.0f : 0.05f;
}

inline constexpr u8 kCaught = 15;      // steps that a puck can be kept, the catch included
inline constexpr f32 kShotSpeed = 60;  // that a shot adds

// Section 6.3: a kept puck follows its racket until it is shot. `kept` counts down.
SPARRING_FN inline void hold_puck(World& world, int seat, const Wish& wish, u8& kept,
                                  Drive& puck_drive) {
  constexpr f32 kShootAbove = 0.5f;
  if (kept <= 1) return;
  const Body& racket = world.body[seat];
  const SinCos turn = world.turn[seat];
  world.body[kPuck].center = world.pose(seat).origin;
  world.body[kPuck].velocity = racket.velocity;
  --kept;
  if (kept > 1 && !(wish.shoot > kShootAbove)) return;
  kept = 0;
  const f32 strength = side_of(seat) * kShotSpeed * (kPuckMass / kStepSeconds);
  puck_drive.force = puck_drive.force + strength * Vec{turn.cos, turn.sin};
}

// Section 6.2: who touches a puck that does not fly away from him catches it.
SPARRING_FN inline void catch_puck(const Body& puck, int seat, u8& kept) {
  constexpr f32 kSlowest = 0.1f;
  if (kept == 0 && side_of(seat) * puck.velocity.x < kSlowest) kept = kCaught;
}

}  // namespace sparring::laser_hockey
