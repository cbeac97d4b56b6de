// Sums over the columns of a matrix, in vectors of SPARRING_LANES numbers. nets/wide.hpp includes
// this file once for every kind of vector that a machine may have, each time in a namespace of its
// own and with SPARRING_TARGET naming the instructions. No include guard, therefore.

using Vec = f32 __attribute__((vector_size(4 * SPARRING_LANES)));
inline constexpr int kLanes = SPARRING_LANES;
inline constexpr int kAhead = 24;  // rows of a panel that are fetched before they are needed

// sum + by * from. Products and sums are rounded apart, or together where ARM always did so.
SPARRING_TARGET inline void add_product(Vec& sum, f32 by, const Vec& from) {
#if SPARRING_LANES == 4
  sum = fused(sum, by, from);
#else
  sum += by * from;
#endif
}

// out = bias + the sum over k of value[k] * weight row index[k], for kVecs vectors of columns.
template <int kVecs>
SPARRING_TARGET inline void gather_columns(const Active& active, const f32* weight, int stride,
                                           const f32* bias, f32* out) {
  Vec sum[kVecs], from;
  for (int c = 0; c < kVecs; ++c) std::memcpy(&sum[c], bias + c * kLanes, sizeof from);
  for (int k = 0; k < active.count; ++k) {
    const f32* row = weight + i64{active.index[k]} * stride;
    const f32 by = active.value[k];
#pragma GCC unroll 16
    for (int c = 0; c < kVecs; ++c) {
      std::memcpy(&from, row + c * kLanes, sizeof from);
      add_product(sum[c], by, from);
    }
  }
  for (int c = 0; c < kVecs; ++c) std::memcpy(out + c * kLanes, &sum[c], sizeof from);
}

SPARRING_TARGET inline void gather(const Active& active, const f32* weight, int stride, int columns,
                                   const f32* bias, f32* out) {
  constexpr int kVecs = kLanes == 4 ? 16 : 8, kWide = kVecs * kLanes;
  int column = 0;
  for (; column + kWide <= columns; column += kWide)
    gather_columns<kVecs>(active, weight + column, stride, bias + column, out + column);
  for (; column < columns; column += kPanel)
    gather_columns<kPanel / kLanes>(active, weight + column, stride, bias + column, out + column);
}

// The same, rounded once wherever the machine can. Nothing else has to give the same bits.
SPARRING_TARGET inline void add_fused(Vec& sum, f32 by, const Vec& from) {
#if SPARRING_LANES == 16
  sum = _mm512_fmadd_ps(_mm512_set1_ps(by), from, sum);
#elif SPARRING_LANES == 8
  sum = _mm256_fmadd_ps(_mm256_set1_ps(by), from, sum);
#else
  add_product(sum, by, from);
#endif
}

// Two vectors of columns of kRows rows.
template <int kRows>
SPARRING_TARGET inline void product_tile(const f32* x, int depth, const f32* panel, const f32* bias,
                                         f32* out, int stride) {
  Vec left[kRows], right[kRows], from, beside;
  std::memcpy(&from, bias, sizeof from);
  std::memcpy(&beside, bias + kLanes, sizeof beside);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) left[r] = from, right[r] = beside;
  for (int k = 0; k < depth; ++k, panel += kPanel) {
    // Weights of many networks do not stay near; what lies behind the end is never read.
    __builtin_prefetch(panel + kAhead * kPanel);
    __builtin_prefetch(panel + kAhead * kPanel + kPanel / 2);
    std::memcpy(&from, panel, sizeof from);
    std::memcpy(&beside, panel + kLanes, sizeof beside);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const f32 by = x[i64{r} * depth + k];
      add_fused(left[r], by, from);
      add_fused(right[r], by, beside);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    std::memcpy(out + i64{r} * stride, &left[r], sizeof from);
    std::memcpy(out + i64{r} * stride + kLanes, &right[r], sizeof beside);
  }
}

