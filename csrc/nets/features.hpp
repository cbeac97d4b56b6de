// The nonzero features of an observation row, and a layer over them. Host only.
#pragma once

#include <vector>

#include "core/describe.hpp"
#include "nets/wide.hpp"

namespace sparring {

// Adjacent features of one type: features first..first+count-1 at byte `offset`.
struct FeatureRun {
  int first, count, offset;
  Type type;
  f32 divisor;
};

// The nonzero features of one row.
struct ActiveFeatures {
  std::vector<int> index;
  std::vector<f32> value;

  Active view() const { return {index.data(), value.data(), static_cast<int>(index.size())}; }

  void read(const u8* row, const std::vector<FeatureRun>& runs) {
    index.clear();
    value.clear();
    for (const FeatureRun& run : runs) {
      const u8* at = row + run.offset;
      if (run.type == Type::kU8)
        read_bytes(at, run);
      else if (run.type == Type::kI8)
        read_as<i8>(at, run);
      else if (run.type == Type::kI16)
        read_as<i16>(at, run);
      else
        read_as<f32>(at, run);
    }
  }

  // Reads the output of a previous layer.
  void read(const f32* numbers, int count) {
    index.clear();
    value.clear();
    for (int i = 0; i < count; ++i)
      if (numbers[i] != 0) add(i, numbers[i], 1);
  }

 private:
  // Eight bytes at a time; most words are 0.
  void read_bytes(const u8* at, const FeatureRun& run) {
    int i = 0;
    for (; i + 8 <= run.count; i += 8) {
      u64 word;
      std::memcpy(&word, at + i, 8);
      while (word) {
        const int byte = lowest_bit(word) >> 3;
        add(run.first + i + byte, static_cast<f32>(at[i + byte]), run.divisor);
        word &= ~(u64{0xff} << (8 * byte));
      }
    }
    for (; i < run.count; ++i)
      if (at[i]) add(run.first + i, static_cast<f32>(at[i]), run.divisor);
  }

  template <class T>
  void read_as(const u8* at, const FeatureRun& run) {
    for (int i = 0; i < run.count; ++i) {
      T raw;
      std::memcpy(&raw, at + i * static_cast<int>(sizeof(T)), sizeof(T));
      if (raw != T(0)) add(run.first + i, static_cast<f32>(raw), run.divisor);
    }
  }

  void add(int feature, f32 raw, f32 divisor) {
    index.push_back(feature);
    value.push_back(divisor == 1 ? raw : raw / divisor);
  }
};

// out = bias + sum over active features of value * weight[feature]; weight is [features, width].
inline void gather_row(const Active& active, const f32* weight, int width, const f32* bias,
                       f32* out) {
  const int whole = width / kPanel * kPanel;
  wide().gather(active, weight, width, whole, bias, out);
  for (int column = whole; column < width; ++column) {
    f32 sum = bias[column];
    for (int k = 0; k < active.count; ++k)
      sum += active.value[k] * weight[i64{active.index[k]} * width + column];
    out[column] = sum;
  }
}

}  // namespace sparring
