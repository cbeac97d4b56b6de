// Vectors and rotations of the plane.
#pragma once

#include "core/fn.hpp"
#include "core/sincos.hpp"

namespace sparring::laser_hockey {

struct Vec {
  f32 x, y;
};

SPARRING_FN constexpr Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y}; }
SPARRING_FN constexpr Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y}; }
SPARRING_FN constexpr Vec operator-(Vec a) { return {-a.x, -a.y}; }
SPARRING_FN constexpr Vec operator*(f32 s, Vec a) { return {s * a.x, s * a.y}; }
SPARRING_FN constexpr f32 dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y; }
SPARRING_FN constexpr f32 cross(Vec a, Vec b) { return a.x * b.y - a.y * b.x; }
// The velocity of a point at `arm` from the axis of a spin.
SPARRING_FN constexpr Vec cross(f32 spin, Vec arm) { return {-spin * arm.y, spin * arm.x}; }
// A quarter turn clockwise: the outward normal of an edge, the tangent of a normal.
SPARRING_FN constexpr Vec right_of(Vec a) { return {a.y, -a.x}; }

SPARRING_FN inline f32 square_root(f32 x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

SPARRING_FN inline f32 length(Vec a) { return square_root(dot(a, a)); }
SPARRING_FN constexpr f32 magnitude(f32 x) { return x < 0 ? -x : x; }
SPARRING_FN constexpr f32 clamp(f32 x, f32 low, f32 high) {
  return x < low ? low : x > high ? high : x;
}

SPARRING_FN constexpr Vec rotated(SinCos by, Vec a) {
  return {by.cos * a.x - by.sin * a.y, by.sin * a.x + by.cos * a.y};
}
SPARRING_FN constexpr Vec rotated_back(SinCos by, Vec a) {
  return {by.cos * a.x + by.sin * a.y, by.cos * a.y - by.sin * a.x};
}

// Where the origin of a body is, and how it is turned.
struct Pose {
  Vec origin;
  SinCos turn;
};

SPARRING_FN constexpr Vec to_world(const Pose& pose, Vec local) {
  return rotated(pose.turn, local) + pose.origin;
}
SPARRING_FN constexpr Vec to_local(const Pose& pose, Vec world) {
  return rotated_back(pose.turn, world - pose.origin);
}

// An upright rectangle.
struct Bounds {
  Vec low, high;
};

SPARRING_FN constexpr Bounds joined(const Bounds& a, const Bounds& b) {
  return {{min(a.low.x, b.low.x), min(a.low.y, b.low.y)},
          {max(a.high.x, b.high.x), max(a.high.y, b.high.y)}};
}

SPARRING_FN constexpr bool overlap(const Bounds& a, const Bounds& b, f32 margin) {
  return a.low.x <= b.high.x + margin && b.low.x <= a.high.x + margin &&
         a.low.y <= b.high.y + margin && b.low.y <= a.high.y + margin;
}

}  // namespace sparring::laser_hockey
