// What a network needs around matrix products that a library makes: widening of rows, activations,
// and sums of gradients.
//
// Every array has a leading dimension for the members of a population, which learn side by side
// and never mix; alone, there is one. NVRTC compiles this file with the layout of a row
// (`row_constants` in src/sparring/nets/run/flat.py) and with SPARRING_BF16.
#pragma once

#include "cuda/number.cuh"

namespace sparring {

// Where the features lie in a row: all u8, then i8, i16, f32, then those of the memory. A widened
// row has zeros behind them, up to kWidth.
inline constexpr int kRowBytes = SPARRING_ROW_BYTES, kWidth = SPARRING_WIDTH;
inline constexpr int kU8s = SPARRING_U8S, kI8s = SPARRING_I8S, kI16s = SPARRING_I16S,
                     kF32s = SPARRING_F32S, kMemoryF32s = SPARRING_MEMORY_F32S;
inline constexpr int kI8At = SPARRING_I8_AT, kI16At = SPARRING_I16_AT, kF32At = SPARRING_F32_AT,
                     kMemoryAt = SPARRING_MEMORY_AT;
inline constexpr int kEights = kU8s / 8, kRest = kWidth - 8 * kEights;

SPARRING_FN inline f32 feature(const u8* row, int i) {
  if (i < kU8s) return static_cast<f32>(row[i]);
  i -= kU8s;
  if (i < kI8s) return static_cast<f32>(reinterpret_cast<const i8*>(row)[kI8At + i]);
  i -= kI8s;
  if (i < kI16s) return static_cast<f32>(reinterpret_cast<const i16*>(row + kI16At)[i]);
  i -= kI16s;
  if (i < kF32s) return reinterpret_cast<const f32*>(row + kF32At)[i];
  i -= kF32s;
  return i < kMemoryF32s ? reinterpret_cast<const f32*>(row + kMemoryAt)[i] : 0.0f;
}

// Eight bytes of a row as numbers, or one feature: the first threads take eight bytes each, those
// behind them one feature. A place that is negative gives zeros, or is left alone with `skip`.
SPARRING_FN inline void widen_part(u32 at, const u8* obs, const i32* places, int rows, bool skip,
                                   Num* out) {
  const u32 whole = static_cast<u32>(rows) * kEights;
  if (at < whole) {
    const u32 row = at / most(kEights, 1), first = 8 * (at % most(kEights, 1));
    const i64 place = places ? i64{places[row]} : i64{row};
    if (skip && place < 0) return;
    const u64 bytes =
        place < 0 ? 0 : *reinterpret_cast<const u64*>(obs + place * kRowBytes + first);
    f32 x[8];
    for (int i = 0; i < 8; ++i) x[i] = static_cast<f32>(bytes >> (8 * i) & 0xff);
    Num8 eight;
    eight.put(x);
    *reinterpret_cast<Num8*>(out + i64{row} * kWidth + first) = eight;
  } else if (at - whole < static_cast<u32>(rows) * kRest) {
    const u32 row = (at - whole) / most(kRest, 1), i = 8 * kEights + (at - whole) % most(kRest, 1);
    const i64 place = places ? i64{places[row]} : i64{row};
    if (skip && place < 0) return;
    out[i64{row} * kWidth + i] =
        rounded(place < 0 ? 0 : feature(obs + place * kRowBytes, static_cast<int>(i)));
  }
}

// Widens rows for a network: row i is `obs` row places[i], or i where `places` is null. Rows
// whose place is negative become zeros. Divisors are part of the first layer's weights.
extern "C" __global__ void widen(const u8* obs, const i32* places, int rows, Num* out) {
  widen_part(static_cast<u32>(global_thread()), obs, places, rows, false, out);
}

SPARRING_FN inline f32 activated(f32 x, int tanh) { return tanh ? tanhf(x) : fmaxf(x, 0.0f); }

// A layer's output [members, rows, columns] before its bias.
struct LayerView {
  Num* x;
  const Num* bias;
  i64 bias_stride;  // from one member's to the next's
  int members, rows, columns;
  int tanh;  // 0: relu
};

// Adds the bias and applies the activation, in place, eight columns per thread.
extern "C" __global__ void activate(LayerView layer) {
  const i64 at = global_thread() * 8;
  if (at >= i64{layer.members} * layer.rows * layer.columns) return;
  const i64 member = at / (i64{layer.rows} * layer.columns);
  const Num* add = layer.bias + member * layer.bias_stride + at % layer.columns;
  Num8 eight = *reinterpret_cast<const Num8*>(layer.x + at);
  const Num8 more = *reinterpret_cast<const Num8*>(add);
  f32 made[8];
  for (int i = 0; i < 8; ++i) made[i] = activated(eight.get(i) + more.get(i), layer.tanh);
  eight.put(made);
  *reinterpret_cast<Num8*>(layer.x + at) = eight;
}

// A gradient [members, rows, columns] on its way through an activation, and where the sums of its
// columns go: those of all layers lie side by side, [members, blocks, all_columns].
struct ColumnsView {
  Num* grad;
  const Num* out;  // what the activation gave; null if there is none
  int rows, columns, rows_per_block;
  int kind;  // 0: no activation, sums alone; 1: relu; 2: tanh
  f32* sums;
  int all_columns, first_column;
};

// The gradient in front of an activation, in place, and the sums of its columns over each block of
// rows: the gradient of the bias.
extern "C" __global__ void __launch_bounds__(256) backward_activation(ColumnsView v) {
  __shared__ f32 all[8][256];
  const i64 member = blockIdx.z;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, kind = v.kind;
  const int column = static_cast<int>(blockIdx.x) * 256 + 8 * lane();
  f32 mine[8]{};
  if (column < v.columns) {
    const int first = static_cast<int>(blockIdx.y) * v.rows_per_block;
    const int end = least(first + v.rows_per_block, v.rows);
#pragma unroll 4
    for (int row = first + warp; row < end; row += 8) {
      const i64 at = (member * v.rows + row) * v.columns + column;
      Num8 eight = *reinterpret_cast<const Num8*>(v.grad + at);
      f32 x[8];
      for (int i = 0; i < 8; ++i) x[i] = eight.get(i);
      if (kind) {
        const Num8 made = *reinterpret_cast<const Num8*>(v.out + at);
        for (int i = 0; i < 8; ++i) {
          const f32 y = made.get(i);
          x[i] = kind == 1 ? (y > 0 ? x[i] : 0.0f) : x[i] * (1 - y * y);
        }
        eight.put(x);
        *reinterpret_cast<Num8*>(v.grad + at) = eight;
      }
      for (int i = 0; i < 8; ++i) mine[i] += x[i];
    }
  }
  for (int i = 0; i < 8; ++i) all[warp][8 * lane() + i] = mine[i];
  __syncthreads();
  const int own = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (own >= v.columns) return;
  f32 sum = 0;
  for (int w = 0; w < 8; ++w) sum += all[w][threadIdx.x];
  v.sums[(member * gridDim.y + blockIdx.y) * v.all_columns + v.first_column + own] = sum;
}

// Column sums of blocks of rows, and where the bias of each column lies in the flat gradient.
struct BiasesView {
  const f32* sums;
  int blocks, columns;
  const i32* to;
  f32* grad;
  i64 grad_stride;  // from one member's to the next's
};

// Adds the blocks up, 32 columns per block of threads.
extern "C" __global__ void __launch_bounds__(256) sum_columns(BiasesView v) {
  __shared__ f32 all[8][kWarp];
  const i64 member = blockIdx.y;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int column = static_cast<int>(blockIdx.x) * kWarp + lane();
  f32 sum = 0;
  if (column < v.columns)
    for (int b = warp; b < v.blocks; b += 8)
      sum += v.sums[(member * v.blocks + b) * v.columns + column];
  all[warp][lane()] = sum;
  __syncthreads();
  if (warp || column >= v.columns) return;
  for (int w = 1; w < 8; ++w) sum += all[w][lane()];
  v.grad[member * v.grad_stride + v.to[column]] = sum;
}

}  // namespace sparring
