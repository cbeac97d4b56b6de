// What losses and optimizers do with many numbers, by the widest vectors that the machine has.
// Host only.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/describe.hpp"

namespace sparring {

inline constexpr int kSums = 16;             // partial sums of every sum
inline constexpr f32 kMinExponent = -87.0f;  // e to less than this counts as 0

// As many neighboring numbers; smaller vectors take several of theirs.
using Lanes = f32 __attribute__((vector_size(sizeof(f32) * kSums)));
using IntLanes = i32 __attribute__((vector_size(sizeof(i32) * kSums)));
using ByteLanes = u8 __attribute__((vector_size(kSums)));

inline int padded_to_sums(int count) { return (count + kSums - 1) / kSums * kSums; }

// e^x for x from kMinExponent to 0, within 3e-7 of the true value: 2 to the nearest whole power,
// times what is left as a series.
[[gnu::always_inline]] inline f32 exp_below(f32 x) {
  constexpr f32 kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it becomes a whole number
  const f32 shifted = x * 1.44269504088896341f + kRound;
  const f32 whole = shifted - kRound;
  // ln 2 in two parts, the first with few digits: its product with a whole number is exact.
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

// An Adam step, as all weights take it.
struct AdamTerms {
  f32 clip;  // what gradients are multiplied by
  f32 news_mean, keep_square, news_square;
  f32 step;        // lr by the bias of the means
  f32 root_scale;  // of the squares' roots, by their bias
  f32 eps;
};

// Moments below it are 0: of weights that get no gradient any more they would shrink without end,
// and numbers below 1e-38 cost a CPU tenfold.
inline constexpr f32 kTiny = 1e-30f;

struct Rowwise {
  f32 (*weigh)(const f32* logits, const u8* mask, int actions, int padded, f32* chance, f32* below,
               f32& top);
  f32 (*inner)(const f32* one, const f32* other, int padded);
  void (*spread)(const f32* chance, const f32* below, int actions, f32 share, f32 shift, f32 slope,
                 f32* grad);
  f64 (*squares)(const f32* x, i64 count);
  void (*follow)(const AdamTerms& terms, const f32* grad, f32* weight, f32* mean, f32* square,
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

// By vectors of at most so many numbers; tests compare them.
inline Rowwise rowwise_of(int lanes) {
#if defined(__x86_64__)
  if (lanes >= 16 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return {rowwise16::weigh, rowwise16::inner, rowwise16::spread, rowwise16::squares,
            rowwise16::follow};
  if (lanes >= 8 && __builtin_cpu_supports("avx2"))
    return {rowwise8::weigh, rowwise8::inner, rowwise8::spread, rowwise8::squares,
            rowwise8::follow};
#endif
  static_cast<void>(lanes);
  return {rowwise4::weigh, rowwise4::inner, rowwise4::spread, rowwise4::squares, rowwise4::follow};
}

inline const Rowwise& rowwise() {
  static const Rowwise widest = rowwise_of(16);
  return widest;
}

}  // namespace sparring
