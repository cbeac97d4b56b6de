// The number type of networks, float32 or bf16 (SPARRING_BF16), and reductions over a warp.
#pragma once

#include "core/fn.hpp"

namespace sparring {

#if SPARRING_BF16
struct Num {
  u16 bits;
};
SPARRING_FN inline f32 number(Num x) { return __uint_as_float(u32{x.bits} << 16); }
// Rounds two numbers to nearest, ties to even; `low` comes first in memory.
SPARRING_FN inline u32 rounded_pair(f32 low, f32 high) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const auto round = [](f32 x) {
    const u32 bits = __float_as_uint(x);
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  };
  return round(low) | round(high) << 16;
#endif
}
SPARRING_FN inline Num rounded(f32 x) { return {static_cast<u16>(rounded_pair(x, x))}; }

// Eight adjacent numbers, loaded, rounded and stored together.
struct alignas(16) Num8 {
  u32 pair[4];

  SPARRING_FN f32 get(int i) const {
    return __uint_as_float(i & 1 ? pair[i / 2] & 0xffff0000u : pair[i / 2] << 16);
  }
  SPARRING_FN void put(const f32* x) {
    for (int i = 0; i < 4; ++i) pair[i] = rounded_pair(x[2 * i], x[2 * i + 1]);
  }
};
#else
struct Num {
  f32 value;
};
SPARRING_FN inline f32 number(Num x) { return x.value; }
SPARRING_FN inline Num rounded(f32 x) { return {x}; }

struct alignas(16) Num8 {
  f32 value[8];

  SPARRING_FN f32 get(int i) const { return value[i]; }
  SPARRING_FN void put(const f32* x) {
    for (int i = 0; i < 8; ++i) value[i] = x[i];
  }
};
#endif

struct alignas(16) Bytes16 {
  u64 half[2];
};

inline constexpr int kWarp = 32;
inline constexpr u32 kFullWarp = 0xffffffffu;

SPARRING_FN inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
SPARRING_FN inline i64 global_thread() { return i64{blockIdx.x} * blockDim.x + threadIdx.x; }
SPARRING_FN inline i64 global_warp() { return global_thread() / kWarp; }

SPARRING_FN inline f32 warp_sum(f32 x) {
  for (int by = kWarp / 2; by; by /= 2) x += __shfl_xor_sync(kFullWarp, x, by);
  return x;
}
SPARRING_FN inline f32 warp_max(f32 x) {
  for (int by = kWarp / 2; by; by /= 2) x = fmaxf(x, __shfl_xor_sync(kFullWarp, x, by));
  return x;
}

}  // namespace sparring
