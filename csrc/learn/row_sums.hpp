// Base of jobs that sum values over the rows of a batch. The sums of chunks are added in their
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

  bool small() const { return sums_.size() <= 1; }  // faster on one thread

  int open(int phase) override { return phase == 0 ? static_cast<int>(sums_.size()) : -1; }

  void run(int, int chunk) override {
    std::array<f64, kValues> chunk_sums{};
    for (int r = chunk * kRows; r < min((chunk + 1) * kRows, rows_); ++r) row(r, chunk_sums.data());
    sums_[static_cast<size_t>(chunk)] = chunk_sums;
  }

 protected:
  // Handles one row and adds to the sums.
  virtual void row(int r, f64* sums) = 0;

  f64 mean(int value) const {
    f64 sum = 0;
    for (const auto& chunk_sums : sums_) sum += chunk_sums[static_cast<size_t>(value)];
    return sum / rows_;
  }

 private:
  int rows_;
  std::vector<std::array<f64, kValues>> sums_;
};

}  // namespace sparring
