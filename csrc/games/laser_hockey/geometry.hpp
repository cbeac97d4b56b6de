// The rink, the rackets and the puck: shapes, masses and materials (section 3). Meters; the center
// of the rink is at (5, 4), as in the original, so that floats round alike.
#pragma once

#include "games/laser_hockey/vector.hpp"

namespace sparring::laser_hockey {

inline constexpr f32 kPi = 3.14159265f;
inline constexpr Vec kCenter = {5, 4};

// The bodies. Seat 0 plays the left racket, seat 1 the right one. The rink never moves.
enum BodyIndex : u8 { kLeft, kRight, kPuck, kRink, kBodies };

inline constexpr int kMaxVertices = 7;

// A convex polygon around the origin of its body, counter-clockwise from its rightmost, then lowest
// vertex. Normal i belongs to the edge from vertex i to the next.
struct Polygon {
  int count;
  Vec vertex[kMaxVertices];
  Vec normal[kMaxVertices];

  SPARRING_FN constexpr int after(int i) const { return i + 1 < count ? i + 1 : 0; }
};

SPARRING_FN constexpr f32 exact_root(f32 x) {
  f64 root = x < 1 ? 1.0 : f64{x};
  for (int i = 0; i < 60; ++i) root = 0.5 * (root + f64{x} / root);
  return static_cast<f32>(root);
}

SPARRING_FN constexpr Polygon with_normals(Polygon polygon) {
  for (int i = 0; i < polygon.count; ++i) {
    const Vec outward = right_of(polygon.vertex[polygon.after(i)] - polygon.vertex[i]);
    polygon.normal[i] = 1 / exact_root(dot(outward, outward)) * outward;
  }
  return polygon;
}

struct WallShape {
  Vec origin;
  Polygon polygon;
  Bounds bounds;  // in the rink, not around the origin
};

struct Pixels {
  f64 x, y;
};

SPARRING_FN constexpr Vec meters(Pixels at) {
  return {static_cast<f32>(at.x / 60), static_cast<f32>(at.y / 60)};
}

// From pixels, of which a meter has 60: the origin from the center of the rink, four corners from
// the origin.
SPARRING_FN constexpr WallShape wall_at(Pixels origin, Pixels a, Pixels b, Pixels c, Pixels d) {
  WallShape wall{
      .origin = {static_cast<f32>(5 + origin.x / 60), static_cast<f32>(4 + origin.y / 60)},
      .polygon = with_normals(
          {.count = 4, .vertex = {meters(a), meters(b), meters(c), meters(d)}, .normal = {}}),
      .bounds = {{100, 100}, {-100, -100}}};
  for (int i = 0; i < 4; ++i) {
    const Vec at = wall.origin + wall.polygon.vertex[i];
    wall.bounds.low = {min(wall.bounds.low.x, at.x), min(wall.bounds.low.y, at.y)};
    wall.bounds.high = {max(wall.bounds.high.x, at.x), max(wall.bounds.high.y, at.y)};
  }
  return wall;
}

// In the order in which their contacts are solved (section 12.1). The goals are solid for rackets
// and sensors for the puck.
enum Wall : u8 {
  kLeftGoal,
  kRightGoal,
  kRightLower,
  kRightUpper,
  kLeftLower,
  kLeftUpper,
  kBottom,
  kTop,
  kWalls
};
inline constexpr WallShape kWall[kWalls] = {
    wall_at({-255, 0}, {10, -75}, {10, 75}, {-10, 75}, {-10, -75}),
    wall_at({255, 0}, {10, -75}, {10, 75}, {-10, 75}, {-10, -75}),
    wall_at({245, -210}, {10, -5}, {10, 135}, {-10, 128}, {-10, -5}),
    wall_at({245, 210}, {10, -135}, {10, 5}, {-10, 5}, {-10, -128}),
    wall_at({-245, -210}, {10, -5}, {10, 128}, {-10, 135}, {-10, -5}),
    wall_at({-245, 210}, {10, -128}, {10, 5}, {-10, 5}, {-10, -135}),
    wall_at({0, -210}, {250, -10}, {250, 10}, {-250, 10}, {-250, -10}),
    wall_at({0, 210}, {250, -10}, {250, 10}, {-250, 10}, {-250, -10}),
};

// Bits of kWall that a body can reach: the puck all but the goals, a racket those of its half.
inline constexpr u32 kWallsOf[3] = {
    1u << kLeftGoal | 1u << kLeftLower | 1u << kLeftUpper | 1u << kBottom | 1u << kTop,
    1u << kRightGoal | 1u << kRightLower | 1u << kRightUpper | 1u << kBottom | 1u << kTop,
    (1u << kWalls) - 1 - (1u << kLeftGoal) - (1u << kRightGoal)};

// Whether a rectangle stays off all walls by more than a margin.
SPARRING_FN constexpr bool is_clear(const Bounds& at, f32 margin) {
  constexpr f32 kHalfLength = 235.0f / 60, kHalfWidth = 200.0f / 60;
  return at.low.x - margin > kCenter.x - kHalfLength &&
         at.high.x + margin < kCenter.x + kHalfLength &&
         at.low.y - margin > kCenter.y - kHalfWidth && at.high.y + margin < kCenter.y + kHalfWidth;
}

// Those of some walls (bits) that a rectangle comes within a margin of.
SPARRING_FN inline u32 walls_around(u32 walls, const Bounds& at, f32 margin) {
  u32 near = 0;
  SPARRING_FOR (u32 rest = walls; rest; rest &= rest - 1) {
    const int wall = lowest_bit(rest);
    if (overlap(at, kWall[wall].bounds, margin)) near |= 1u << wall;
  }
  return near;
}

// What a density of 1 gives a polygon, and where its center of mass lies.
struct Weight {
  f64 mass, inertia;  // the inertia about the center of mass
  f64 x, y;
};

SPARRING_FN constexpr Weight weigh(const Polygon& polygon) {
  Weight sum{};
  for (int i = 0; i < polygon.count; ++i) {
    const Vec a = polygon.vertex[i], b = polygon.vertex[polygon.after(i)];
    const f64 ax = f64{a.x}, ay = f64{a.y}, bx = f64{b.x}, by = f64{b.y};
    const f64 twice = ax * by - ay * bx;
    sum.mass += twice / 2;
    sum.x += twice * (ax + bx) / 6;
    sum.y += twice * (ay + by) / 6;
    sum.inertia += twice * (ax * ax + ax * bx + bx * bx + ay * ay + ay * by + by * by) / 12;
  }
  sum.x /= sum.mass;
  sum.y /= sum.mass;
  sum.inertia -= sum.mass * (sum.x * sum.x + sum.y * sum.y);
  return sum;
}

inline constexpr int kRacketVertices = 7;

// The rackets of both seats, flat front toward the opponent.
inline constexpr Polygon kRacket[2] = {with_normals({.count = kRacketVertices,
                                                     .vertex = {{0.1f, -0.4f},
                                                                {0.1f, 0.4f},
                                                                {-0.2f, 0.4f},
                                                                {-0.36f, 0.2f},
                                                                {-0.42f, 0},
                                                                {-0.36f, -0.2f},
                                                                {-0.2f, -0.4f}},
                                                     .normal = {}}),
                                       with_normals({.count = kRacketVertices,
                                                     .vertex = {{0.42f, 0},
                                                                {0.36f, 0.2f},
                                                                {0.2f, 0.4f},
                                                                {-0.1f, 0.4f},
                                                                {-0.1f, -0.4f},
                                                                {0.2f, -0.4f},
                                                                {0.36f, -0.2f}},
                                                     .normal = {}})};

inline constexpr Weight kRacketWeight = weigh(kRacket[0]);
inline constexpr f64 kRacketDensity = 200 / 1.2, kPuckDensity = 7;
inline constexpr f32 kPuckRadius = 13.0f / 60;

inline constexpr f32 kRacketMass = static_cast<f32>(kRacketDensity * kRacketWeight.mass);
inline constexpr f32 kRacketInertia = static_cast<f32>(kRacketDensity * kRacketWeight.inertia);
inline constexpr f32 kPuckMass = static_cast<f32>(kPuckDensity * 3.14159265358979 * 13 * 13 / 3600);
inline constexpr f32 kPuckInertia = kPuckMass * kPuckRadius * kPuckRadius / 2;

// From a racket's origin, which positions are measured at, to its center of mass.
inline constexpr f32 kRacketCenter = static_cast<f32>(kRacketWeight.x);
SPARRING_FN constexpr Vec center_of_mass(int seat) {
  return {seat == 0 ? kRacketCenter : -kRacketCenter, 0};
}

inline constexpr f32 kRacketReach = 0.46f;  // farthest vertex from the center of mass, and a bit

// How far a turned racket reaches from its center of mass along x and y, at most. Cheaper than
// its true bounds, which are asked for only where this is not enough.
SPARRING_FN constexpr Vec racket_extent(SinCos turn) {
  constexpr f32 kLong = 0.298f, kWide = 0.4f;  // along its own axes
  const f32 c = magnitude(turn.cos), s = magnitude(turn.sin);
  return {c * kLong + s * kWide, s * kLong + c * kWide};
}

// The rink has infinite mass.
inline constexpr f32 kInverseMass[kBodies] = {1 / kRacketMass, 1 / kRacketMass, 1 / kPuckMass, 0};
inline constexpr f32 kInverseInertia[kBodies] = {1 / kRacketInertia, 1 / kRacketInertia,
                                                 1 / kPuckInertia, 0};

// Every polygon has a skin; shapes touch when their skins do.
inline constexpr f32 kSkin = 0.01f;

struct Material {
  f32 friction, restitution;
};
inline constexpr f32 kPuckRacketFriction = 0.316227766f;  // sqrt(0.1 * 1)
inline constexpr Material kPuckOnRacket = {kPuckRacketFriction, 0.95f}, kPuckOnWall = {0.1f, 0.95f},
                          kRacketOnWall = {kPuckRacketFriction, 0}, kRacketOnRacket = {1, 0};

}  // namespace sparring::laser_hockey
