// Forward passes of many frozen networks of one shape: rows are sorted by network, and every layer
// is one grouped matrix product with the weights of each network.
//
// A group is one network of one member of a population: member * slots + slot - 1. The number of
// rows of a group is known on the device only, so launches are made for the largest number, and
// blocks without rows return at once. NVRTC compiles this file as it does cuda/net.cuh.
#pragma once

#include "cuda/net.cuh"

namespace sparring {

inline constexpr int kMaxSlots = 256;   // one thread each
inline constexpr int kSortRows = 1024;  // per block
inline constexpr int kSortThreads = 256, kScanThreads = 1024;

// Rows of all members, and their sorted positions. Row r belongs to member r / rows_each.
struct SortView {
  const i16* policy;  // [rows]; 1 to `slots` are frozen networks
  int members, rows_each, slots;
  int blocks;     // of kSortRows rows, for every member
  i32* starts;    // [members * slots, blocks]: rows of a group in a block, then its first position
  i32* ends;      // [members * slots]: end of a group's positions
  i32* position;  // [rows]: a row's position, -1 if no frozen network acts
  i32* order;     // [rows]: the row at a position, -1 after the last one
  i32* group_of;  // [rows]: the group at a position, -1 after the last one
};

// Negative for rows without a frozen network.
SPARRING_FN inline int slot_of(const SortView& v, i64 row) {
  const int slot = v.policy[row] - 1;
  return slot < v.slots ? slot : -1;
}

// A launch has `blocks` times `members` blocks here and in place_rows.
extern "C" __global__ void __launch_bounds__(256) count_rows(SortView v) {
  __shared__ i32 counts[kMaxSlots];
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int member = static_cast<int>(blockIdx.y);
  counts[t] = 0;
  __syncthreads();
  const int end = min((block + 1) * kSortRows, v.rows_each);
  for (int row = block * kSortRows + t; row < end; row += kSortThreads) {
    const int slot = slot_of(v, i64{member} * v.rows_each + row);
    if (slot >= 0) atomicAdd(&counts[slot], 1);
  }
  __syncthreads();
  if (t < v.slots) v.starts[(member * v.slots + t) * v.blocks + block] = counts[t];
}

SPARRING_FN inline i32 warp_scan(i32 x) {
  for (int by = 1; by < kWarp; by *= 2) {
    const i32 below = __shfl_up_sync(kFullWarp, x, static_cast<u32>(by));
    if (lane() >= by) x += below;
  }
  return x;
}

// Turns counts into positions, one block.
extern "C" __global__ void __launch_bounds__(1024) scan_rows(SortView v) {
  __shared__ i32 sums[kWarp];
  const int t = static_cast<int>(threadIdx.x), warp = t / kWarp;
  const int count = v.members * v.slots * v.blocks;
  const int each = (count + kScanThreads - 1) / kScanThreads;
  const int first = min(t * each, count), end = min(first + each, count);
  i32 mine = 0;
  for (int i = first; i < end; ++i) mine += v.starts[i];
  const i32 up_to = warp_scan(mine);
  if (lane() == kWarp - 1) sums[warp] = up_to;
  __syncthreads();
  if (warp == 0) sums[t] = warp_scan(sums[t]);
  __syncthreads();
  i32 index = up_to - mine + (warp ? sums[warp - 1] : 0);
  for (int i = first; i < end; ++i) {
    const i32 here = v.starts[i];
    v.starts[i] = index;
    index += here;
    if ((i + 1) % v.blocks == 0) v.ends[i / v.blocks] = index;
  }
}

// Computes the position of every row; rows of one group keep their order.
extern "C" __global__ void __launch_bounds__(256) place_rows(SortView v) {
  constexpr int kWarps = kSortThreads / kWarp;
  __shared__ i32 next[kMaxSlots], counts[kWarps][kMaxSlots];
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int member = static_cast<int>(blockIdx.y), warp = t / kWarp;
  next[t] = t < v.slots ? v.starts[(member * v.slots + t) * v.blocks + block] : 0;
  for (int w = 0; w < kWarps; ++w) counts[w][t] = 0;
  __syncthreads();
  const i32 total = v.ends[v.members * v.slots - 1];
  for (int at = 0; at < kSortRows; at += kSortThreads) {
    const int in_member = block * kSortRows + at + t;
    const int row = member * v.rows_each + in_member;
    const bool inside = in_member < v.rows_each;
    const int slot = inside ? slot_of(v, row) : -1;
    const u32 alike = __match_any_sync(kFullWarp, slot);
    const int rank = __popc(alike & ((1u << lane()) - 1));
    if (slot >= 0 && rank == 0) counts[warp][slot] = __popc(alike);
    __syncthreads();
    if (inside) {
      i32 index = -1;
      if (slot >= 0) {
        index = next[slot] + rank;
        for (int w = 0; w < warp; ++w) index += counts[w][slot];
        v.order[index] = row;
        v.group_of[index] = member * v.slots + slot;
      }
      v.position[row] = index;
      if (row >= total) v.order[row] = v.group_of[row] = -1;
    }
    __syncthreads();
    for (int w = 0; w < kWarps; ++w) {
      next[t] += counts[w][t];
      counts[w][t] = 0;
    }
    __syncthreads();
  }
}

// Widens the rows of frozen networks in sorted order.
extern "C" __global__ void widen_sorted(const u8* obs, const i32* order, int rows, Num* out) {
  widen_part(static_cast<u32>(global_thread()), obs, order, rows, true, out);
}

// Boards of byte rows, in sorted order: a row is `planes` times `squares` bytes, then `numbers`.
struct BoardsView {
  const u8* obs;
  const i32* order;
  int rows, planes, squares, numbers;
  int plane_width, number_width;  // with zeros, in multiples of 8
  Num* on_board;                  // [rows, squares, plane_width]
  Num* beside;                    // [rows, number_width], the numbers beside the board
};

// Eight numbers per thread.
extern "C" __global__ void copy_boards(BoardsView v) {
  const int of_square = v.plane_width / 8, of_board = v.squares * of_square;
  const int of_row = of_board + v.number_width / 8;
  const i64 at = global_thread();
  if (at >= i64{v.rows} * of_row) return;
  const i64 index = at / of_row;
  const int row = v.order[index], i = static_cast<int>(at % of_row);
  if (row < 0) return;
  const u8* bytes = v.obs + i64{row} * kRowBytes;
  const bool board = i < of_board;
  const int square = board ? i / of_square : 0;
  const int first = 8 * (board ? i % of_square : i - of_board);
  f32 x[8];
  for (int j = 0; j < 8; ++j) {
    const int k = first + j;
    if (board)
      x[j] = k < v.planes ? static_cast<f32>(bytes[k * v.squares + square]) : 0.0f;
    else
      x[j] = k < v.numbers ? static_cast<f32>(bytes[v.planes * v.squares + k]) : 0.0f;
  }
  Num8 eight;
  eight.put(x);
  Num* to = board ? v.on_board + (index * v.squares + square) * v.plane_width
                  : v.beside + index * v.number_width;
  *reinterpret_cast<Num8*>(to + first) = eight;
}

// Bias, additions and activation that are applied to a product.
struct FinishView {
  const Num* bias;   // [groups, columns], or null
  const Num* shift;  // [positions, columns], added on all squares of a position, or null
  const Num* onto;   // [rows, columns], added too, or null
  int kind;          // 0: nothing more; 1: relu; 2: tanh; 3: silu
};

// A row is a square of a position; without a board a position has one row.
SPARRING_FN inline f32 finished(const FinishView& f, f32 x, int group, i64 row, int squares,
                                int column, int columns) {
  if (f.bias) x += number(f.bias[i64{group} * columns + column]);
  if (f.shift) x += number(f.shift[row / squares * columns + column]);
  if (f.onto) x += number(f.onto[row * columns + column]);
  if (f.kind == 1) return fmaxf(x, 0.0f);
  if (f.kind == 2) return tanhf(x);
  return f.kind == 3 ? x / (1 + expf(-x)) : x;
}

// A layer's output [positions, columns], computed by a library's product.
struct LayerOutputView {
  Num* x;
  const i32* group_of;
  const i32* count;  // number of positions
  int columns;
  FinishView finish;
};

// Adds biases and applies the activation, in place, eight columns per thread and iteration.
extern "C" __global__ void finish_layer(LayerOutputView v) {
  const i64 end = i64{*v.count} * v.columns;
  const i64 apart = i64{gridDim.x} * blockDim.x * 8;
  for (i64 at = global_thread() * 8; at < end; at += apart) {
    const i64 index = at / v.columns;
    const int group = v.group_of[index], column = static_cast<int>(at % v.columns);
    Num8 eight = *reinterpret_cast<const Num8*>(v.x + at);
    f32 x[8];
    for (int i = 0; i < 8; ++i)
      x[i] = finished(v.finish, eight.get(i), group, index, 1, column + i, v.columns);
    eight.put(x);
    *reinterpret_cast<Num8*>(v.x + at) = eight;
  }
}

inline constexpr int kTile = 64;                        // rows and columns of a block's tile
inline constexpr int kDepth = SPARRING_BF16 ? 64 : 32;  // of a loop iteration
// Strides avoid bank conflicts: rows are written in 16 bytes, columns number by number.
inline constexpr int kStride = kDepth + (SPARRING_BF16 ? 8 : 4);
inline constexpr int kColumnStride = kDepth + (SPARRING_BF16 ? 2 : 1);

// A grouped product: rows times the weights of their group. Sizes are multiples of 8.
struct ProductView {
  const Num* x;       // [rows, depth]; over a board [rows, depth / 9]
  const Num* weight;  // [groups, depth, columns]; over a board the nine taps one after the other
  const i32* ends;    // of the groups' positions
  int groups, depth, columns;
  int squares;  // rows of a position
  // Nonzero: a 3x3 convolution over the board, padded with zeros.
  int board_height, board_width;
  FinishView finish;
  Num* out;     // [rows, columns], or null:
  f32* logits;  // [positions, logit_width]: column c of square s is number c * squares + s
  int logit_width, used;  // number of columns that are written
};

// The rows of a block: at most kTile of one group. The group is -1 if there are none.
struct RowTile {
  int group, first, end;
};

SPARRING_FN inline RowTile tile_of_block(const ProductView& v, int number) {
  int before = 0;
  for (int base = 0; base < v.groups; base += kWarp) {
    const int group = base + lane();
    int first = 0, end = 0;
    if (group < v.groups) {
      first = (group ? v.ends[group - 1] : 0) * v.squares;
      end = v.ends[group] * v.squares;
    }
    const int blocks = (end - first + kTile - 1) / kTile, up_to = warp_scan(blocks);
    const u32 past = __ballot_sync(kFullWarp, before + up_to > number);
    if (past) {
      const int at = __ffs(static_cast<int>(past)) - 1;
      const int start = first + (number - before - (up_to - blocks)) * kTile;
      return {base + at, __shfl_sync(kFullWarp, start, at), __shfl_sync(kFullWarp, end, at)};
    }
    before += __shfl_sync(kFullWarp, up_to, kWarp - 1);
  }
  return {-1, 0, 0};
}

// Eight adjacent inputs of a row; zeros outside.
SPARRING_FN inline Num8 row_part(const ProductView& v, int row, int end, int k) {
  if (row >= end || k >= v.depth) return {};
  if (!v.board_width) return *reinterpret_cast<const Num8*>(v.x + i64{row} * v.depth + k);
  const int channels = v.depth / 9, tap = k / channels, square = row % v.squares;
  const int y = square / v.board_width + tap / 3 - 1, x = square % v.board_width + tap % 3 - 1;
  if (y < 0 || y >= v.board_height || x < 0 || x >= v.board_width) return {};
  const i64 from = i64{row} - square + y * v.board_width + x;
  return *reinterpret_cast<const Num8*>(v.x + from * channels + k % channels);
}

struct Tiles {
  alignas(16) Num rows[kTile][kStride];           // [row, depth]
  alignas(16) Num columns[kTile][kColumnStride];  // [column, depth]
};

inline constexpr int kProductThreads = 128;
inline constexpr int kFetches = kTile * kDepth / 8 / kProductThreads;  // of each thread

// A thread's part of the next tile, loaded while the current tile is multiplied.
struct Fetched {
  Num8 rows[kFetches], columns[kFetches];

