// The hyperbolic tangent of many numbers, as a quotient of polynomials; within 4e-7 of the true
// value. For networks: games use no transcendental functions. Host only.
#pragma once

#include "core/crew.hpp"
#include "nets/first_layer.hpp"

namespace sparring {

inline Four tanh_of_four(Four x) {
  constexpr f32 kEnd = 7.90531110763549805f;  // beyond it the result rounds to 1
  for (int i = 0; i < 4; ++i) x[i] = x[i] > kEnd ? kEnd : x[i] < -kEnd ? -kEnd : x[i];
  const Four square = x * x;
  Four above = square * -2.76076847742355e-16f + 2.00018790482477e-13f;
  above = above * square + -8.60467152213735e-11f;
  above = above * square + 5.12229709037114e-08f;
  above = above * square + 1.48572235717979e-05f;
  above = above * square + 6.37261928875436e-04f;
  above = above * square + 4.89352455891786e-03f;
  Four below = square * 1.19825839466702e-06f + 1.18534705686654e-04f;
  below = below * square + 2.26843463243900e-03f;
  below = below * square + 4.89352518554385e-03f;
  return x * above / below;
}

class TanhJob final : public Job {
 public:
  TanhJob(const f32* in, i64 count, f32* out) : in_(in), count_(count), out_(out) {}

  static constexpr i64 kCount = 1 << 14;  // per chunk

  int open(int phase) override {
    return phase == 0 ? static_cast<int>((count_ + kCount - 1) / kCount) : -1;
  }

  void run(int, int chunk) override {
    const i64 end = least((chunk + 1) * kCount, count_);
    i64 i = chunk * kCount;
    for (; i + 4 <= end; i += 4) store_four(out_ + i, tanh_of_four(load_four(in_ + i)));
    if (i == end) return;
    Four rest{};
    for (i64 k = i; k < end; ++k) rest[static_cast<int>(k - i)] = in_[k];
    rest = tanh_of_four(rest);
    for (i64 k = i; k < end; ++k) out_[k] = rest[static_cast<int>(k - i)];
  }

 private:
  const f32* in_;
  i64 count_;
  f32* out_;
};

}  // namespace sparring
