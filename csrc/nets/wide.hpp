// Inner loops of layers on a CPU for several vector widths; the widest that the machine has is
// chosen at run time. All widths add in the same order; `gather` gives the same bits on every x86.
// Host only.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/describe.hpp"

namespace sparring {

// Four adjacent columns.
using Four = f32 __attribute__((vector_size(16)));

// On ARM by intrinsics: with memcpy compilers use other registers and run out of them.
inline Four load_four(const f32* at) {
#if defined(__ARM_NEON)
  return vld1q_f32(at);
#else
  Four four;
  std::memcpy(&four, at, sizeof four);
  return four;
#endif
}

inline void store_four(f32* at, const Four& four) {
#if defined(__ARM_NEON)
  vst1q_f32(at, four);
#else
  std::memcpy(at, &four, sizeof four);
#endif
}

// Selects from the concatenation of both vectors by index.
template <class Index>
inline Four shuffled(const Four& a, const Four& b, const Index& indices) {
#if defined(__clang__)
  Four selected;
  for (int i = 0; i < 4; ++i) selected[i] = indices[i] < 4 ? a[indices[i]] : b[indices[i] - 4];
  return selected;
#else
  return __builtin_shuffle(a, b, indices);
#endif
}

// sum + value * from. Networks, unlike games, may use the fused instruction.
inline Four fused(const Four& sum, f32 value, const Four& from) {
#if defined(__ARM_NEON)
  return vfmaq_n_f32(sum, from, value);
#else
  return sum + value * from;
#endif
}

inline constexpr int kPanel = 32;  // adjacent columns; numbers of columns are multiples of it

// The nonzero features of one row.
struct Active {
  const int* index;
  const f32* value;
  int count;
};

// The nonzero features of many rows, one after the other; end[r] is the end of row r's.
struct ActiveBlock {
  const int* index;
  const f32* value;
  const int* end;
  int rows;
};

// The same sorted by feature: entries end[f - 1]..end[f] - 1 are the rows with a nonzero feature f.
struct RowsOfFeatures {
  const int* row;
  const f32* value;
  const int* end;
  int features;
};

// Feature and divisor of every observation byte. The lengths of arrays are multiples of kByteGroup.
struct ByteTable {
  int bytes;
  const int* feature;  // -1: none
  const f32* divisor;
  const u8* divides;  // by group: whether any divisor is not 1
};
inline constexpr int kByteGroup = 16;

enum class Activation : int { kRelu, kTanh, kSilu };

struct Wide {
  // out = bias + the sum over nonzero features of value * weight[index], for `columns` columns of a
  // matrix whose rows are `stride` numbers apart.
  void (*gather)(const Active& active, const f32* weight, int stride, int columns, const f32* bias,
                 f32* out);
  // out [rows, columns] = bias + x [rows, depth] times weight [columns / kPanel, depth, kPanel].
  void (*product)(const f32* x, int rows, int depth, const f32* weight, const f32* bias,
                  int columns, f32* out);
  // The same between panels: out [rows, kPanel] = bias + x times one panel of weights
  // [depth, kPanel]. x lies in panels too, [depth / kPanel, stride, kPanel].
  void (*multiply)(const f32* x, i64 stride, int rows, int depth, const f32* weight,
                   const f32* bias, f32* out);
  // sum [kPanel, kPanel] += transpose of x [rows, kPanel], times delta [rows, kPanel].
  void (*outer)(const f32* x, const f32* delta, int rows, f32* sum);
  // sum [kPanel] += the rows of delta [rows, kPanel].
  void (*add_rows)(const f32* delta, int rows, f32* sum);
  // `multiply` for a layer whose x is given by nonzero features: out is in panels `step` numbers
  // apart, weight is [features, columns].
  void (*gather_rows)(const ActiveBlock& active, const f32* weight, int columns, const f32* bias,
                      f32* out, i64 step);
  // `outer` for such a layer: sum [features, panels * kPanel] += value * delta, which is in panels
  // as out is.
  void (*scatter_rows)(const RowsOfFeatures& active, const f32* delta, i64 step, int panels,
                       f32* sum);
  // Lists the nonzero bytes of a row and returns their number. Writes up to kByteGroup more.
  int (*list_bytes)(const u8* row, const ByteTable& table, int* index, f32* value);
  // Activation in place, and a gradient times the activation's derivative. `out` is the
  // activation's output; only silu needs its input `in`. Every width gives the same bits.
  void (*activate)(Activation kind, f32* x, i64 count);
  void (*slope)(Activation kind, const f32* in, const f32* out, f32* grad, i64 count);
};

// Inner loops, with their name for SPARRING_KERNELS.
struct Kernels {
  const char* name;
  Wide wide;
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

#define SPARRING_WIDE(space)                                                                      \
  Wide {                                                                                          \
    space::gather, space::product, space::multiply, space::outer, space::add_rows,                \
        space::gather_rows, space::scatter_rows, space::list_bytes, space::activate, space::slope \
  }

#if defined(__wasm__)
// A WebAssembly module has one vector width.
inline const Wide& wide() {
  static constexpr Wide kOnly = SPARRING_WIDE(wide4);
  return kOnly;
}
#else
// Inner loops that this machine can run, the widest last.
inline const std::vector<Kernels>& kernels_here() {
  static const std::vector<Kernels> found = [] {
    std::vector<Kernels> all;
#if defined(__ARM_NEON)
    all.push_back({"neon", SPARRING_WIDE(wide4)});
#else
    all.push_back({"plain", SPARRING_WIDE(wide4)});
#endif
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      all.push_back({"avx2", SPARRING_WIDE(wide8)});
    if (__builtin_cpu_supports("avx512f")) all.push_back({"avx512", SPARRING_WIDE(wide16)});
#endif
    return all;
  }();
  return found;
}

// Inner loops for vectors of at most `lanes` numbers; tests compare them.
inline Wide wide_of(int lanes) {
  const std::vector<Kernels>& all = kernels_here();
  const size_t want = lanes >= 16 ? 2 : lanes >= 8 ? 1 : 0;
  return all[want < all.size() ? want : all.size() - 1].wide;
}

// The widest, or the one that SPARRING_KERNELS names; null if this machine does not have it. With
// amx (nets/amx.hpp), which only multiplies, the widest do the rest.
inline const Kernels* chosen_kernels() {
  static const Kernels* const chosen = []() -> const Kernels* {
    const char* name = std::getenv("SPARRING_KERNELS");
    if (!name || !*name || !std::strcmp(name, "amx")) return &kernels_here().back();
    for (const Kernels& some : kernels_here())
      if (!std::strcmp(some.name, name)) return &some;
    return nullptr;
  }();
  return chosen;
}

inline const Wide& wide() {
  static const Wide& used = chosen_kernels() ? chosen_kernels()->wide : kernels_here().back().wide;
  return used;
}
#endif  // __wasm__
#undef SPARRING_WIDE

}  // namespace sparring