  SPARRING_FN void load(const ProductView& v, const RowTile& tile, int column, int k) {
    const Num* weight = v.weight + i64{tile.group} * v.depth * v.columns;
#pragma unroll
    for (int f = 0; f < kFetches; ++f) {
      const int i = static_cast<int>(threadIdx.x) + f * kProductThreads;
      const int row = i / (kDepth / 8), part = 8 * (i % (kDepth / 8));
      rows[f] = row_part(v, tile.first + row, tile.end, k + part);
      const int deep = i / (kTile / 8), across = 8 * (i % (kTile / 8));
      columns[f] = {};
      if (k + deep < v.depth && column + across < v.columns)
        columns[f] =
            *reinterpret_cast<const Num8*>(weight + i64{k + deep} * v.columns + column + across);
    }
  }

  SPARRING_FN void store(Tiles& tiles) const {
#pragma unroll
    for (int f = 0; f < kFetches; ++f) {
      const int i = static_cast<int>(threadIdx.x) + f * kProductThreads;
      *reinterpret_cast<Num8*>(&tiles.rows[i / (kDepth / 8)][8 * (i % (kDepth / 8))]) = rows[f];
      const int deep = i / (kTile / 8), across = 8 * (i % (kTile / 8));
      for (int j = 0; j < 8; ++j)
        tiles.columns[across + j][deep] = reinterpret_cast<const Num*>(&columns[f])[j];
    }
  }
};

// A thread's sums in the layout of tensor cores: for every eight columns, rows g and g + 8 of its
// warp's sixteen and columns 2 t and 2 t + 1, with g = lane / 4 and t = lane % 4.
using Sums = f32[kTile / 8][4];

#if SPARRING_BF16 && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
SPARRING_FN inline u32 pair_at(const Num* at) { return *reinterpret_cast<const u32*>(at); }

SPARRING_FN inline void add_products(const Tiles& tiles, Sums& sums) {
  const int g = lane() / 4, t = lane() % 4, row = static_cast<int>(threadIdx.x) / kWarp * 16 + g;
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    const u32 a0 = pair_at(&tiles.rows[row][k + 2 * t]);
    const u32 a1 = pair_at(&tiles.rows[row + 8][k + 2 * t]);
    const u32 a2 = pair_at(&tiles.rows[row][k + 2 * t + 8]);
    const u32 a3 = pair_at(&tiles.rows[row + 8][k + 2 * t + 8]);
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
      const u32 b0 = pair_at(&tiles.columns[8 * n + g][k + 2 * t]);
      const u32 b1 = pair_at(&tiles.columns[8 * n + g][k + 2 * t + 8]);
      f32* c = sums[n];
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
  }
}
#else
SPARRING_FN inline void add_products(const Tiles& tiles, Sums& sums) {
  const int g = lane() / 4, t = lane() % 4, row = static_cast<int>(threadIdx.x) / kWarp * 16 + g;
  for (int k = 0; k < kDepth; ++k) {
    const f32 upper = number(tiles.rows[row][k]), lower = number(tiles.rows[row + 8][k]);
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
      const f32 left = number(tiles.columns[8 * n + 2 * t][k]);
      const f32 right = number(tiles.columns[8 * n + 2 * t + 1][k]);
      sums[n][0] += upper * left;
      sums[n][1] += upper * right;
      sums[n][2] += lower * left;
      sums[n][3] += lower * right;
    }
  }
}
#endif

