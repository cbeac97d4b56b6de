// Where two shapes touch (section 12.1).
#pragma once

#include "games/laser_hockey/geometry.hpp"

namespace sparring::laser_hockey {

// One body's reference face and the points of the other body near it, all in local coordinates,
// so that both bodies can move while overlaps are resolved.
struct Manifold {
  int points;      // 0: the shapes are apart
  bool on_second;  // the reference face is the second body's
  Vec normal, plane;
  Vec point[2];
};

inline constexpr f32 kEpsilon = 1.1920929e-7f;

SPARRING_APART SPARRING_FN inline Bounds bounds_of(const Polygon& polygon, const Pose& pose) {
  Vec at = to_world(pose, polygon.vertex[0]);
  Bounds bounds = {at, at};
  for (int i = 1; i < polygon.count; ++i) {
    at = to_world(pose, polygon.vertex[i]);
    bounds.low = {min(bounds.low.x, at.x), min(bounds.low.y, at.y)};
    bounds.high = {max(bounds.high.x, at.x), max(bounds.high.y, at.y)};
  }
  return bounds;
}

// A polygon and the puck's center.
SPARRING_APART SPARRING_FN inline Manifold collide(const Polygon& polygon, const Pose& pose,
                                                   Vec puck) {
  constexpr f32 kReach = kSkin + kPuckRadius;
  const Vec center = to_local(pose, puck);
  int face = 0;
  f32 apart = -1e30f;
  for (int i = 0; i < polygon.count; ++i) {
    const f32 separation = dot(polygon.normal[i], center - polygon.vertex[i]);
    if (separation > kReach) return {};
    if (separation > apart) {
      apart = separation;
      face = i;
    }
  }
  const Vec from = polygon.vertex[face], to = polygon.vertex[polygon.after(face)];
  const Vec middle = 0.5f * (from + to);
  if (apart >= kEpsilon) {
    const bool before = dot(center - from, to - from) <= 0;
    const bool beyond = dot(center - to, from - to) <= 0;
    if (before || beyond) {
      const Vec corner = before ? from : to, away = center - corner;
      const f32 square = dot(away, away);
      if (square > kReach * kReach) return {};
      const f32 scale = 1 / square_root(square);
      return {
          .points = 1, .on_second = false, .normal = scale * away, .plane = corner, .point = {}};
    }
  }
  return {.points = 1,
          .on_second = false,
          .normal = polygon.normal[face],
          .plane = middle,
          .point = {}};
}

struct Face {
  int index;
  f32 separation;
};

// The face of `a` that keeps `b` farthest away.
SPARRING_APART SPARRING_FN inline Face widest_gap(const Polygon& a, const Pose& at_a,
                                                  const Polygon& b, const Pose& at_b) {
  Vec corner[kMaxVertices];  // b in the coordinates of a
  for (int j = 0; j < b.count; ++j) corner[j] = to_local(at_a, to_world(at_b, b.vertex[j]));
  Face best = {0, -1e30f};
  SPARRING_FOR (int i = 0; i < a.count; ++i) {
    f32 deepest = 1e30f;
    for (int j = 0; j < b.count; ++j)
      deepest = min(deepest, dot(a.normal[i], corner[j] - a.vertex[i]));
    if (deepest > best.separation) best = {i, deepest};
  }
  return best;
}

// Cuts a segment at a line; false if nothing is left of it. An end that is kept comes first.
SPARRING_APART SPARRING_FN inline bool cut(Vec (&segment)[2], Vec normal, f32 offset) {
  const f32 first = dot(normal, segment[0]) - offset, second = dot(normal, segment[1]) - offset;
  if (first <= 0 && second <= 0) return true;
  if (first > 0 && second > 0) return false;
  const Vec crossing = segment[0] + first / (first - second) * (segment[1] - segment[0]);
  if (first > 0) segment[0] = segment[1];
  segment[1] = crossing;
  return true;
}

// Two polygons.
SPARRING_APART SPARRING_FN inline Manifold collide(const Polygon& first, const Pose& at_first,
                                                   const Polygon& second, const Pose& at_second) {
  constexpr f32 kReach = 2 * kSkin;
  // The second face has to be better by this much, so that the choice does not flicker.
  constexpr f32 kRelative = 0.98f, kAbsolute = 0.001f;
  const Face gap_first = widest_gap(first, at_first, second, at_second);
  if (gap_first.separation > kReach) return {};
  const Face gap_second = widest_gap(second, at_second, first, at_first);
  if (gap_second.separation > kReach) return {};
  const bool flip = gap_second.separation > kRelative * gap_first.separation + kAbsolute;
  const Polygon& reference = flip ? second : first;
  const Polygon& incident = flip ? first : second;
  const Pose& at_reference = flip ? at_second : at_first;
  const Pose& at_incident = flip ? at_first : at_second;
  const int face = flip ? gap_second.index : gap_first.index;

  const Vec normal = rotated(at_reference.turn, reference.normal[face]);
  const Vec facing = rotated_back(at_incident.turn, normal);
  int edge = 0;
  f32 opposed = 1e30f;
  for (int i = 0; i < incident.count; ++i) {
    const f32 along = dot(facing, incident.normal[i]);
    if (along < opposed) {
      opposed = along;
      edge = i;
    }
  }
  Vec segment[2] = {to_world(at_incident, incident.vertex[edge]),
                    to_world(at_incident, incident.vertex[incident.after(edge)])};
  const Vec from = reference.vertex[face], to = reference.vertex[reference.after(face)];
  const Vec world_from = to_world(at_reference, from), world_to = to_world(at_reference, to);
  const Vec along = {-normal.y, normal.x};
  if (!cut(segment, -along, kReach - dot(along, world_from))) return {};
  if (!cut(segment, along, kReach + dot(along, world_to))) return {};

  Manifold manifold{.points = 0,
                    .on_second = flip,
                    .normal = reference.normal[face],
                    .plane = 0.5f * (from + to),
                    .point = {}};
  const f32 front = dot(normal, world_from);
  for (const Vec& point : segment)
    if (dot(normal, point) - front <= kReach)
      manifold.point[manifold.points++] = to_local(at_incident, point);
  return manifold;
}

}  // namespace sparring::laser_hockey
