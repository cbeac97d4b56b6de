// Vectorized loops of losses and optimizers, by the widest vectors that the machine has. Host only.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/describe.hpp"

namespace sparring {

inline constexpr int kSums = 16;             // partial sums of every sum
inline constexpr f32 kMinExponent = -87.0f;  // exp of less is 0

// kSums adjacent numbers; machines with smaller vectors use several.
using Lanes = f32 __attribute__((vector_size(sizeof(f32) * kSums)));
using IntLanes = i32 __attribute__((vector_size(sizeof(i32) * kSums)));
using ByteLanes = u8 __attribute__((vector_size(kSums)));

inline int padded_to_sums(int count) { return (count + kSums - 1) / kSums * kSums; }

// exp(x) for x from kMinExponent to 0, within 3e-7: 2 to an integer power, times a series of the
// rest.
[[gnu::always_inline]] inline f32 exp_below(f32 x) {
  constexpr f32 kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const f32 shifted = x * 1.44269504088896341f + kRound;
  const f32 whole = shifted - kRound;
  // ln 2 in two parts, the first with few digits, so that its product with an integer is exact.
  const f32 rest = (x - whole * 0.693359375f) + whole * 2.12194440054690583e-4f;
  f32 sum = rest * (1.0f / 5040) + 1.0f / 720;
  sum = sum * rest + 1.0f / 120;
  sum = sum * rest + 1.0f / 24;
  sum = sum * rest + 1.0f / 6;
  sum = sum * rest + 0.5f;
  sum = sum * rest + 1.0f;
  sum = sum * rest + 1.0f;
  const i32 power = std::bit_cast<i32>(shifted) - std::bit_cast<i32>(kRound);
  return sum * std::bit_cast<f32>((power + 127) << 23);
}

template <class T>
[[gnu::always_inline]] inline T sum_of(T (&sums)[kSums]) {
  for (int half = kSums / 2; half; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}

// Parameters of an Adam step, the same for all weights.
struct AdamTerms {
  f32 clip;  // factor of the gradient
  f32 mean_rate, square_decay, square_rate;
  f32 step;        // learning rate with bias correction
  f32 root_scale;  // bias correction of the squares' roots
  f32 eps;
};

// Moments below it become 0: without a gradient they would shrink to denormal numbers, which are
// ten times slower.
inline constexpr f32 kTiny = 1e-30f;

struct Rowwise {
  f32 (*masked_exp)(const f32* logits, const u8* mask, int actions, int padded, f32* chance,
                    f32* below, f32& top);
  f32 (*dot)(const f32* one, const f32* other, int padded);
  void (*softmax_grad)(const f32* chance, const f32* below, int actions, f32 share, f32 shift,
                       f32 slope, f32* grad);
  f64 (*squares)(const f32* x, i64 count);
  void (*adam_step)(const AdamTerms& terms, const f32* grad, f32* weight, f32* mean, f32* square,
                    i64 count);
};

namespace rowwise4 {
#define SPARRING_TARGET
#include "learn/rowwise_kernels.hpp"
#undef SPARRING_TARGET
}  // namespace rowwise4

#if defined(__x86_64__)
namespace rowwise8 {
#define SPARRING_TARGET __attribute__((target("avx2")))
#include "learn/rowwise_kernels.hpp"
#undef SPARRING_TARGET
}  // namespace rowwise8

namespace rowwise16 {
#define SPARRING_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")))
#include "learn/rowwise_kernels.hpp"
#undef SPARRING_TARGET
}  // namespace rowwise16
#endif

// Loops for vectors of at most `lanes` numbers; tests compare them.
inline Rowwise rowwise_of(int lanes) {
#if defined(__x86_64__)
  if (lanes >= 16 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return {rowwise16::masked_exp, rowwise16::dot, rowwise16::softmax_grad, rowwise16::squares,
            rowwise16::adam_step};
  if (lanes >= 8 && __builtin_cpu_supports("avx2"))
    return {rowwise8::masked_exp, rowwise8::dot, rowwise8::softmax_grad, rowwise8::squares,
            rowwise8::adam_step};
#endif
  static_cast<void>(lanes);
  return {rowwise4::masked_exp, rowwise4::dot, rowwise4::softmax_grad, rowwise4::squares,
          rowwise4::adam_step};
}

inline const Rowwise& rowwise() {
  static const Rowwise widest = rowwise_of(16);
  return widest;
}

}  // namespace sparring
