// Products in bfloat16 by AMX tiles on x86: factors are rounded to bfloat16, sums are float32.
// Tiles read and write blocks of 32 by 32 numbers. Host only.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string_view>
#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SPARRING_HAS_AMX 1
#else
#define SPARRING_HAS_AMX 0
#endif

#include "nets/activation.hpp"

namespace sparring {

#if SPARRING_HAS_AMX
inline bool cpu_has_amx() {
  u32 a = 7, b, c = 0, d;
  const auto cpuid = [&] { asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d)); };
  cpuid();
  constexpr u32 kBf16 = 1u << 22, kTile = 1u << 24;
  if (!(d & kBf16) || !(d & kTile) || !__builtin_cpu_supports("avx512bw")) return false;
  a = 7, c = 1;
  cpuid();
  constexpr u32 kVectorsOfBf16 = 1u << 5;
  if (!(a & kVectorsOfBf16)) return false;
  u32 low, high;  // registers that the system saves for a thread
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr u32 kTileState = 3u << 17;
  if ((low & kTileState) != kTileState) return false;
  // Linux grants the 8 KB of a thread's tiles on request only.
  constexpr long kAskForState = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}
#endif

// Whether tiles are used: the machine has them, and SPARRING_KERNELS is unset or amx.
inline bool amx_usable() {
#if SPARRING_HAS_AMX
  static const bool has = cpu_has_amx();
  const char* chosen = std::getenv("SPARRING_KERNELS");
  return has && (!chosen || !*chosen || std::string_view(chosen) == "amx");
#else
  return false;
#endif
}

