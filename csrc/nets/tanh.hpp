// The hyperbolic tangent of many numbers. For networks: games use no transcendental functions. Host
// only.
#pragma once

#include "core/thread_pool.hpp"
#include "nets/wide.hpp"

namespace sparring {

class TanhJob final : public Job {
 public:
  TanhJob(const f32* in, i64 count, f32* out) : in_(in), count_(count), out_(out) {}

  static constexpr i64 kCount = 1 << 14;  // per chunk

  int open(int phase) override {
    return phase == 0 ? static_cast<int>((count_ + kCount - 1) / kCount) : -1;
  }

  void run(int, int chunk) override {
    const i64 end = min((chunk + 1) * kCount, count_);
    const i64 first = chunk * kCount;
    if (out_ != in_)
      std::memcpy(out_ + first, in_ + first, sizeof(f32) * static_cast<size_t>(end - first));
    wide().activate(Activation::kTanh, out_ + first, end - first);
  }

 private:
  const f32* in_;
  i64 count_;
  f32* out_;
};

}  // namespace sparring
