// Basics of every other header: the host/device macros, fixed-width types, bit helpers.
#pragma once

#if defined(__CUDACC__)
#define SPARRING_FN __host__ __device__
#else
#define SPARRING_FN
#endif

// Marks a large function of a game that has several callers: inlined into each of them, it would
// take a GPU compiler minutes. Not for functions in the pool's main loop: docs/guides/gpu.md.
#if defined(__CUDACC__)
#define SPARRING_APART __noinline__
#else
#define SPARRING_APART
#endif

// A `for` loop of a game that a GPU compiler must not unroll: a step whose code exceeds the
// instruction cache stalls.
#if defined(__CUDACC__)
#define SPARRING_FOR _Pragma("unroll 1") for
#else
#define SPARRING_FOR for
#endif

// A short `for` loop whose loads a GPU is to issue together, so that it waits once.
#if defined(__CUDACC__)
#define SPARRING_UNROLL _Pragma("unroll") for
#else
#define SPARRING_UNROLL for
#endif

// Promises that a row is written through this pointer only, so that the fields of the game can
// stay in registers meanwhile.
#define SPARRING_RESTRICT __restrict__

// Names, descriptions and error texts exist on the host only; NVRTC compiles the rules without
// them.
#if defined(__CUDACC_RTC__)
#define SPARRING_HOST 0
#else
#define SPARRING_HOST 1
#include <cstddef>
#include <cstring>
#endif

namespace sparring {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using f32 = float;
using f64 = double;

static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8);

SPARRING_FN inline int popcount(u64 x) {
#if defined(__CUDA_ARCH__)
  return __popcll(x);
#else
  return __builtin_popcountll(x);
#endif
}

// Index of the lowest set bit; x must not be 0.
SPARRING_FN inline int lowest_bit(u64 x) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<i64>(x)) - 1;
#else
  return __builtin_ctzll(x);
#endif
}

// Index of the highest set bit; x must not be 0.
SPARRING_FN inline int highest_bit(u64 x) {
#if defined(__CUDA_ARCH__)
  return 63 - __clzll(static_cast<i64>(x));
#else
  return 63 - __builtin_clzll(x);
#endif
}

SPARRING_FN inline void copy_bytes(void* to, const void* from, int count) {
  memcpy(to, from, static_cast<decltype(sizeof(0))>(count));
}

// Writes eight bytes, lowest first, to any address. A GPU would copy them through memory.
SPARRING_FN inline void store8(u8* to, u64 value) {
#if defined(__CUDA_ARCH__)
  for (int i = 0; i < 8; ++i) to[i] = static_cast<u8>(value >> (8 * i));
#else
  memcpy(to, &value, 8);
#endif
}

// Reads eight bytes, lowest first, from any address.
SPARRING_FN inline u64 load8(const u8* from) {
#if defined(__CUDA_ARCH__)
  u64 value = 0;
  for (int i = 0; i < 8; ++i) value |= u64{from[i]} << (8 * i);
  return value;
#else
  u64 value;
  memcpy(&value, from, 8);
  return value;
#endif
}

SPARRING_FN inline void zero_bytes(void* to, int count) {
  memset(to, 0, static_cast<decltype(sizeof(0))>(count));
}

template <class T>
SPARRING_FN constexpr T min(T a, T b) {
  return b < a ? b : a;
}

template <class T>
SPARRING_FN constexpr T max(T a, T b) {
  return a < b ? b : a;
}

SPARRING_FN constexpr bool is_finite(f32 x) { return x - x == 0; }

SPARRING_FN constexpr int absolute(int x) { return x < 0 ? -x : x; }

// a mod m in 0..m-1 for a in -m..2m-1: seat arithmetic without a division.
SPARRING_FN constexpr int wrap(int a, int m) { return a >= m ? a - m : a < 0 ? a + m : a; }

}  // namespace sparring