#if SPARRING_HAS_AMX
// GCC 12 warns about values that its headers leave undefined on purpose.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define SPARRING_AMX \
  __attribute__((    \
      target("amx-tile,amx-bf16,avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace amx {

inline constexpr int kSide = 32;  // of a block
inline constexpr int kHalf = 16;  // of a tile

// 32 by 32 numbers of a matrix, as a factor of a product:
// rows: [row, column], the left factor. pairs: two tiles [row / 2, column % 16, row % 2], the right
// factor. Both have the numbers that a product sums over 64 bytes apart at most.
struct alignas(64) Block {
  u16 number[kSide * kSide];
};

// The same in float32, [row, column].
struct alignas(64) Sums {
  f32 number[kSide * kSide];

  f32* row(int r) { return number + r * kSide; }
  const f32* row(int r) const { return number + r * kSide; }
};

// Which of a block's numbers are above 0: a bit for every column of a row.
struct alignas(64) Signs {
  u32 row[kSide];
};

// Configures every tile as 16 rows of 64 bytes. A thread calls it before products, and `release`
// afterwards: context switches of a thread with tiles in use are slower.
SPARRING_AMX inline void configure() {
  struct alignas(64) {
    u8 palette = 1, start_row = 0, unused[14] = {};
    u16 row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    u8 rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } const config;
  static_assert(sizeof config == 64);
  asm volatile("" : : "r"(&config) : "memory");  // GCC sees only its first bytes being read
  _tile_loadconfig(&config);
}

SPARRING_AMX inline void release() { _tile_release(); }

inline constexpr int kStride = 64, kSumStride = kSide * 4, kTile = kHalf * kSide;

SPARRING_AMX inline void store_sums(Sums& sums) {
  f32* sum = sums.number;
  _tile_stored(0, sum, kSumStride);
  _tile_stored(1, sum + kHalf, kSumStride);
  _tile_stored(2, sum + kTile, kSumStride);
  _tile_stored(3, sum + kTile + kHalf, kSumStride);
  asm volatile("" : : : "memory");
}

// sums (+)= the sum of the products left[i] * right[i].
SPARRING_AMX inline void multiply(const Block* left, const Block* right, int count, bool add,
                                  Sums& sums) {
  asm volatile("" : : : "memory");  // GCC does not know that tiles are loaded from memory
  if (add) {
    const f32* sum = sums.number;
    _tile_loadd(0, sum, kSumStride);
    _tile_loadd(1, sum + kHalf, kSumStride);
    _tile_loadd(2, sum + kTile, kSumStride);
    _tile_loadd(3, sum + kTile + kHalf, kSumStride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int i = 0; i < count; ++i) {
    const u16 *from = left[i].number, *by = right[i].number;
    _tile_loadd(4, from, kStride);
    _tile_loadd(6, by, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, by + kTile, kStride);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, from + kTile, kStride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  store_sums(sums);
}

// The same with factors of twice the precision. rest: rounding errors of `left`, null if there are
// none. right: [count, 2], rounded numbers and their rounding errors.
SPARRING_AMX inline void multiply_finely(const Block* left, const Block* rest, const Block* right,
                                         int count, Sums& sums) {
  asm volatile("" : : : "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int i = 0; i < count; ++i) {
    const u16 *from = left[i].number, *by = right[2 * i].number, *rest_by = by + 2 * kTile;
    _tile_loadd(6, by, kStride);
    _tile_loadd(7, by + kTile, kStride);
    if (rest) {
      const u16* rest_from = rest[i].number;
      _tile_loadd(4, rest_from, kStride);
      _tile_loadd(5, rest_from + kTile, kStride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_loadd(4, from, kStride);
    _tile_loadd(5, from + kTile, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(6, rest_by, kStride);
    _tile_loadd(7, rest_by + kTile, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  store_sums(sums);
}

// 32 numbers of a row, rounded to the nearest bfloat16, ties to even.
SPARRING_AMX inline __m512i rounded(__m512 left, __m512 right) {
  return (__m512i)_mm512_cvtne2ps_pbh(right, left);
}

SPARRING_AMX inline __m512 widened(__m256i half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

// Transposes 16 by 16 words of 32 bits.
SPARRING_AMX inline void turn(__m512i (&row)[kHalf]) {
  __m512i held[kHalf];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    held[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    held[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    row[i] = _mm512_unpacklo_epi64(held[i], held[i + 2]);
    row[i + 1] = _mm512_unpackhi_epi64(held[i], held[i + 2]);
    row[i + 2] = _mm512_unpacklo_epi64(held[i + 1], held[i + 3]);
    row[i + 3] = _mm512_unpackhi_epi64(held[i + 1], held[i + 3]);
  }
  constexpr int kEven = 0x88, kOdd = 0xdd;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    held[i] = _mm512_shuffle_i32x4(row[i], row[i + 4], kEven);
    held[i + 4] = _mm512_shuffle_i32x4(row[i], row[i + 4], kOdd);
    held[i + 8] = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], kEven);
    held[i + 12] = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], kOdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    row[i] = _mm512_shuffle_i32x4(held[i], held[i + 8], kEven);
    row[i + 8] = _mm512_shuffle_i32x4(held[i], held[i + 8], kOdd);
    row[i + 4] = _mm512_shuffle_i32x4(held[i + 4], held[i + 12], kEven);
    row[i + 12] = _mm512_shuffle_i32x4(held[i + 4], held[i + 12], kOdd);
  }
}

SPARRING_AMX inline void store_half(const __m512i (&row)[kHalf], Block& to, int half) {
#pragma GCC unroll 16
  for (int i = 0; i < kHalf; ++i)
    _mm512_store_si512(to.number + (half * kHalf + i) * kSide, row[i]);
}

// Half of the columns of `rows` in pairs of rows.
SPARRING_AMX inline void pair_half(const Block& rows, int half, __m512i (&pair)[kHalf]) {
  const __m512i up = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                      39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i order = _mm512_add_epi16(up, _mm512_set1_epi16(static_cast<short>(half * kHalf)));
#pragma GCC unroll 16
  for (int i = 0; i < kHalf; ++i)
    pair[i] = _mm512_permutex2var_epi16(_mm512_load_si512(rows.number + 2 * i * kSide), order,
                                        _mm512_load_si512(rows.number + (2 * i + 1) * kSide));
}

SPARRING_AMX inline void pairs_of(const Block& rows, Block& pairs) {
  __m512i pair[kHalf];
  for (int half = 0; half < 2; ++half) {
    pair_half(rows, half, pair);
    store_half(pair, pairs, half);
  }
}

// The transpose.
SPARRING_AMX inline void turned_of(const Block& rows, Block& transposed) {
  __m512i pair[kHalf];
  for (int half = 0; half < 2; ++half) {
    pair_half(rows, half, pair);
    turn(pair);
    store_half(pair, transposed, half);
  }
}

// The transpose, in pairs.
SPARRING_AMX inline void turned_pairs_of(const Block& rows, Block& pairs) {
  __m512i row[kHalf];
  for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 16
    for (int i = 0; i < kHalf; ++i)
      row[i] = _mm512_load_si512(rows.number + (half * kHalf + i) * kSide);
    turn(row);
    store_half(row, pairs, half);
  }
}

SPARRING_AMX inline void turned_of(const Sums& sums, Sums& transposed) {
  __m512i row[kHalf];
  for (int part = 0; part < 4; ++part) {
    const int down = part / 2 * kHalf, right = part % 2 * kHalf;
#pragma GCC unroll 16
    for (int i = 0; i < kHalf; ++i) row[i] = _mm512_load_si512(sums.row(down + i) + right);
    turn(row);
#pragma GCC unroll 16
    for (int i = 0; i < kHalf; ++i) _mm512_store_si512(transposed.row(right + i) + down, row[i]);
  }
}

// Rounding errors of 32 numbers.
SPARRING_AMX inline __m512i rest_of(__m512 left, __m512 right, __m512i outputs) {
  return rounded(_mm512_sub_ps(left, widened(_mm512_castsi512_si256(outputs))),
                 _mm512_sub_ps(right, widened(_mm512_extracti64x4_epi64(outputs, 1))));
}

// Row r of a block from 32 numbers; rest: their rounding errors, or null.
SPARRING_AMX inline void round_row(const f32* from, int r, Block& rows, Block* rest) {
  const __m512 left = _mm512_loadu_ps(from), right = _mm512_loadu_ps(from + kHalf);
  const __m512i outputs = rounded(left, right);
  _mm512_store_si512(rows.number + r * kSide, outputs);
  if (rest) _mm512_store_si512(rest->number + r * kSide, rest_of(left, right, outputs));
}

SPARRING_AMX inline void round_to(const Sums& sums, Block& rows, Block* rest) {
  for (int r = 0; r < kSide; ++r) round_row(sums.row(r), r, rows, rest);
}

// As `tanh_of_four`, 16 at a time.
SPARRING_AMX inline __m512 tanh_of(__m512 x) {
  constexpr f32 kEnd = 7.90531110763549805f;
  x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-kEnd)), _mm512_set1_ps(kEnd));
  const __m512 square = _mm512_mul_ps(x, x);
  __m512 above = _mm512_set1_ps(-2.76076847742355e-16f);
  constexpr f32 kAbove[] = {2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f,
                            1.48572235717979e-05f, 6.37261928875436e-04f,  4.89352455891786e-03f};
  for (const f32 next : kAbove) above = _mm512_fmadd_ps(above, square, _mm512_set1_ps(next));
  __m512 below = _mm512_set1_ps(1.19825839466702e-06f);
  constexpr f32 kBelow[] = {1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f};
  for (const f32 next : kBelow) below = _mm512_fmadd_ps(below, square, _mm512_set1_ps(next));
  return _mm512_div_ps(_mm512_mul_ps(x, above), below);
}

// The activation of 16 numbers, and its derivative.
template <Activation kKind>
SPARRING_AMX inline __m512 activated(__m512 x, __m512& slope) {
  const __m512 one = _mm512_set1_ps(1), half = _mm512_set1_ps(0.5f);
  if constexpr (kKind == Activation::kRelu) {
    slope = one;  // not read: signs are used instead
    return _mm512_max_ps(x, _mm512_setzero_ps());
  } else if constexpr (kKind == Activation::kTanh) {
    const __m512 made = tanh_of(x);
    slope = _mm512_fnmadd_ps(made, made, one);
    return made;
  } else {
    const __m512 sigmoid = _mm512_fmadd_ps(tanh_of(_mm512_mul_ps(x, half)), half, half);
    const __m512 made = _mm512_mul_ps(x, sigmoid);
    slope = _mm512_mul_ps(sigmoid, _mm512_add_ps(one, _mm512_sub_ps(x, made)));
    constexpr f32 kDead = -30;
    const __mmask16 alive = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kDead), _CMP_GE_OQ);
    return _mm512_maskz_mov_ps(alive, made);
  }
}

// rows = the activation of sums + bias, rounded, and the rounding errors. Slopes may be null; those
// of relu are signs.
template <Activation kKind>
SPARRING_AMX inline void finish(const Sums& sums, const f32* bias, Block& rows, Block& rest,
                                Signs* signs, Sums* slopes) {
  const __m512 left = _mm512_loadu_ps(bias), right = _mm512_loadu_ps(bias + kHalf);
  for (int r = 0; r < kSide; ++r) {
    __m512 slope, other;
    const __m512 made = activated<kKind>(_mm512_add_ps(_mm512_load_ps(sums.row(r)), left), slope);
    const __m512 beside =
        activated<kKind>(_mm512_add_ps(_mm512_load_ps(sums.row(r) + kHalf), right), other);
    const __m512i outputs = rounded(made, beside);
    _mm512_store_si512(rows.number + r * kSide, outputs);
    _mm512_store_si512(rest.number + r * kSide, rest_of(made, beside, outputs));
    if (kKind == Activation::kRelu && signs)
      signs->row[r] = _mm512_cmpgt_epi16_mask(outputs, _mm512_setzero_si512());
    if (kKind == Activation::kRelu || !slopes) continue;
    _mm512_store_ps(slopes->row(r), slope);
    _mm512_store_ps(slopes->row(r) + kHalf, other);
  }
}

// delta = sums times the slopes, rounded, and the sums of its columns. Without slopes signs are
// used, without both delta = sums.
SPARRING_AMX inline void descend(const Sums& sums, const Signs* signs, const Sums* slopes,
                                 Block& delta, f32* total) {
  __m512 left = _mm512_setzero_ps(), right = left;
  for (int r = 0; r < kSide; ++r) {
    __m512 one = _mm512_load_ps(sums.row(r)), other = _mm512_load_ps(sums.row(r) + kHalf);
    if (slopes) {
      one = _mm512_mul_ps(one, _mm512_load_ps(slopes->row(r)));
      other = _mm512_mul_ps(other, _mm512_load_ps(slopes->row(r) + kHalf));
    } else if (signs) {
      one = _mm512_maskz_mov_ps(static_cast<__mmask16>(signs->row[r] & 0xffff), one);
      other = _mm512_maskz_mov_ps(static_cast<__mmask16>(signs->row[r] >> kHalf), other);
    }
    left = _mm512_add_ps(left, one);
    right = _mm512_add_ps(right, other);
    _mm512_store_si512(delta.number + r * kSide, rounded(one, other));
  }
  _mm512_storeu_ps(total, left);
  _mm512_storeu_ps(total + kHalf, right);
}

inline __mmask16 first_of(int count) {
  return static_cast<__mmask16>(count >= kHalf ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

// Up to 32 numbers, padded with 0.
SPARRING_AMX inline void copy_row(const f32* from, int count, f32* to) {
  _mm512_storeu_ps(to, _mm512_maskz_loadu_ps(first_of(count), from));
  _mm512_storeu_ps(to + kHalf, _mm512_maskz_loadu_ps(first_of(count - kHalf), from + kHalf));
}

// Multiplies every row, or every column, by its own number.
SPARRING_AMX inline void scale_rows(Sums& sums, const f32* by) {
  for (int r = 0; r < kSide; ++r)
    for (int half = 0; half < 2; ++half) {
      f32* at = sums.row(r) + half * kHalf;
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), _mm512_set1_ps(by[r])));
    }
}

SPARRING_AMX inline void scale_columns(Sums& sums, const f32* by) {
  for (int r = 0; r < kSide; ++r)
    for (int half = 0; half < 2; ++half) {
      f32* at = sums.row(r) + half * kHalf;
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), _mm512_loadu_ps(by + half * kHalf)));
    }
}