// One block per kTile rows of a group and kTile columns.

extern "C" __global__ void __launch_bounds__(128) grouped_product(ProductView v) {
  __shared__ Tiles tiles;
  const RowTile tile = tile_of_block(v, static_cast<int>(blockIdx.x));
  if (tile.group < 0) return;
  const int from = static_cast<int>(blockIdx.y) * kTile;
  Sums sums{};
  Fetched next;
  next.load(v, tile, from, 0);
  for (int k = 0; k < v.depth; k += kDepth) {
    __syncthreads();
    next.store(tiles);
    __syncthreads();
    if (k + kDepth < v.depth) next.load(v, tile, from, k + kDepth);
    add_products(tiles, sums);
  }
  const int g = lane() / 4, t = lane() % 4, warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const i64 row = tile.first + 16 * warp + g + (i / 2) * 8;
      const int column = from + 8 * n + 2 * t + i % 2;
      if (row >= tile.end || column >= v.columns) continue;
      const f32 x = finished(v.finish, sums[n][i], tile.group, row, v.squares, column, v.columns);
      if (v.out)
        v.out[row * v.columns + column] = rounded(x);
      else if (column < v.used)
        v.logits[row / v.squares * v.logit_width + i64{column} * v.squares + row % v.squares] = x;
    }
}

}  // namespace sparring
