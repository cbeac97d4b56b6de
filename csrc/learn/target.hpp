// Polyak averaging of a target network. Host only.
#pragma once

#include "core/thread_pool.hpp"

namespace sparring {

class PolyakUpdate final : public Job {
 public:
  PolyakUpdate(const f32* weight, i64 count, f32 tau, f32* target)
      : weight_(weight), count_(count), tau_(tau), target_(target) {}

  static constexpr i64 kCount = 1 << 13;  // per chunk

  int open(int phase) override {
    return phase == 0 ? static_cast<int>((count_ + kCount - 1) / kCount) : -1;
  }

  void run(int, int chunk) override {
    const i64 end = min((chunk + 1) * kCount, count_);
    if (tau_ < 0.5f) {
      for (i64 i = chunk * kCount; i < end; ++i) target_[i] += tau_ * (weight_[i] - target_[i]);
    } else {  // this form is exact for tau = 1

      for (i64 i = chunk * kCount; i < end; ++i)
        target_[i] = weight_[i] - (1 - tau_) * (weight_[i] - target_[i]);
    }
  }

 private:
  const f32* weight_;
  i64 count_;
  f32 tau_;
  f32* target_;
};

}  // namespace sparring
