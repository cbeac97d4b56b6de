// Matrices stored in panels of kPanel columns: copies from and to plain matrices. Host only.
#pragma once

#include <cstring>
#include <new>
#include <vector>

#include "nets/wide.hpp"

namespace sparring {

// Allocator that aligns to cache lines, so that no vector spans two of them.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* at, size_t) { ::operator delete(at, kLine); }
  bool operator==(const CacheLineAllocator&) const { return true; }
};
using Numbers = std::vector<f32, CacheLineAllocator<f32>>;

inline int panels_of(int columns) { return (columns + kPanel - 1) / kPanel; }

// Number (row, column) is at + row * row_stride + column * column_stride.
struct Matrix {
  const f32* at;
  i64 row_stride, column_stride;
};

struct MatrixOut {
  f32* at;
  i64 row_stride, column_stride;
};

inline void copy_numbers(f32* to, const f32* from, int count) {
  std::memcpy(to, from, sizeof(f32) * static_cast<size_t>(count));
}

// Transposes four rows of four numbers.
inline void transpose_four(const f32* from, i64 from_stride, f32* to, i64 to_stride) {
  using Index = int __attribute__((vector_size(16)));
  constexpr Index kLow{0, 4, 1, 5}, kHigh{2, 6, 3, 7}, kFirst{0, 1, 4, 5}, kSecond{2, 3, 6, 7};
  const Four a = load_four(from), b = load_four(from + from_stride);
  const Four c = load_four(from + 2 * from_stride), d = load_four(from + 3 * from_stride);
  const Four ab_low = shuffled(a, b, kLow), ab_high = shuffled(a, b, kHigh);
  const Four cd_low = shuffled(c, d, kLow), cd_high = shuffled(c, d, kHigh);
  store_four(to, shuffled(ab_low, cd_low, kFirst));
  store_four(to + to_stride, shuffled(ab_low, cd_low, kSecond));
  store_four(to + 2 * to_stride, shuffled(ab_high, cd_high, kFirst));
  store_four(to + 3 * to_stride, shuffled(ab_high, cd_high, kSecond));
}

// to [columns, rows] = transpose of from [rows, columns].
inline void transpose(const f32* from, i64 from_stride, int rows, int columns, f32* to,
                      i64 to_stride) {
  const int whole_rows = rows & ~3, whole_columns = columns & ~3;
  for (int c = 0; c < whole_columns; c += 4)
    for (int r = 0; r < whole_rows; r += 4)
      transpose_four(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  for (int r = 0; r < rows; ++r)
    for (int c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
      to[c * to_stride + r] = from[r * from_stride + c];
}

// Copies to `to` [rows, columns], whose rows are `stride` apart and whose columns are adjacent.
inline void copy_matrix(const Matrix& from, int rows, int columns, f32* to, i64 stride) {
  if (from.column_stride == 1) {
    for (int r = 0; r < rows; ++r)
      copy_numbers(to + r * stride, from.at + r * from.row_stride, columns);
  } else if (from.row_stride == 1) {
    transpose(from.at, from.column_stride, columns, rows, to, stride);
  } else {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        to[r * stride + c] = from.at[r * from.row_stride + c * from.column_stride];
  }
}

// Copies from `from` [rows, columns], whose rows are `stride` apart, to a matrix; with `add` adds.
inline void put_matrix(const f32* from, i64 stride, int rows, int columns, const MatrixOut& to,
                       bool add) {
  for (int r = 0; r < rows; ++r) {
    const f32* row = from + r * stride;
    f32* out = to.at + r * to.row_stride;
    if (to.column_stride == 1 && !add)
      copy_numbers(out, row, columns);
    else
      for (int c = 0; c < columns; ++c, out += to.column_stride) *out = (add ? *out : 0) + row[c];
  }
}

}  // namespace sparring
