// Elementwise loops that the compiler vectorizes. learn/rowwise.hpp includes this file once for
// every vector width, each time in another namespace and with SPARRING_TARGET naming the
// instructions; so it has no include guard. Sums have kSums partial sums for any width, so that all
// widths give the same bits.

// chance = exp(logit - top) of the legal actions, 0 for others; returns their sum. below: logit -
// top, 0 where chance is 0. Rows are padded to `padded`.
SPARRING_TARGET inline f32 masked_exp(const f32* logits, const u8* mask, int actions, int padded,
                                      f32* __restrict chance, f32* __restrict below, f32& top) {
  constexpr f32 kNever = -std::numeric_limits<f32>::infinity();
  f32 last[kSums];
  u8 last_legal[kSums] = {};
  Lanes max_lanes = Lanes{} + kNever;
  for (int a = 0; a < padded; a += kSums) {
    const f32* from = logits + a;
    const u8* legal = mask + a;
    if (a + kSums > actions) {  // memory after the row must not be read
      std::memcpy(last, from, sizeof(f32) * static_cast<size_t>(actions - a));
      std::memcpy(last_legal, legal, static_cast<size_t>(actions - a));
      from = last;
      legal = last_legal;
    }
    Lanes x;
    ByteLanes bytes;
    std::memcpy(&x, from, sizeof x);
    std::memcpy(&bytes, legal, sizeof bytes);
    x = __builtin_convertvector(bytes, IntLanes) != 0 ? x : Lanes{} + kNever;
    std::memcpy(below + a, &x, sizeof x);
    max_lanes = x > max_lanes ? x : max_lanes;
  }
  f32 lane_max[kSums];
  std::memcpy(lane_max, &max_lanes, sizeof max_lanes);
  for (int half = kSums / 2; half; half /= 2)
    for (int i = 0; i < half; ++i)
      lane_max[i] = lane_max[i + half] > lane_max[i] ? lane_max[i + half] : lane_max[i];
  const f32 highest = top = lane_max[0];
  for (int a = 0; a < padded; ++a) {
    const f32 x = below[a] - highest;
    const bool none = x < kMinExponent;
    chance[a] = none ? 0.0f : exp_below(x);
    below[a] = none ? 0.0f : x;
  }
  Lanes sum{};
  for (int a = 0; a < padded; a += kSums) {
    Lanes x;
    std::memcpy(&x, chance + a, sizeof x);
    sum += x;
  }
  f32 sums[kSums];
  std::memcpy(sums, &sum, sizeof sum);
  return sum_of(sums);
}

// The sum of products of two padded rows.
SPARRING_TARGET inline f32 dot(const f32* one, const f32* other, int padded) {
  f32 sums[kSums] = {};
  for (int a = 0; a < padded; a += kSums)
    for (int i = 0; i < kSums; ++i) sums[i] += one[a + i] * other[a + i];
  return sum_of(sums);
}

// grad = chance * share * (shift + slope * below).
SPARRING_TARGET inline void softmax_grad(const f32* chance, const f32* below, int actions,
                                         f32 share, f32 shift, f32 slope, f32* grad) {
  for (int a = 0; a < actions; ++a) grad[a] = chance[a] * share * (shift + slope * below[a]);
}

SPARRING_TARGET inline f64 squares(const f32* x, i64 count) {
  f64 sums[kSums] = {};
  i64 at = 0;
  for (; at + kSums <= count; at += kSums)
    for (int i = 0; i < kSums; ++i) {
      const f64 one = static_cast<f64>(x[at + i]);
      sums[i] += one * one;
    }
  for (int i = 0; at + i < count; ++i) {
    const f64 one = static_cast<f64>(x[at + i]);
    sums[i] += one * one;
  }
  return sum_of(sums);
}

SPARRING_TARGET inline void adam_step(const AdamTerms& terms, const f32* __restrict grad,
                                      f32* __restrict weight, f32* __restrict mean,
                                      f32* __restrict square, i64 count) {
  for (i64 i = 0; i < count; ++i) {
    const f32 g = grad[i] * terms.clip;
    const f32 m = mean[i] + (g - mean[i]) * terms.mean_rate;
    const f32 s = square[i] * terms.square_decay + g * g * terms.square_rate;
    mean[i] = m < kTiny && m > -kTiny ? 0.0f : m;
    square[i] = s < kTiny ? 0.0f : s;
    weight[i] -= terms.step * m / (std::sqrt(s) * terms.root_scale + terms.eps);
  }
}
