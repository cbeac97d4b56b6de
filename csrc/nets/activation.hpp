// The functions between layers. Host only.
#pragma once

#include "nets/wide.hpp"

namespace sparring {

// In place.
inline void activate(Activation kind, f32* x, i64 count) { wide().activate(kind, x, count); }

// Multiplies a gradient by the slope, in place. `out` is what came out; of silu, `in` is what went
// in, the others do not need it.
inline void slope(Activation kind, const f32* in, const f32* out, f32* grad, i64 count) {
  wide().slope(kind, in, out, grad, count);
}

}  // namespace sparring
