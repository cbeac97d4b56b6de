// Activation functions. Host only.
#pragma once

#include "nets/wide.hpp"

namespace sparring {

// In place.
inline void activate(Activation kind, f32* x, i64 count) { wide().activate(kind, x, count); }

// Multiplies a gradient by the activation's derivative, in place. `out` is the activation's output;
// silu also needs its input `in`.
inline void slope(Activation kind, const f32* in, const f32* out, f32* grad, i64 count) {
  wide().slope(kind, in, out, grad, count);
}

}  // namespace sparring
