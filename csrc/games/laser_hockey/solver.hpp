// Impulses and corrections that keep bodies apart (sections 12.2 to 12.5).
#pragma once

#include "games/laser_hockey/collide.hpp"

namespace sparring::laser_hockey {

inline constexpr f32 kStepSeconds = 0.02f;
inline constexpr f32 kSlop = 0.005f;  // overlap that is let be

struct Body {
  Vec center;
  f32 angle;
  Vec velocity;
  f32 spin;
};

SPARRING_FN inline Pose pose_of(const Body& body, int index, SinCos turn) {
  const Vec origin =
      index < kPuck ? body.center - rotated(turn, center_of_mass(index)) : body.center;
  return {origin, turn};
}

SPARRING_FN inline Pose wall_pose(int wall) { return {kWall[wall].origin, {0, 1}}; }

// The bodies while a step is computed; the last one is the rink, at rest.
struct World {
  Body body[kBodies];
  SinCos turn[kBodies];

  SPARRING_FN Pose pose(int index) const { return pose_of(body[index], index, turn[index]); }

  // The puck is round: nobody asks for its rotation.
  SPARRING_FN void turn_to(int index, f32 angle) {
    body[index].angle = angle;
    if (index < kPuck) turn[index] = sincos_of(angle);
  }
};

// How accurately a step is computed.
struct Effort {
  int velocity_passes, position_passes;
  bool racket_impacts;  // continuous collision of rackets with walls
};
inline constexpr Effort kExactEffort = {180, 60, true}, kFastEffort = {20, 20, false};

// One point of a contact: levers from both centers of mass, and the impulses so far.
struct ContactPoint {
  Vec arm[2];
  f32 normal_mass, tangent_mass, bias;
  f32 normal_impulse, tangent_impulse;
};

// Two bodies that touch. The first one is always a polygon.
struct Contact {
  u8 first, second;
  u8 wall;    // which part of the rink, if the first body is the rink
  u8 points;  // that the velocities are solved for
  Material material;
  Manifold manifold;
  Vec normal;  // from the first body to the second
  ContactPoint point[2];
  f32 coupling[3];  // the matrix of a contact with two points: k11, k12, k22
};

inline constexpr int kMaxContacts = 8;

struct Contacts {
  Contact at[kMaxContacts];
  int count;

  // Contacts past the limit are dropped; four at once are the most that was ever seen.
  SPARRING_FN void add(int first, int second, Material material, const Manifold& manifold,
                       int wall = 0) {
    if (manifold.points == 0 || count == kMaxContacts) return;
    Contact& contact = at[count++];
    contact.first = static_cast<u8>(first);
    contact.second = static_cast<u8>(second);
    contact.wall = static_cast<u8>(wall);
    contact.material = material;
    contact.manifold = manifold;
  }
};

SPARRING_FN constexpr f32 radius_of(int body) { return body == kPuck ? kPuckRadius : kSkin; }

// Normal (from first to second), overlap and position of one contact point at the current poses.
struct Overlap {
  Vec normal, point;
  f32 distance;  // between the core shapes
};

SPARRING_FN inline Overlap overlap_of(const World& world, const Contact& contact, int index) {
  const Manifold& manifold = contact.manifold;
  const Pose first = contact.first == kRink ? wall_pose(contact.wall) : world.pose(contact.first);
  const Pose second = world.pose(contact.second);
  const Pose& owner = manifold.on_second ? second : first;
  const Pose& other = manifold.on_second ? first : second;
  const Vec normal = rotated(owner.turn, manifold.normal);
  const Vec point = to_world(other, manifold.point[index]);
  const f32 distance = dot(point - to_world(owner, manifold.plane), normal);
  return {manifold.on_second ? -normal : normal, point, distance};
}

// Relative velocity of the second body against the first at a contact point.
SPARRING_FN inline Vec slip_of(const Body& first, const Body& second, const ContactPoint& point) {
  return second.velocity + cross(second.spin, point.arm[1]) - first.velocity -
         cross(first.spin, point.arm[0]);
}

// The two bodies of a contact while it is solved: copies, so that they stay in registers. They are
// never the same.
struct Pair {
  Body first, second;
  f32 inverse_mass[2], inverse_inertia[2];

  SPARRING_FN Pair(const World& world, const Contact& contact)
      : first(world.body[contact.first]),
        second(world.body[contact.second]),
        inverse_mass{kInverseMass[contact.first], kInverseMass[contact.second]},
        inverse_inertia{kInverseInertia[contact.first], kInverseInertia[contact.second]} {}

  SPARRING_FN Vec slip(const ContactPoint& point) const { return slip_of(first, second, point); }

  SPARRING_FN void push(const ContactPoint& point, Vec impulse) {
    first.velocity = first.velocity - inverse_mass[0] * impulse;
    first.spin -= inverse_inertia[0] * cross(point.arm[0], impulse);
    second.velocity = second.velocity + inverse_mass[1] * impulse;
    second.spin += inverse_inertia[1] * cross(point.arm[1], impulse);
  }

