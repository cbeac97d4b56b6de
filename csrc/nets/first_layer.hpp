// The first layer of a network over observation bytes: most features are 0, so only nonzero ones
// are multiplied. Columns are split over threads, so that sums have the same order for any number
// of threads. Host only.
#pragma once

#include <vector>

#include "core/job.hpp"
#include "nets/features.hpp"

namespace sparring {

// out[r] = bias + sum over active features of value * weight[feature]; weight is [features, width].
class FirstLayerForward final : public Job {
 public:
  FirstLayerForward(const u8* obs, i64 rows, int obs_bytes, const std::vector<FeatureRun>& runs,
                    const f32* weight, const f32* bias, int width, f32* out)
      : obs_(obs),
        rows_(rows),
        obs_bytes_(obs_bytes),
        runs_(runs),
        weight_(weight),
        bias_(bias),
        width_(width),
        out_(out) {}

  static constexpr i64 kRows = 64;  // per chunk

  int open(int phase) override {
    return phase == 0 ? static_cast<int>((rows_ + kRows - 1) / kRows) : -1;
  }

  void run(int, int chunk) override {
    ActiveFeatures active;
    const i64 end = min((chunk + 1) * kRows, rows_);
    for (i64 row = chunk * kRows; row < end; ++row) {
      active.read(obs_ + row * obs_bytes_, runs_);
      gather_row(active.view(), weight_, width_, bias_, out_ + row * width_);
    }
  }

 private:
  const u8* obs_;
  i64 rows_;
  int obs_bytes_;
  const std::vector<FeatureRun>& runs_;
  const f32* weight_;
  const f32* bias_;
  int width_;
  f32* out_;
};

// weight_grad[feature] += value * grad[r], bias_grad += grad[r]. First the nonzero features of all
// rows are listed, then each chunk handles a few columns, whose gradients stay in the L1 cache.
class FirstLayerBackward final : public Job {
 public:
  FirstLayerBackward(const u8* obs, i64 rows, int obs_bytes, const std::vector<FeatureRun>& runs,
                     const f32* grad, int width, f32* weight_grad, f32* bias_grad)
      : obs_(obs),
        rows_(rows),
        obs_bytes_(obs_bytes),
        runs_(runs),
        grad_(grad),
        width_(width),
        weight_grad_(weight_grad),
        bias_grad_(bias_grad),
        lists_(static_cast<size_t>((rows + kRows - 1) / kRows)) {}

  static constexpr i64 kRows = 256;  // per list
  static constexpr int kWide = 32;   // columns per chunk
  static constexpr int kFours = kWide / 4;

  int open(int phase) override {
    if (phase == 0) return static_cast<int>(lists_.size());
    return phase == 1 ? (width_ + kWide - 1) / kWide : -1;
  }

  void run(int phase, int chunk) override {
    if (phase == 0)
      list_rows(chunk);
    else
      add_columns(chunk * kWide, min(kWide, width_ - chunk * kWide));
  }

 private:
  struct List {
    std::vector<int> index, end;  // end[r]: end of row r's features
    std::vector<f32> value;
  };

  void list_rows(int chunk) {
    ActiveFeatures active;
    List& list = lists_[static_cast<size_t>(chunk)];
    const i64 end = min((chunk + 1) * kRows, rows_);
    for (i64 row = chunk * kRows; row < end; ++row) {
      active.read(obs_ + row * obs_bytes_, runs_);
      list.index.insert(list.index.end(), active.index.begin(), active.index.end());
      list.value.insert(list.value.end(), active.value.begin(), active.value.end());
      list.end.push_back(static_cast<int>(list.index.size()));
    }
  }

  // Sums in a separate buffer: columns of the wide matrix would all map to a few cache sets.
  void add_columns(int from, int count) {
    int features = 0;
    for (const FeatureRun& run : runs_) features = max(features, run.first + run.count);
    std::vector<Four> sums(static_cast<size_t>(features) * kFours);
    f32 bias[kWide] = {}, held[kWide] = {};
    i64 row = 0;
    for (const List& list : lists_) {
      size_t k = 0;
      for (const int end : list.end) {
        std::memcpy(held, grad_ + row++ * width_ + from, sizeof(f32) * static_cast<size_t>(count));
        for (int c = 0; c < kWide; ++c) bias[c] += held[c];
        Four fours[kFours];
        for (int c = 0; c < kFours; ++c) fours[c] = load_four(held + 4 * c);
        for (; k < static_cast<size_t>(end); ++k) {
          Four* to = &sums[static_cast<size_t>(list.index[k]) * kFours];
          const f32 value = list.value[k];
#pragma GCC unroll 8
          for (int c = 0; c < kFours; ++c) to[c] = fused(to[c], value, fours[c]);
        }
      }
    }
    for (int c = 0; c < count; ++c) bias_grad_[from + c] += bias[c];
    for (int f = 0; f < features; ++f) {
      const f32* sum = reinterpret_cast<const f32*>(&sums[static_cast<size_t>(f) * kFours]);
      for (int c = 0; c < count; ++c) weight_grad_[i64{f} * width_ + from + c] += sum[c];
    }
  }

  const u8* obs_;
  i64 rows_;
  int obs_bytes_;
  const std::vector<FeatureRun>& runs_;
  const f32* grad_;
  int width_;
  f32* weight_grad_;
  f32* bias_grad_;
  std::vector<List> lists_;
};

}  // namespace sparring
