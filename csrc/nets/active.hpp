// Observation rows as lists of their nonzero features. Host only.
#pragma once

#include <vector>

#include "nets/first_layer.hpp"

namespace sparring {

// Layout of a row for reading: a table of all byte features, and a list of the others.
class RowPlan {
 public:
  explicit RowPlan(const std::vector<FeatureRun>& runs) {
    for (const FeatureRun& run : runs) {
      features_ = max(features_, run.first + run.count);
      if (run.type == Type::kU8)
        bytes_ = max(bytes_, run.offset + run.count);
      else
        others_.push_back(run);
    }
    const size_t groups = static_cast<size_t>((bytes_ + kByteGroup - 1) / kByteGroup);
    feature_.assign(groups * kByteGroup, -1);
    divisor_.assign(groups * kByteGroup, 1);
    divides_.assign(groups, 0);
    for (const FeatureRun& run : runs)
      for (int i = 0; run.type == Type::kU8 && i < run.count; ++i) {
        const size_t byte = static_cast<size_t>(run.offset + i);
        feature_[byte] = run.first + i;
        divisor_[byte] = run.divisor;
        if (run.divisor != 1) divides_[byte / kByteGroup] = 1;
      }
  }

  int features() const { return features_; }

  ByteTable table() const { return {bytes_, feature_.data(), divisor_.data(), divides_.data()}; }

  // Lists the nonzero features of a row and returns their number. Both arrays have `capacity()`
  // entries.
  int list(const u8* row, int* index, f32* value) const {
    int count = wide().list_bytes(row, table(), index, value);
    for (const FeatureRun& run : others_) {
      if (run.type == Type::kI8)
        count = add<i8>(row, run, index, value, count);
      else if (run.type == Type::kI16)
        count = add<i16>(row, run, index, value, count);
      else
        count = add<f32>(row, run, index, value, count);
    }
    return count;
  }

  size_t capacity() const { return static_cast<size_t>(features_ + kByteGroup); }

 private:
  template <class T>
  static int add(const u8* row, const FeatureRun& run, int* index, f32* value, int count) {
    for (int i = 0; i < run.count; ++i) {
      T raw;
      std::memcpy(&raw, row + run.offset + i * static_cast<int>(sizeof(T)), sizeof(T));
      index[count] = run.first + i;
      value[count] = static_cast<f32>(raw) / run.divisor;
      count += raw != T(0);
    }
    return count;
  }

  int features_ = 0;
  int bytes_ = 0;
  std::vector<int> feature_;
  std::vector<f32> divisor_;
  std::vector<u8> divides_;
  std::vector<FeatureRun> others_;
};

// The lists of some rows; its memory is reused from batch to batch.
class ActiveRows {
 public:
  void clear() {
    end_.clear();
    count_ = 0;
  }

  void add(const u8* row, const RowPlan& plan) {
    const size_t need = static_cast<size_t>(count_) + plan.capacity();
    if (index_.size() < need) {
      index_.resize(2 * need);
      value_.resize(2 * need);
    }
    count_ += plan.list(row, index_.data() + count_, value_.data() + count_);
    end_.push_back(count_);
  }

  ActiveBlock view() const {
    return {index_.data(), value_.data(), end_.data(), static_cast<int>(end_.size())};
  }

  // Sorts by feature, for `by_feature`.
  void sort(int features) {
    const size_t count = static_cast<size_t>(count_);
    if (row_.size() < count) {
      row_.resize(2 * count);
      sorted_.resize(2 * count);
    }
    stop_.assign(static_cast<size_t>(features) + 1, 0);
    int* next = stop_.data();  // next position of a feature; in the end its end position
    for (size_t k = 0; k < count; ++k) ++next[index_[k] + 1];
    for (int f = 0; f < features; ++f) next[f + 1] += next[f];
    size_t k = 0;
    for (size_t r = 0; r < end_.size(); ++r)
      for (; k < static_cast<size_t>(end_[r]); ++k) {
        const size_t to = static_cast<size_t>(next[index_[k]]++);
        row_[to] = static_cast<int>(r);
        sorted_[to] = value_[k];
      }
  }

  RowsOfFeatures by_feature() const {
    return {row_.data(), sorted_.data(), stop_.data(), static_cast<int>(stop_.size()) - 1};
  }

 private:
  std::vector<int> index_, end_;
  std::vector<f32> value_;
  int count_ = 0;
  std::vector<int> row_, stop_;
  std::vector<f32> sorted_;
};

}  // namespace sparring
