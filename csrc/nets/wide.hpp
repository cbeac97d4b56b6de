// The inner loops of layers on a CPU, for the widest vectors that the machine has: the extension is
// compiled for every machine of its kind, and chooses when it runs. All of them add in the same
// order; `gather` gives the same bits on every x86. Host only.
#pragma once

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/face.hpp"

namespace sparring {

// Four neighbouring columns.
using Four = f32 __attribute__((vector_size(16)));

inline Four load_four(const f32* at) {
  Four four;
  std::memcpy(&four, at, sizeof four);
  return four;
}

inline void store_four(f32* at, const Four& four) { std::memcpy(at, &four, sizeof four); }

// sum + value * from. Networks, unlike games, may use the fused instruction.
inline Four fused(const Four& sum, f32 value, const Four& from) {
#if defined(__ARM_NEON)
  return vfmaq_n_f32(sum, from, value);
#else
  return sum + value * from;
#endif
}

inline constexpr int kPanel = 32;  // columns come in multiples of it, and lie together

// The features of one row that are not 0.
struct Active {
  const int* index;
  const f32* value;
  int count;
};

struct Wide {
  // out = bias + the sum over active features of value * weight[index], for so many columns of a
  // matrix whose rows are `stride` numbers apart.
  void (*gather)(const Active& active, const f32* weight, int stride, int columns, const f32* bias,
                 f32* out);
  // out [rows, columns] = bias + x [rows, depth] times weight [columns / kPanel, depth, kPanel].
  void (*product)(const f32* x, int rows, int depth, const f32* weight, const f32* bias,
                  int columns, f32* out);
  // The same between panels: out [rows, kPanel] = bias + x times one panel of weights
  // [depth, kPanel]. x lies in panels too, [depth / kPanel, stride, kPanel]; depth is a multiple of
  // kPanel.
  void (*multiply)(const f32* x, i64 stride, int rows, int depth, const f32* weight,
                   const f32* bias, f32* out);
  // sum [kPanel, kPanel] += x [rows, kPanel] turned, times delta [rows, kPanel].
  void (*outer)(const f32* x, const f32* delta, int rows, f32* sum);
};

namespace wide4 {
#define SPARRING_LANES 4
#define SPARRING_TARGET
#include "nets/wide_kernels.hpp"
#undef SPARRING_TARGET
#undef SPARRING_LANES
}  // namespace wide4

#if defined(__x86_64__)
namespace wide8 {
#define SPARRING_LANES 8
#define SPARRING_TARGET __attribute__((target("avx2,fma")))
#include "nets/wide_kernels.hpp"
#undef SPARRING_TARGET
#undef SPARRING_LANES
}  // namespace wide8

namespace wide16 {
#define SPARRING_LANES 16
#define SPARRING_TARGET __attribute__((target("avx512f")))
#include "nets/wide_kernels.hpp"
#undef SPARRING_TARGET
#undef SPARRING_LANES
}  // namespace wide16
#endif

// By vectors of at most so many numbers; tests compare them.
inline Wide wide_of(int lanes) {
#if defined(__x86_64__)
  if (lanes >= 16 && __builtin_cpu_supports("avx512f"))
    return {wide16::gather, wide16::product, wide16::multiply, wide16::outer};
  if (lanes >= 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {wide8::gather, wide8::product, wide8::multiply, wide8::outer};
#endif
  static_cast<void>(lanes);
  return {wide4::gather, wide4::product, wide4::multiply, wide4::outer};
}

inline const Wide& wide() {
  static const Wide widest = wide_of(16);
  return widest;
}

}  // namespace sparring