// to (+)= from + shift, up to 32 numbers.
SPARRING_AMX inline void put_row(const f32* from, const f32* shift, int count, bool add, f32* to) {
  for (int half = 0; half < 2; ++half) {
    const int at = half * kHalf;
    const __mmask16 mask = first_of(count - at);
    __m512 made = _mm512_maskz_loadu_ps(mask, from + at);
    if (shift) made = _mm512_add_ps(made, _mm512_maskz_loadu_ps(mask, shift + at));
    if (add) made = _mm512_add_ps(made, _mm512_maskz_loadu_ps(mask, to + at));
    _mm512_mask_storeu_ps(to + at, mask, made);
  }
}

// Converts numbers of a type to float32.
SPARRING_AMX inline void widen(const u8* at, Type type, int count, f32* to) {
  for (int i = 0; i < count; i += kHalf) {
    const __mmask16 mask = first_of(count - i);
    __m512 raw;
    if (type == Type::kU8)
      raw = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, at + i)));
    else if (type == Type::kI8)
      raw = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, at + i)));
    else if (type == Type::kI16)
      raw = _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(mask, at + 2 * i)));
    else
      raw = _mm512_maskz_loadu_ps(mask, at + 4 * i);
    _mm512_mask_storeu_ps(to + i, mask, raw);
  }
}

}  // namespace amx

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

}  // namespace sparring