  SPARRING_FN void put_back(World& world, const Contact& contact) const {
    world.body[contact.first].velocity = first.velocity;
    world.body[contact.first].spin = first.spin;
    world.body[contact.second].velocity = second.velocity;
    world.body[contact.second].spin = second.spin;
  }
};

// Inverse of the velocity that a unit impulse along `direction` gives.
SPARRING_FN inline f32 effective_inverse(const Contact& contact, Vec arm_first, Vec arm_second,
                                         Vec direction) {
  const f32 first = cross(arm_first, direction), second = cross(arm_second, direction);
  return kInverseMass[contact.first] + kInverseMass[contact.second] +
         kInverseInertia[contact.first] * first * first +
         kInverseInertia[contact.second] * second * second;
}

// A contact with two points is solved as one, unless they are so close that this is ill posed.
SPARRING_FN inline void couple(Contact& contact) {
  constexpr f32 kWorstCondition = 1000;
  const ContactPoint& a = contact.point[0];
  const ContactPoint& b = contact.point[1];
  const f32 k11 = 1 / a.normal_mass, k22 = 1 / b.normal_mass;
  const f32 k12 = kInverseMass[contact.first] + kInverseMass[contact.second] +
                  kInverseInertia[contact.first] * cross(a.arm[0], contact.normal) *
                      cross(b.arm[0], contact.normal) +
                  kInverseInertia[contact.second] * cross(a.arm[1], contact.normal) *
                      cross(b.arm[1], contact.normal);
  if (k11 * k11 >= kWorstCondition * (k11 * k22 - k12 * k12)) contact.points = 1;
  contact.coupling[0] = k11;
  contact.coupling[1] = k12;
  contact.coupling[2] = k22;
}

// Section 12.3: levers, masses and the speed at which the bodies shall part.
SPARRING_FN inline void prepare(const World& world, Contact& contact) {
  constexpr f32 kBounceSpeed = 1;  // slower impacts do not bounce
  const Body& first = world.body[contact.first];
  const Body& second = world.body[contact.second];
  contact.points = static_cast<u8>(contact.manifold.points);
  SPARRING_FOR (int i = 0; i < contact.points; ++i) {
    const Overlap overlap = overlap_of(world, contact, i);
    // Halfway between the two surfaces.
    const f32 owner_radius = radius_of(contact.manifold.on_second ? contact.second : contact.first);
    const f32 other_radius = radius_of(contact.manifold.on_second ? contact.first : contact.second);
    const Vec outward = contact.manifold.on_second ? -overlap.normal : overlap.normal;
    const Vec on_owner = overlap.point + (owner_radius - overlap.distance) * outward;
    const Vec at = 0.5f * (on_owner + (overlap.point - other_radius * outward));
    contact.normal = overlap.normal;
    ContactPoint& point = contact.point[i];
    point.arm[0] = at - first.center;
    point.arm[1] = at - second.center;
    point.normal_mass = 1 / effective_inverse(contact, point.arm[0], point.arm[1], contact.normal);
    point.tangent_mass =
        1 / effective_inverse(contact, point.arm[0], point.arm[1], right_of(contact.normal));
    const f32 approach = dot(contact.normal, slip_of(first, second, point));
    point.bias = approach < -kBounceSpeed ? -contact.material.restitution * approach : 0.0f;
    point.normal_impulse = point.tangent_impulse = 0;
  }
  if (contact.points == 2) couple(contact);
}

SPARRING_FN inline f32 solve_friction(Pair& pair, const Contact& contact, ContactPoint& point) {
  const Vec tangent = right_of(contact.normal);
  const Vec slip = pair.slip(point);
  const f32 limit = contact.material.friction * point.normal_impulse;
  const f32 wanted = point.tangent_impulse - point.tangent_mass * dot(slip, tangent);
  const f32 total = clamp(wanted, -limit, limit);
  const f32 change = total - point.tangent_impulse;
  point.tangent_impulse = total;
  pair.push(point, change * tangent);
  return magnitude(change);
}

SPARRING_FN inline f32 solve_one(Pair& pair, const Contact& contact, ContactPoint& point) {
  const Vec slip = pair.slip(point);
  const f32 wanted =
      point.normal_impulse - point.normal_mass * (dot(slip, contact.normal) - point.bias);
  const f32 total = max(wanted, 0.0f);
  const f32 change = total - point.normal_impulse;
  point.normal_impulse = total;
  pair.push(point, change * contact.normal);
  return magnitude(change);
}

// Two points that press at once: the first of four cases that fits (both, one, the other, none).
SPARRING_FN inline f32 solve_two(Pair& pair, Contact& contact) {
  ContactPoint& a = contact.point[0];
  ContactPoint& b = contact.point[1];
  const f32 k11 = contact.coupling[0], k12 = contact.coupling[1], k22 = contact.coupling[2];
  const f32 had_a = a.normal_impulse, had_b = b.normal_impulse;
  // The speed that would be left without any impulse of this contact.
  const f32 left_a = dot(pair.slip(a), contact.normal) - a.bias - (k11 * had_a + k12 * had_b);
  const f32 left_b = dot(pair.slip(b), contact.normal) - b.bias - (k12 * had_a + k22 * had_b);
  const f32 scale = 1 / (k11 * k22 - k12 * k12);
  f32 new_a = -scale * (k22 * left_a - k12 * left_b);
  f32 new_b = -scale * (k11 * left_b - k12 * left_a);
  if (new_a < 0 || new_b < 0) {
    new_a = -a.normal_mass * left_a;
    new_b = 0;
    if (new_a < 0 || k12 * new_a + left_b < 0) {
      new_a = 0;
      new_b = -b.normal_mass * left_b;
      if (new_b < 0 || k12 * new_b + left_a < 0) {
        new_b = 0;
        if (left_a < 0 || left_b < 0) return 0;
      }
    }
  }
  a.normal_impulse = new_a;
  b.normal_impulse = new_b;
  pair.push(a, (new_a - had_a) * contact.normal);
  pair.push(b, (new_b - had_b) * contact.normal);
  return max(magnitude(new_a - had_a), magnitude(new_b - had_b));
}

// Friction of all points, then what keeps the bodies apart. Returns the largest change.
SPARRING_FN inline f32 solve(World& world, Contact& contact) {
  f32 change = 0;
  Pair pair(world, contact);
  SPARRING_FOR (int i = 0; i < contact.points; ++i)
    change = max(change, solve_friction(pair, contact, contact.point[i]));
  const f32 pressing =
      contact.points == 1 ? solve_one(pair, contact, contact.point[0]) : solve_two(pair, contact);
  pair.put_back(world, contact);
  return max(change, pressing);
}

// `members`: bits of the contacts of one group of connected bodies.
SPARRING_APART SPARRING_FN inline void solve_velocities(World& world, Contacts& contacts,
                                                        u32 members, int passes) {
  constexpr f32 kSettled = 1e-5f;  // newton seconds
  SPARRING_FOR (u32 rest = members; rest; rest &= rest - 1)
    prepare(world, contacts.at[lowest_bit(rest)]);
  SPARRING_FOR (int pass = 0; pass < passes; ++pass) {
    f32 change = 0;
    SPARRING_FOR (u32 rest = members; rest; rest &= rest - 1)
      change = max(change, solve(world, contacts.at[lowest_bit(rest)]));
    if (change < kSettled) return;
  }
}

// Section 12.4. A step moves a body by 2 m and a quarter turn at most.
SPARRING_FN inline void move(World& world, int index, f32 seconds) {
  constexpr f32 kFarthest = 2, kMaxTurn = 0.5f * kPi;
  Body& body = world.body[index];
  const Vec way = seconds * body.velocity;
  if (dot(way, way) > kFarthest * kFarthest)
    body.velocity = kFarthest / length(way) * body.velocity;
  const f32 turn = magnitude(seconds * body.spin);
  if (turn > kMaxTurn) body.spin *= kMaxTurn / turn;
  body.center = body.center + seconds * body.velocity;
  world.turn_to(index, body.angle + seconds * body.spin);
}

// Section 12.5: pushes overlapping bodies apart. `share` of the overlap is removed in each pass
// until no more than `allowed` is left.
SPARRING_APART SPARRING_FN inline void solve_positions(World& world, const Contacts& contacts,
                                                       u32 members, int passes, f32 share,
                                                       f32 allowed) {
  constexpr f32 kLargestCorrection = 0.2f;
  SPARRING_FOR (int pass = 0; pass < passes; ++pass) {
    f32 worst = 0;
    SPARRING_FOR (u32 rest = members; rest; rest &= rest - 1) {
      const Contact& contact = contacts.at[lowest_bit(rest)];
      SPARRING_FOR (int i = 0; i < contact.manifold.points; ++i) {
        const Overlap overlap = overlap_of(world, contact, i);
        const f32 gap = overlap.distance - radius_of(contact.first) - radius_of(contact.second);
        worst = min(worst, gap);
        const f32 correction = clamp(share * (gap + kSlop), -kLargestCorrection, 0);
        if (correction == 0) continue;
        Body& first = world.body[contact.first];
        Body& second = world.body[contact.second];
        const Vec arm_first = overlap.point - first.center;
        const Vec arm_second = overlap.point - second.center;
        const Vec impulse = -correction /
                            effective_inverse(contact, arm_first, arm_second, overlap.normal) *
                            overlap.normal;
        first.center = first.center - kInverseMass[contact.first] * impulse;
        second.center = second.center + kInverseMass[contact.second] * impulse;
        const f32 turn_first = kInverseInertia[contact.first] * cross(arm_first, impulse);
        const f32 turn_second = kInverseInertia[contact.second] * cross(arm_second, impulse);
        if (turn_first != 0) world.turn_to(contact.first, first.angle - turn_first);
        if (turn_second != 0) world.turn_to(contact.second, second.angle + turn_second);
      }
    }
    if (worst >= -allowed) return;
  }
}

}  // namespace sparring::laser_hockey
