// The functions between layers. Host only.
#pragma once

#include "nets/tanh.hpp"

namespace sparring {

enum class Activation : int { kRelu, kTanh, kSilu };

// In place; the count is a multiple of 4.
inline void activate(Activation kind, f32* x, i64 count) {
  constexpr f32 kDead = -30;  // where x times its sigmoid rounds to 0 beside anything
  if (kind == Activation::kRelu) {
    for (i64 i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
    return;
  }
  for (i64 i = 0; i < count; i += 4) {
    const Four four = load_four(x + i);
    if (kind == Activation::kTanh) {
      store_four(x + i, tanh_of_four(four));
    } else {
      const Four made = four * (tanh_of_four(four * 0.5f) + 1.0f) * 0.5f;
      for (int j = 0; j < 4; ++j) x[i + j] = four[j] < kDead ? 0 : made[j];
    }
  }
}

// Multiplies a gradient by the slope, in place. `out` is what came out; of silu, `in` is what went
// in, the others do not need it.
inline void slope(Activation kind, const f32* in, const f32* out, f32* grad, i64 count) {
  if (kind == Activation::kRelu) {
    for (i64 i = 0; i < count; ++i) grad[i] = out[i] > 0 ? grad[i] : 0;
  } else if (kind == Activation::kTanh) {
    for (i64 i = 0; i < count; ++i) grad[i] *= 1 - out[i] * out[i];
  } else {
    for (i64 i = 0; i < count; i += 4) {
      const Four half = tanh_of_four(load_four(in + i) * 0.5f) * 0.5f + 0.5f;  // the sigmoid
      const Four made = load_four(in + i) * (1.0f - half) + 1.0f;
      store_four(grad + i, load_four(grad + i) * (half * made));
    }
  }
}

}  // namespace sparring
