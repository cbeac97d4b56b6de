// Jobs over the rows of a batch that sum something up: in chunks, whose sums are added in their
// order, so that the result is the same for any number of threads. Host only.
#pragma once

#include <array>
#include <vector>

#include "core/thread_pool.hpp"

namespace sparring {

template <int kValues>
class RowSums : public Job {
 public:
  static constexpr int kRows = 128;  // per chunk

  explicit RowSums(int rows)
      : rows_(rows), sums_(static_cast<size_t>((rows + kRows - 1) / kRows)) {}

  bool small() const { return sums_.size() <= 1; }  // done before another thread is awake

  int open(int phase) override { return phase == 0 ? static_cast<int>(sums_.size()) : -1; }

  void run(int, int chunk) override {
    std::array<f64, kValues> own{};
    for (int r = chunk * kRows; r < least((chunk + 1) * kRows, rows_); ++r) row(r, own.data());
    sums_[static_cast<size_t>(chunk)] = own;
  }

 protected:
  // Handles one row and adds to the sums.
  virtual void row(int r, f64* sums) = 0;

  f64 mean(int value) const {
    f64 sum = 0;
    for (const auto& own : sums_) sum += own[static_cast<size_t>(value)];
    return sum / rows_;
  }

 private:
  int rows_;
  std::vector<std::array<f64, kValues>> sums_;
};

}  // namespace sparring