SPARRING_TARGET inline void product(const f32* x, int rows, int depth, const f32* weight,
                                    const f32* bias, int columns, f32* out) {
  constexpr int kMost = kLanes == 16 ? 8 : 4;  // what the registers hold
  for (int column = 0; column < columns; column += 2 * kLanes) {
    const f32* panel = weight + i64{column / kPanel} * depth * kPanel + column % kPanel;
    const auto at = [&](int row) { return out + i64{row} * columns + column; };
    const f32* add = bias + column;
    int row = 0;
    for (; row + kMost <= rows; row += kMost)
      product_tile<kMost>(x + i64{row} * depth, depth, panel, add, at(row), columns);
    if (row + 4 <= rows) {
      product_tile<4>(x + i64{row} * depth, depth, panel, add, at(row), columns);
      row += 4;
    }
    if (row + 2 <= rows) {
      product_tile<2>(x + i64{row} * depth, depth, panel, add, at(row), columns);
      row += 2;
    }
    if (row < rows) product_tile<1>(x + i64{row} * depth, depth, panel, add, at(row), columns);
  }
}

// kVecs vectors of columns of kRows rows, between panels.
template <int kRows, int kVecs>
SPARRING_TARGET inline void multiply_tile(const f32* x, i64 stride, int depth, const f32* weight,
                                          const f32* bias, f32* out) {
  Vec sum[kRows][kVecs], from[kVecs];
  for (int c = 0; c < kVecs; ++c) std::memcpy(&from[c], bias + c * kLanes, sizeof from[c]);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) sum[r][c] = from[c];
  for (int first = 0; first < depth; first += kPanel, x += stride * kPanel)
    for (int k = 0; k < kPanel; ++k, weight += kPanel) {
#pragma GCC unroll 4
      for (int c = 0; c < kVecs; ++c) std::memcpy(&from[c], weight + c * kLanes, sizeof from[c]);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const f32 by = x[r * kPanel + k];
#pragma GCC unroll 4
        for (int c = 0; c < kVecs; ++c) add_fused(sum[r][c], by, from[c]);
      }
    }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c)
      std::memcpy(out + r * kPanel + c * kLanes, &sum[r][c], sizeof sum[r][c]);
}

SPARRING_TARGET inline void multiply(const f32* x, i64 stride, int rows, int depth,
                                     const f32* weight, const f32* bias, f32* out) {
  constexpr int kMost = kLanes == 16 ? 12 : 6, kVecs = kLanes == 4 ? 4 : 2;
  for (int column = 0; column < kPanel; column += kVecs * kLanes) {
    int row = 0;
    const auto tile = [&]<int kRows>() SPARRING_TARGET {
      for (; row + kRows <= rows; row += kRows)
        multiply_tile<kRows, kVecs>(x + row * kPanel, stride, depth, weight + column, bias + column,
                                    out + row * kPanel + column);
    };
    tile.template operator()<kMost>();
    tile.template operator()<4>();
    tile.template operator()<1>();
  }
}

// kRows x kVecs vectors of a sum over rows.
template <int kRows, int kVecs>
SPARRING_TARGET inline void outer_tile(const f32* x, const f32* delta, int rows, f32* sum) {
  Vec held[kRows][kVecs], from[kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c)
      std::memcpy(&held[i][c], sum + i * kPanel + c * kLanes, sizeof from[c]);
  for (int r = 0; r < rows; ++r, x += kPanel, delta += kPanel) {
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) std::memcpy(&from[c], delta + c * kLanes, sizeof from[c]);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int c = 0; c < kVecs; ++c) add_fused(held[i][c], x[i], from[c]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c)
      std::memcpy(sum + i * kPanel + c * kLanes, &held[i][c], sizeof from[c]);
}

SPARRING_TARGET inline void outer(const f32* x, const f32* delta, int rows, f32* sum) {
  constexpr int kRows = kLanes == 16 ? 8 : 4, kVecs = kLanes == 4 ? 4 : 2;
  for (int i = 0; i < kPanel; i += kRows)
    for (int c = 0; c < kPanel; c += kVecs * kLanes)
      outer_tile<kRows, kVecs>(x + i, delta + c, rows, sum + i * kPanel + c);
}
