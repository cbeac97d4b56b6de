// Kernels of a network around the matrix products of a library: widening of byte rows, activations,
// and gradients of biases.
//
// Every array has a leading dimension for the members of a population. NVRTC compiles this file
// with the layout of a row
// (`row_constants` in src/sparring/nets/run/flat.py) and with SPARRING_BF16.
#pragma once

#include "cuda/number.cuh"

namespace sparring {

// Layout of a row: all u8 features, then i8, i16, f32, then the memory. A widened row is padded
// with zeros up to kWidth.
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

// Widens eight bytes of a row, or one feature: the first threads take eight bytes each, the others
// one feature. A negative index gives zeros, or with `skip` is left out.
SPARRING_FN inline void widen_part(u32 at, const u8* obs, const i32* indices, int rows, bool skip,
                                   Num* out) {
  const u32 whole = static_cast<u32>(rows) * kEights;
  if (at < whole) {
    const u32 row = at / max(kEights, 1), first = 8 * (at % max(kEights, 1));
    const i64 index = indices ? i64{indices[row]} : i64{row};
    if (skip && index < 0) return;
    const u64 bytes =
        index < 0 ? 0 : *reinterpret_cast<const u64*>(obs + index * kRowBytes + first);
    f32 x[8];
    for (int i = 0; i < 8; ++i) x[i] = static_cast<f32>(bytes >> (8 * i) & 0xff);
    Num8 eight;
    eight.put(x);
    *reinterpret_cast<Num8*>(out + i64{row} * kWidth + first) = eight;
  } else if (at - whole < static_cast<u32>(rows) * kRest) {
    const u32 row = (at - whole) / max(kRest, 1), i = 8 * kEights + (at - whole) % max(kRest, 1);
    const i64 index = indices ? i64{indices[row]} : i64{row};
    if (skip && index < 0) return;
    out[i64{row} * kWidth + i] =
        rounded(index < 0 ? 0 : feature(obs + index * kRowBytes, static_cast<int>(i)));
  }
}

// Widens byte rows to numbers for a network: output row i is row indices[i] of `obs`, or row i
// where `indices` is null; negative indices give zeros. Divisors are part of the first layer's
// weights.
extern "C" __global__ void widen(const u8* obs, const i32* indices, int rows, Num* out) {
  widen_part(static_cast<u32>(global_thread()), obs, indices, rows, false, out);
}

SPARRING_FN inline f32 activated(f32 x, int tanh) { return tanh ? tanhf(x) : fmaxf(x, 0.0f); }

// A layer's output [members, rows, columns] before its bias.
struct LayerView {
  Num* x;
  const Num* bias;
  i64 bias_stride;  // between members
  int members, rows, columns;
  int tanh;  // 0: relu
};

// Adds the bias and applies the activation, in place, eight columns per thread.
extern "C" __global__ void activate(LayerView layer) {
  const i64 at = global_thread() * 8;
  if (at >= i64{layer.members} * layer.rows * layer.columns) return;
  const i64 member = at / (i64{layer.rows} * layer.columns);
  const Num* first_bias = layer.bias + member * layer.bias_stride + at % layer.columns;
  Num8 eight = *reinterpret_cast<const Num8*>(layer.x + at);
  const Num8 bias = *reinterpret_cast<const Num8*>(first_bias);
  f32 outputs[8];
  for (int i = 0; i < 8; ++i) outputs[i] = activated(eight.get(i) + bias.get(i), layer.tanh);
  eight.put(outputs);
  *reinterpret_cast<Num8*>(layer.x + at) = eight;
}

// The gradient of an activation's output [members, rows, columns], and the sums of its columns; the
// columns of all layers are side by side, [members, blocks, all_columns].
struct ColumnsView {
  Num* grad;
  const Num* out;  // output of the activation; null if there is none
  int rows, columns, rows_per_block;
  int kind;  // 0: no activation, sums alone; 1: relu; 2: tanh
  f32* sums;
  int all_columns, first_column;
};

// Computes the gradient of the activation's input, in place, and sums its columns over each block
// of rows: the gradient of the bias.
extern "C" __global__ void __launch_bounds__(256) backward_activation(ColumnsView v) {
  __shared__ f32 all[8][256];
  const i64 member = blockIdx.z;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, kind = v.kind;
  const int column = static_cast<int>(blockIdx.x) * 256 + 8 * lane();
  f32 column_sums[8]{};
  if (column < v.columns) {
    const int first = static_cast<int>(blockIdx.y) * v.rows_per_block;
    const int end = min(first + v.rows_per_block, v.rows);
#pragma unroll 4
    for (int row = first + warp; row < end; row += 8) {
      const i64 at = (member * v.rows + row) * v.columns + column;
      Num8 eight = *reinterpret_cast<const Num8*>(v.grad + at);
      f32 x[8];
      for (int i = 0; i < 8; ++i) x[i] = eight.get(i);
      if (kind) {
        const Num8 outputs = *reinterpret_cast<const Num8*>(v.out + at);
        for (int i = 0; i < 8; ++i) {
          const f32 y = outputs.get(i);
          x[i] = kind == 1 ? (y > 0 ? x[i] : 0.0f) : x[i] * (1 - y * y);
        }
        eight.put(x);
        *reinterpret_cast<Num8*>(v.grad + at) = eight;
      }
      for (int i = 0; i < 8; ++i) column_sums[i] += x[i];
    }
  }
  for (int i = 0; i < 8; ++i) all[warp][8 * lane() + i] = column_sums[i];
  __syncthreads();
  const int sum_column = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (sum_column >= v.columns) return;
  f32 sum = 0;
  for (int w = 0; w < 8; ++w) sum += all[w][threadIdx.x];
  v.sums[(member * gridDim.y + blockIdx.y) * v.all_columns + v.first_column + sum_column] = sum;
}

// Column sums of blocks of rows, and the index of each column's bias in the flat gradient.
struct BiasesView {
  const f32* sums;
  int blocks, columns;
  const i32* to;
  f32* grad;
  i64 grad_stride;  // between members
};

// Sums the blocks, 32 columns per block of threads.

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
