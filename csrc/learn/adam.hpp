// Adam with gradient clipping over flat arrays, as torch.optim.Adam after clip_grad_norm_. Host
// only.
#pragma once

#include <vector>

#include "core/thread_pool.hpp"
#include "learn/rowwise.hpp"

namespace sparring {

struct AdamArrays {
  const f32* grad;
  f32 *weight, *mean, *square;
  i64 count;
};

struct AdamHparams {
  f64 lr, eps;
  f64 max_norm;  // of the gradient
  i64 step;      // the number of this one, from 1
};

// One optimizer step. The norm is summed in the same order for any number of threads; if it is not
// finite, nothing changes.
class AdamStep final : public Job {
 public:
  static constexpr f64 kMean = 0.9, kSquare = 0.999;
  static constexpr i64 kCount = 1 << 13;  // per chunk

  AdamStep(const AdamArrays& arrays, const AdamHparams& hparams)
      : arrays_(arrays), hparams_(hparams), sums_(static_cast<size_t>(chunks())) {}

  f64 norm() const { return norm_; }

  int open(int phase) override {
    if (phase == 0) return chunks();
    if (phase == 2) return -1;
    f64 sum = 0;
    for (const f64 one : sums_) sum += one;
    norm_ = std::sqrt(sum);
    if (!std::isfinite(norm_)) return -1;
    const f64 clip = hparams_.max_norm / (norm_ + 1e-6);
    const f64 step = static_cast<f64>(hparams_.step);
    terms_ = {static_cast<f32>(clip < 1 ? clip : 1.0),
              static_cast<f32>(1 - kMean),
              static_cast<f32>(kSquare),
              static_cast<f32>(1 - kSquare),
              static_cast<f32>(hparams_.lr / (1 - std::pow(kMean, step))),
              static_cast<f32>(1 / std::sqrt(1 - std::pow(kSquare, step))),
              static_cast<f32>(hparams_.eps)};
    return chunks();
  }

  void run(int phase, int chunk) override {
    const i64 first = chunk * kCount, count = min(kCount, arrays_.count - first);
    if (phase == 0)
      sums_[static_cast<size_t>(chunk)] = rowwise().squares(arrays_.grad + first, count);
    else
      rowwise().adam_step(terms_, arrays_.grad + first, arrays_.weight + first,
                          arrays_.mean + first, arrays_.square + first, count);
  }

 private:
  int chunks() const { return static_cast<int>((arrays_.count + kCount - 1) / kCount); }

  AdamArrays arrays_;
  AdamHparams hparams_;
  std::vector<f64> sums_;
  AdamTerms terms_{};
  f64 norm_ = 0;
};

}  // namespace sparring
