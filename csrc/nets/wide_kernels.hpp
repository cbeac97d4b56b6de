// Inner loops in vectors of SPARRING_LANES numbers. nets/wide.hpp includes this file once for every
// vector width, each time in another namespace and with SPARRING_TARGET naming the instructions; so
// it has no include guard.

using Vec = f32 __attribute__((vector_size(4 * SPARRING_LANES)));
inline constexpr int kLanes = SPARRING_LANES;
inline constexpr int kAhead = 24;  // rows of a panel that are fetched before they are needed

SPARRING_TARGET inline Vec load_vec(const f32* at) {
#if SPARRING_LANES == 4
  return load_four(at);
#else
  Vec vec;
  std::memcpy(&vec, at, sizeof vec);
  return vec;
#endif
}

SPARRING_TARGET inline void store_vec(f32* at, const Vec& vec) {
#if SPARRING_LANES == 4
  store_four(at, vec);
#else
  std::memcpy(at, &vec, sizeof vec);
#endif
}

// sum + by * from. Products and sums are rounded separately, except on ARM (fused).
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

// The same with fused multiply-add where the machine has it: its bits may differ between machines.
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
    // Weights of many networks do not fit the cache; a prefetch beyond the end does no harm.
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
#pragma GCC unroll 4
  for (int c = 0; c < kVecs; ++c) from[c] = load_vec(bias + c * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) sum[r][c] = from[c];
  for (; depth > 0; depth -= kPanel, x += stride * kPanel) {
    const int count = min(depth, kPanel);
    for (int k = 0; k < count; ++k, weight += kPanel) {
#pragma GCC unroll 4
      for (int c = 0; c < kVecs; ++c) from[c] = load_vec(weight + c * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
        for (int c = 0; c < kVecs; ++c) add_fused(sum[r][c], x[r * kPanel + k], from[c]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) store_vec(out + r * kPanel + c * kLanes, sum[r][c]);
}

// Sums that fit into registers beside the factors.
inline constexpr int kTileVecs = kLanes == 4 ? 4 : 2;
inline constexpr int kTileRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 5;

using MultiplyTile = void (*)(const f32*, i64, int, const f32*, const f32*, f32*);

template <int... kRows>
constexpr auto multiply_tiles(std::integer_sequence<int, kRows...>) {
  return std::array<MultiplyTile, sizeof...(kRows)>{multiply_tile<kRows + 1, kTileVecs>...};
}

// Rows are split into tiles of nearly equal height: low tiles would stall on their sums.
SPARRING_TARGET inline void multiply(const f32* x, i64 stride, int rows, int depth,
                                     const f32* weight, const f32* bias, f32* out) {
  static constexpr auto kTiles = multiply_tiles(std::make_integer_sequence<int, kTileRows>());
  for (int column = 0; column < kPanel; column += kTileVecs * kLanes)
    for (int row = 0, left = (rows + kTileRows - 1) / kTileRows; left; --left) {
      const int height = (rows - row + left - 1) / left;
      kTiles[static_cast<size_t>(height - 1)](x + row * kPanel, stride, depth, weight + column,
                                              bias + column, out + row * kPanel + column);
      row += height;
    }
}

// kRows x kVecs vectors of a sum over rows.
template <int kRows, int kVecs>
SPARRING_TARGET inline void outer_tile(const f32* x, const f32* delta, int rows, f32* sum) {
  Vec held[kRows][kVecs], from[kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) held[i][c] = load_vec(sum + i * kPanel + c * kLanes);
  for (int r = 0; r < rows; ++r, x += kPanel, delta += kPanel) {
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) from[c] = load_vec(delta + c * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int c = 0; c < kVecs; ++c) add_fused(held[i][c], x[i], from[c]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) store_vec(sum + i * kPanel + c * kLanes, held[i][c]);
}

SPARRING_TARGET inline void outer(const f32* x, const f32* delta, int rows, f32* sum) {
  constexpr int kRows = kLanes == 16 ? 8 : 4;
  for (int i = 0; i < kPanel; i += kRows)
    for (int c = 0; c < kPanel; c += kTileVecs * kLanes)
      outer_tile<kRows, kTileVecs>(x + i, delta + c, rows, sum + i * kPanel + c);
}

SPARRING_TARGET inline void add_rows(const f32* delta, int rows, f32* sum) {
  Vec held[kPanel / kLanes];
  for (int c = 0; c < kPanel / kLanes; ++c) held[c] = load_vec(sum + c * kLanes);
  for (int r = 0; r < rows; ++r, delta += kPanel)
#pragma GCC unroll 8
    for (int c = 0; c < kPanel / kLanes; ++c) held[c] += load_vec(delta + c * kLanes);
  for (int c = 0; c < kPanel / kLanes; ++c) store_vec(sum + c * kLanes, held[c]);
}

template <int kVecs>
SPARRING_TARGET inline void gather_rows_columns(const ActiveBlock& active, const f32* weight,
                                                int columns, const f32* bias, f32* out, i64 step) {
  int k = 0;
  for (int r = 0; r < active.rows; ++r, out += kPanel) {
    Vec sum[kVecs];
#pragma GCC unroll 16
    for (int c = 0; c < kVecs; ++c) sum[c] = load_vec(bias + c * kLanes);
    for (const int end = active.end[r]; k < end; ++k) {
      const f32* row = weight + i64{active.index[k]} * columns;
      const f32 by = active.value[k];
#pragma GCC unroll 16
      for (int c = 0; c < kVecs; ++c) add_fused(sum[c], by, load_vec(row + c * kLanes));
    }
#pragma GCC unroll 16
    for (int c = 0; c < kVecs; ++c)
      store_vec(out + c * kLanes / kPanel * step + c * kLanes % kPanel, sum[c]);
  }
}

SPARRING_TARGET inline void gather_rows(const ActiveBlock& active, const f32* weight, int columns,
                                        const f32* bias, f32* out, i64 step) {
  constexpr int kMost = kLanes == 8 ? 8 : 16, kWide = kMost * kLanes;
  int column = 0;
  const auto at = [&] { return out + column / kPanel * step; };
  for (; column + kWide <= columns; column += kWide)
    gather_rows_columns<kMost>(active, weight + column, columns, bias + column, at(), step);
  for (; column < columns; column += kPanel)
    gather_rows_columns<kPanel / kLanes>(active, weight + column, columns, bias + column, at(),
                                         step);
}

template <int kPanels>
SPARRING_TARGET inline void scatter_panels(const RowsOfFeatures& active, const f32* delta, i64 step,
                                           f32* sum, i64 sum_step) {
  constexpr int kEach = kPanel / kLanes, kVecs = kPanels * kEach;
  for (int f = 0, k = 0; f < active.features; ++f, sum += sum_step) {
    const int end = active.end[f];
    if (k == end) continue;
    Vec held[kVecs];
#pragma GCC unroll 16
    for (int c = 0; c < kVecs; ++c) held[c] = load_vec(sum + c * kLanes);
    for (; k < end; ++k) {
      const f32* row = delta + i64{active.row[k]} * kPanel;
      const f32 by = active.value[k];
#pragma GCC unroll 16
      for (int c = 0; c < kVecs; ++c)
        add_fused(held[c], by, load_vec(row + c / kEach * step + c % kEach * kLanes));
    }
#pragma GCC unroll 16
    for (int c = 0; c < kVecs; ++c) store_vec(sum + c * kLanes, held[c]);
  }
}

SPARRING_TARGET inline void scatter_rows(const RowsOfFeatures& active, const f32* delta, i64 step,
                                         int panels, f32* sum) {
  constexpr int kMost = kLanes == 16 ? 4 : 2;
  const i64 sum_step = i64{panels} * kPanel;
  int p = 0;
  for (; p + kMost <= panels; p += kMost)
    scatter_panels<kMost>(active, delta + p * step, step, sum + p * kPanel, sum_step);
  for (; p < panels; ++p)
    scatter_panels<1>(active, delta + p * step, step, sum + p * kPanel, sum_step);
}

SPARRING_TARGET inline int list_bytes(const u8* row, const ByteTable& table, int* index,
                                      f32* value) {
  int count = 0;
#if SPARRING_LANES == 16
  const auto add = [&](__m128i raw, int first) SPARRING_TARGET {
    constexpr __mmask16 kAll = 0xffff;
    const __m512i number = _mm512_maskz_cvtepu8_epi32(kAll, raw);
    const __m512i feature = _mm512_loadu_si512(table.feature + first);
    const __mmask16 known = _mm512_cmpge_epi32_mask(feature, _mm512_setzero_si512());
    const __mmask16 active = _mm512_mask_test_epi32_mask(known, number, number);
    __m512 made = _mm512_maskz_cvtepi32_ps(kAll, number);
    if (table.divides[first / kByteGroup])
      made = _mm512_maskz_div_ps(kAll, made, _mm512_loadu_ps(table.divisor + first));
    _mm512_storeu_si512(index + count, _mm512_maskz_compress_epi32(active, feature));
    _mm512_storeu_ps(value + count, _mm512_maskz_compress_ps(active, made));
    count += __builtin_popcount(active);
  };
  int byte = 0;
  __m128i raw;
  for (; byte + kByteGroup <= table.bytes; byte += kByteGroup) {
    std::memcpy(&raw, row + byte, sizeof raw);
    add(raw, byte);
  }
  if (byte < table.bytes) {
    raw = _mm_setzero_si128();
    std::memcpy(&raw, row + byte, static_cast<size_t>(table.bytes - byte));
    add(raw, byte);
  }
#else
  const auto add = [&](int byte) {
    if (!row[byte] || table.feature[byte] < 0) return;
    index[count] = table.feature[byte];
    value[count++] = static_cast<f32>(row[byte]) / table.divisor[byte];
  };
  int first = 0;
  for (; first + 8 <= table.bytes; first += 8) {
    u64 word;
    std::memcpy(&word, row + first, 8);
    for (; word; word &= ~(u64{0xff} << (lowest_bit(word) & 56)))
      add(first + (lowest_bit(word) >> 3));
  }
  for (; first < table.bytes; ++first) add(first);
#endif
  return count;
}

// As a quotient of polynomials; within 4e-7 of the true value.
SPARRING_TARGET inline void to_tanh(Vec& x) {
  constexpr f32 kEnd = 7.90531110763549805f;  // beyond it the result rounds to 1
  const Vec end = Vec{} + kEnd;
  x = x > end ? end : x;
  x = x < -end ? -end : x;
  const Vec square = x * x;
  Vec above = square * -2.76076847742355e-16f + 2.00018790482477e-13f;
  above = above * square + -8.60467152213735e-11f;
  above = above * square + 5.12229709037114e-08f;
  above = above * square + 1.48572235717979e-05f;
  above = above * square + 6.37261928875436e-04f;
  above = above * square + 4.89352455891786e-03f;
  Vec below = square * 1.19825839466702e-06f + 1.18534705686654e-04f;
  below = below * square + 2.26843463243900e-03f;
  below = below * square + 4.89352518554385e-03f;
  x = x * above / below;
}

template <Activation kKind>
SPARRING_TARGET inline void activate_vec(Vec& x) {
  constexpr f32 kDead = -30;  // where x times its sigmoid rounds to 0 beside anything
  if constexpr (kKind == Activation::kRelu) {
    x = x < 0.0f ? Vec{} : x;
  } else if constexpr (kKind == Activation::kTanh) {
    to_tanh(x);
  } else {
    Vec half = x * 0.5f;
    to_tanh(half);
    x = x < kDead ? Vec{} : x * (half + 1.0f) * 0.5f;
  }
}

template <Activation kKind>
SPARRING_TARGET inline void slope_vec(const Vec& in, const Vec& out, Vec& grad) {
  if constexpr (kKind == Activation::kRelu) {
    grad = out > 0.0f ? grad : Vec{};
  } else if constexpr (kKind == Activation::kTanh) {
    grad *= 1.0f - out * out;
  } else {
    Vec half = in * 0.5f;
    to_tanh(half);
    half = half * 0.5f + 0.5f;  // the sigmoid
    grad *= half * (in * (1.0f - half) + 1.0f);
  }
}

template <Activation kKind>
SPARRING_TARGET inline void activate_as(f32* x, i64 count) {
  i64 i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vec some = load_vec(x + i);
    activate_vec<kKind>(some);
    store_vec(x + i, some);
  }
  if (i == count) return;
  Vec rest{};
  std::memcpy(&rest, x + i, sizeof(f32) * static_cast<size_t>(count - i));
  activate_vec<kKind>(rest);
  std::memcpy(x + i, &rest, sizeof(f32) * static_cast<size_t>(count - i));
}

template <Activation kKind>
SPARRING_TARGET inline void slope_as(const f32* in, const f32* out, f32* grad, i64 count) {
  i64 i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vec some = load_vec(grad + i);
    slope_vec<kKind>(kKind == Activation::kSilu ? load_vec(in + i) : Vec{}, load_vec(out + i),
                     some);
    store_vec(grad + i, some);
  }
  if (i == count) return;
  const size_t bytes = sizeof(f32) * static_cast<size_t>(count - i);
  Vec rest{}, went_in{}, came_out{};
  std::memcpy(&rest, grad + i, bytes);
  if (kKind == Activation::kSilu) std::memcpy(&went_in, in + i, bytes);
  std::memcpy(&came_out, out + i, bytes);
  slope_vec<kKind>(went_in, came_out, rest);
  std::memcpy(grad + i, &rest, bytes);
}

SPARRING_TARGET inline void activate(Activation kind, f32* x, i64 count) {
  if (kind == Activation::kRelu) return activate_as<Activation::kRelu>(x, count);
  if (kind == Activation::kTanh) return activate_as<Activation::kTanh>(x, count);
  return activate_as<Activation::kSilu>(x, count);
}

SPARRING_TARGET inline void slope(Activation kind, const f32* in, const f32* out, f32* grad,
                                  i64 count) {
  if (kind == Activation::kRelu) return slope_as<Activation::kRelu>(in, out, grad, count);
  if (kind == Activation::kTanh) return slope_as<Activation::kTanh>(in, out, grad, count);
  return slope_as<Activation::kSilu>(in, out, grad, count);
}
