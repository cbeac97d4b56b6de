// One physics step: contacts, impulses, motion, overlaps, impacts (section 12).
#pragma once

#include "games/laser_hockey/impact.hpp"

namespace sparring::laser_hockey {

// What acts on a body during a step.
struct Drive {
  Vec force;
  f32 torque;
  f32 damping, spin_damping;
};

// Bits of what the puck touched at the last contact update.
enum Touch : u8 { kOnLeft = 1, kOnRight = 2, kInLeftGoal = 4, kInRightGoal = 8 };

SPARRING_FN inline bool in_goal(Vec puck, int goal) {
  const Bounds& box = kWall[goal].bounds;
  const Vec away = {max(max(box.low.x - puck.x, puck.x - box.high.x), 0.0f),
                    max(max(box.low.y - puck.y, puck.y - box.high.y), 0.0f)};
  constexpr f32 kReach = kPuckRadius + kSkin;
  return dot(away, away) <= kReach * kReach;
}

SPARRING_APART SPARRING_FN inline void find_wall_contacts(const World& world, int index,
                                                          Contacts& contacts) {
  const Vec center = world.body[index].center;
  const bool is_puck = index == kPuck;
  const f32 margin = kSkin + radius_of(index);
  if (is_clear({center, center}, margin + (is_puck ? 0.0f : kRacketReach))) return;
  const Vec extent = is_puck ? Vec{0, 0} : racket_extent(world.turn[index]);
  u32 near = walls_around(kWallsOf[index], {center - extent, center + extent}, margin);
  if (near && !is_puck)
    near = walls_around(near, bounds_of(kRacket[index], world.pose(index)), margin);
  const Material material = is_puck ? kPuckOnWall : kRacketOnWall;
  SPARRING_FOR (; near; near &= near - 1) {
    const int wall = lowest_bit(near);
    contacts.add(kRink, index, material, touch_wall(world, wall, index), wall);
  }
}

// Fills the contacts in the order in which they are solved and returns what the puck touches.
SPARRING_FN inline u8 find_contacts(const World& world, Contacts& contacts) {
  u8 touches = 0;
  const Vec puck = world.body[kPuck].center;
  contacts.count = 0;
  SPARRING_FOR (int racket = kLeft; racket <= kRight; ++racket) {
    constexpr f32 kReach = kRacketReach + kSkin + kPuckRadius;
    const Vec away = puck - world.body[racket].center;
    if (dot(away, away) > kReach * kReach) continue;
    const int before = contacts.count;
    contacts.add(racket, kPuck, kPuckOnRacket, collide(kRacket[racket], world.pose(racket), puck));
    if (contacts.count > before) touches |= static_cast<u8>(kOnLeft << racket);
  }
  find_wall_contacts(world, kPuck, contacts);
  constexpr f32 kReach = 2 * (kRacketReach + kSkin);
  const Vec between = world.body[kRight].center - world.body[kLeft].center;
  if (dot(between, between) <= kReach * kReach)
    contacts.add(kLeft, kRight, kRacketOnRacket,
                 collide(kRacket[kLeft], world.pose(kLeft), kRacket[kRight], world.pose(kRight)));
  find_wall_contacts(world, kLeft, contacts);
  find_wall_contacts(world, kRight, contacts);
  if (in_goal(puck, kLeftGoal)) touches |= kInLeftGoal;
  if (in_goal(puck, kRightGoal)) touches |= kInRightGoal;
  return touches;
}

SPARRING_FN inline void accelerate(Body& body, int index, const Drive& drive) {
  body.velocity = clamp(1 - kStepSeconds * drive.damping, 0, 1) *
                  (body.velocity + kStepSeconds * kInverseMass[index] * drive.force);
  body.spin = clamp(1 - kStepSeconds * drive.spin_damping, 0, 1) *
              (body.spin + kStepSeconds * kInverseInertia[index] * drive.torque);
}

// Bodies that touch each other are solved together, others apart (section 12.2): for each body,
// the contacts of the group whose lowest body it is.
struct Groups {
  u32 contacts[3];
};

SPARRING_FN inline Groups group(const Contacts& contacts) {
  int lowest[kBodies] = {kLeft, kRight, kPuck, kRink};
  SPARRING_FOR (int i = 0; i < contacts.count; ++i) {
    const Contact& contact = contacts.at[i];
    if (contact.first == kRink) continue;
    const int joined = min(lowest[contact.first], lowest[contact.second]);
    const int gone = max(lowest[contact.first], lowest[contact.second]);
    SPARRING_FOR (int body = kLeft; body <= kPuck; ++body)
      if (lowest[body] == gone) lowest[body] = joined;
  }
  Groups groups{};
  SPARRING_FOR (int i = 0; i < contacts.count; ++i)
    groups.contacts[lowest[contacts.at[i].second]] |= 1u << i;
  return groups;
}

SPARRING_FN inline void advance(World& world, const Drive (&drive)[3], Contacts& contacts,
                                const Effort& effort) {
  constexpr f32 kShare = 0.2f, kAllowed = 3 * kSlop;
  SPARRING_FOR (int i = kLeft; i <= kPuck; ++i) accelerate(world.body[i], i, drive[i]);
  const Groups groups = group(contacts);
  SPARRING_FOR (u32 members : groups.contacts)
    if (members) solve_velocities(world, contacts, members, effort.velocity_passes);
  Vec from[3];
  f32 from_angle[3];
  SPARRING_FOR (int i = kLeft; i <= kPuck; ++i) {
    from[i] = world.body[i].center;
    from_angle[i] = world.body[i].angle;
    move(world, i, kStepSeconds);
  }
  SPARRING_FOR (u32 members : groups.contacts)
    if (members)
      solve_positions(world, contacts, members, effort.position_passes, kShare, kAllowed);
  stop_at_walls(world, kPuck, from[kPuck], from_angle[kPuck], effort);
  if (!effort.racket_impacts) return;
  stop_at_walls(world, kLeft, from[kLeft], from_angle[kLeft], effort);
  stop_at_walls(world, kRight, from[kRight], from_angle[kRight], effort);
}

}  // namespace sparring::laser_hockey
