// Sine and cosine of one angle from polynomials: the same bits on every machine and GPU.
#pragma once

#include "core/fn.hpp"

namespace sparring {

struct SinCos {
  f32 sin, cos;
};

// Within 1.5e-7 of the true values for angles up to a few hundred radians.
SPARRING_FN inline SinCos sincos_of(f32 angle) {
  constexpr f32 kQuartersPerRadian = 0.636619772f;
  // A quarter turn in three parts; the products with the first two are exact for small counts.
  constexpr f32 kQuarter = 1.5703125f, kQuarterRest = 0.0004837512969970703f,
                kQuarterLast = 7.54979013e-08f;
  const f32 half = angle < 0 ? -0.5f : 0.5f;
  const i32 quarters = static_cast<i32>(angle * kQuartersPerRadian + half);
  const f32 count = static_cast<f32>(quarters);
  const f32 rest = ((angle - count * kQuarter) - count * kQuarterRest) - count * kQuarterLast;
  const f32 square = rest * rest;
  const f32 s =
      rest + rest * square * ((-1.9517298e-4f * square + 8.3321781e-3f) * square - 1.66666549e-1f);
  const f32 c =
      1.0f - 0.5f * square +
      square * square * ((2.4438451e-5f * square - 1.38873675e-3f) * square + 4.16666469e-2f);
  switch (quarters & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

}  // namespace sparring
