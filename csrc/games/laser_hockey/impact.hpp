// Continuous collision with the rink: a fast body stops at a wall instead of passing through it
// (section 12.6).
#pragma once

#include "games/laser_hockey/solver.hpp"

namespace sparring::laser_hockey {

// What is left of a body's way in this step.
struct Sweep {
  Vec from, to;
  f32 from_angle, to_angle;
};

// The part of a shape that must not pass: a racket without its skin, the center of the puck.
struct Core {
  int body;
  const Polygon& shape;
  Sweep sweep;
  f32 distance;  // to be kept from walls

  SPARRING_FN Pose pose(f32 t) const {
    const Vec center = (1 - t) * sweep.from + t * sweep.to;
    if (body == kPuck) return {center, {0, 1}};
    const SinCos turn = sincos_of((1 - t) * sweep.from_angle + t * sweep.to_angle);
    return {center - rotated(turn, center_of_mass(body)), turn};
  }
};

inline constexpr Polygon kPoint = {.count = 1, .vertex = {}, .normal = {}};
inline constexpr f32 kTolerance = 0.00125f;

// A line of sight between a wall and a core, along which their distance is measured: the normal of
// a wall's face, the normal of a core's face (which turns with it), or the line between corners.
struct Axis {
  enum Kind : u8 { kWallFace, kCoreFace, kCorners } kind;
  f32 distance;  // between the shapes when the axis was chosen; below 0: they overlap
  Vec direction, plane;
};

// The corners of wall and core that are nearest along an axis.
struct Witness {
  int wall, core;
  f32 separation;
};

SPARRING_FN inline Vec nearest_on(Vec from, Vec to, Vec point, bool& inside) {
  const Vec edge = to - from;
  const f32 along = dot(point - from, edge), whole = dot(edge, edge);
  inside = along > 0 && along < whole;
  return along <= 0 ? from : along >= whole ? to : from + along / whole * edge;
}

// Finds the nearest features of two convex shapes by trying all corners against all edges.
SPARRING_FN inline Axis nearest_features(const WallShape& wall, const Polygon& core,
                                         const Pose& pose) {
  const Polygon& shape = wall.polygon;
  Vec corner[kMaxVertices], post[kMaxVertices];
  for (int j = 0; j < core.count; ++j) corner[j] = to_world(pose, core.vertex[j]);
  for (int i = 0; i < shape.count; ++i) post[i] = shape.vertex[i] + wall.origin;
  f32 apart = -1e30f, nearest = 1e30f;
  Axis best{};
  const auto consider = [&](Vec seen, Vec point, bool inside, const Axis& face) {
    const Vec gap = point - seen;
    const f32 square = dot(gap, gap);
    if (square >= nearest) return;
    nearest = square;
    best = inside ? face : Axis{Axis::kCorners, 0, gap, {}};
  };
  SPARRING_FOR (int i = 0; i < shape.count; ++i) {
    const int next = shape.after(i);
    const Vec middle = 0.5f * (shape.vertex[i] + shape.vertex[next]);
    f32 deepest = 1e30f;
    for (int j = 0; j < core.count; ++j) {
      deepest = min(deepest, dot(shape.normal[i], corner[j] - post[i]));
      bool inside;
      const Vec seen = nearest_on(post[i], post[next], corner[j], inside);
      consider(seen, corner[j], inside,
               {Axis::kWallFace, 0, shape.normal[i], middle + wall.origin});
    }
    apart = max(apart, deepest);
  }
  SPARRING_FOR (int j = 0; core.count > 1 && j < core.count; ++j) {
    const int next = core.after(j);
    const Vec normal = rotated(pose.turn, core.normal[j]);
    const Vec middle = 0.5f * (core.vertex[j] + core.vertex[next]);
    f32 deepest = 1e30f;
    for (int i = 0; i < shape.count; ++i) {
      deepest = min(deepest, dot(normal, post[i] - corner[j]));
      bool inside;
      const Vec seen = nearest_on(corner[j], corner[next], post[i], inside);
      consider(post[i], seen, inside, {Axis::kCoreFace, 0, core.normal[j], middle});
    }
    apart = max(apart, deepest);
  }
  best.distance = apart <= 0 ? -1.0f : square_root(nearest);
  if (best.kind == Axis::kCorners) best.direction = 1 / best.distance * best.direction;
  return best;
}

SPARRING_FN inline f32 separation_at(const Axis& axis, const WallShape& wall, const Core& core,
                                     int wall_corner, int core_corner, f32 t) {
  const Pose pose = core.pose(t);
  if (axis.kind == Axis::kCoreFace)
    return dot(rotated(pose.turn, axis.direction),
               wall.polygon.vertex[wall_corner] + wall.origin - to_world(pose, axis.plane));
  const Vec corner = to_world(pose, core.shape.vertex[core_corner]);
  const Vec plane =
      axis.kind == Axis::kWallFace ? axis.plane : wall.polygon.vertex[wall_corner] + wall.origin;
  return dot(axis.direction, corner - plane);
}

SPARRING_FN inline Witness deepest_at(const Axis& axis, const WallShape& wall, const Core& core,
                                      f32 t) {
  const Pose pose = core.pose(t);
  Witness found{};
  if (axis.kind != Axis::kWallFace) {
    const Vec toward =
        axis.kind == Axis::kCoreFace ? rotated(pose.turn, axis.direction) : -axis.direction;
    f32 best = 1e30f;
    for (int i = 0; i < wall.polygon.count; ++i) {
      const f32 along = dot(toward, wall.polygon.vertex[i]);
      if (along < best) {
        best = along;
        found.wall = i;
      }
    }
  }
  if (axis.kind != Axis::kCoreFace) {
    f32 best = 1e30f;
    for (int j = 0; j < core.shape.count; ++j) {
      const f32 along = dot(axis.direction, to_world(pose, core.shape.vertex[j]));
      if (along < best) {
        best = along;
        found.core = j;
      }
    }
  }
  found.separation = separation_at(axis, wall, core, found.wall, found.core, t);
  return found;
}

// When two witnesses come within the distance: bisection and secant in turn.
SPARRING_FN inline f32 root_between(const Axis& axis, const WallShape& wall, const Core& core,
                                    const Witness& witness, f32 early, f32 early_gap, f32 late) {
  constexpr int kMaxRounds = 50;
  f32 late_gap = witness.separation, t = late;
  SPARRING_FOR (int round = 0; round < kMaxRounds; ++round) {
    const bool secant = round & 1;
    t = secant ? early + (core.distance - early_gap) * (late - early) / (late_gap - early_gap)
               : 0.5f * (early + late);
    const f32 gap = separation_at(axis, wall, core, witness.wall, witness.core, t);
    if (magnitude(gap - core.distance) < kTolerance) break;
    if (gap > core.distance) {
      early = t;
      early_gap = gap;
    } else {
      late = t;
      late_gap = gap;
    }
  }
  return t;
}

inline constexpr f32 kNever = 2;

// The part of the sweep, 0..1, at which a core comes near a wall; kNever if it does not.
SPARRING_APART SPARRING_FN inline f32 time_of_impact(const WallShape& wall, const Core& core) {
  constexpr int kMaxAxes = 20, kMaxRoots = 8;
  f32 now = 0;
  SPARRING_FOR (int round = 0; round < kMaxAxes; ++round) {
    const Axis axis = nearest_features(wall, core.shape, core.pose(now));
    if (axis.distance <= 0) return kNever;
    if (axis.distance < core.distance + kTolerance) return now;
    f32 late = 1;
    SPARRING_FOR (int root = 0; root < kMaxRoots; ++root) {
      const Witness deepest = deepest_at(axis, wall, core, late);
      if (deepest.separation > core.distance + kTolerance) return kNever;
      if (deepest.separation > core.distance - kTolerance) {
        now = late;
        break;
      }
      const f32 gap = separation_at(axis, wall, core, deepest.wall, deepest.core, now);
      if (gap < core.distance - kTolerance) return kNever;
      if (gap <= core.distance + kTolerance) return now;
      late = root_between(axis, wall, core, deepest, now, gap, late);
    }
  }
  return kNever;
}

SPARRING_FN inline Manifold touch_wall(const World& world, int wall, int body) {
  const Polygon& polygon = kWall[wall].polygon;
  return body == kPuck ? collide(polygon, wall_pose(wall), world.body[kPuck].center)
                       : collide(polygon, wall_pose(wall), kRacket[body], world.pose(body));
}

// Walls that a body may come near on its way; `turn` is its rotation at the end of it.
SPARRING_FN inline u32 walls_near(const Core& core, SinCos turn) {
  const Sweep& sweep = core.sweep;
  const u32 walls = kWallsOf[core.body];
  const Bounds swept = joined({sweep.from, sweep.from}, {sweep.to, sweep.to});
  const f32 margin = core.distance + kTolerance;
  if (core.body == kPuck) return is_clear(swept, margin) ? 0 : walls_around(walls, swept, margin);
  if (is_clear(swept, margin + kRacketReach)) return 0;
  const Vec extent = racket_extent(turn);
  // While it turns, a corner is never farther from its last place around the center than this.
  const f32 turned = magnitude(sweep.to_angle - sweep.from_angle);
  const u32 near = walls_around(walls, {swept.low - extent, swept.high + extent},
                                margin + kRacketReach * turned);
  if (near == 0) return 0;
  const Bounds ends =
      joined(bounds_of(core.shape, core.pose(0)), bounds_of(core.shape, core.pose(1)));
  // Between its ends a turning racket bulges out: an arc's height over its chord.
  return walls_around(near, ends, margin + kRacketReach * turned * turned / 8);
}

// Stops one body at the walls in its way, in the order in which it meets them.
SPARRING_APART SPARRING_FN inline void stop_at_walls(World& world, int index, Vec from,
                                                     f32 from_angle, const Effort& effort) {
  constexpr f32 kEnd = 1 - 10 * kEpsilon;
  constexpr int kMaxEvents = 8, kPositionPasses = 20;
  constexpr f32 kShare = 0.75f, kAllowed = 1.5f * kSlop;
  Body& body = world.body[index];
  f32 part = 0;
  u32 disabled = 0;
  u8 events[kWalls] = {};
  for (;;) {
    const f32 distance = max(kSlop, kSkin + radius_of(index) - 3 * kSlop);
    const Core core = {index,
                       index == kPuck ? kPoint : kRacket[index],
                       {from, body.center, from_angle, body.angle},
                       distance};
    f32 first = 1;
    int hit = -1;
    SPARRING_FOR (u32 rest = walls_near(core, world.turn[index]) & ~disabled; rest;
                  rest &= rest - 1) {
      const int wall = lowest_bit(rest);
      if (events[wall] > kMaxEvents) continue;
      const f32 t = time_of_impact(kWall[wall], core);
      const f32 at = t <= 1 ? part + (1 - part) * t : 1;
      if (at < first) {
        first = at;
        hit = wall;
      }
    }
    if (hit < 0 || first > kEnd) return;

    const Vec end = body.center;
    const f32 end_angle = body.angle, share = (first - part) / (1 - part);
    body.center = from + share * (end - from);
    world.turn_to(index, from_angle + share * (end_angle - from_angle));
    ++events[hit];
    const Manifold manifold = touch_wall(world, hit, index);
    if (manifold.points == 0) {
      disabled |= 1u << hit;
      body.center = end;
      world.turn_to(index, end_angle);
      continue;
    }
    const Material material = index == kPuck ? kPuckOnWall : kRacketOnWall;
    Contacts contacts;
    contacts.count = 0;
    contacts.add(kRink, index, material, manifold, hit);
    SPARRING_FOR (u32 rest = kWallsOf[index] & ~(1u << hit); rest; rest &= rest - 1)
      contacts.add(kRink, index, material, touch_wall(world, lowest_bit(rest), index),
                   lowest_bit(rest));
    const u32 all = (1u << contacts.count) - 1;
    solve_positions(world, contacts, all, kPositionPasses, kShare, kAllowed);
    from = body.center;
    from_angle = body.angle;
    part = first;
    solve_velocities(world, contacts, all, effort.velocity_passes);
    move(world, index, (1 - part) * kStepSeconds);
  }
}

}  // namespace sparring::laser_hockey
