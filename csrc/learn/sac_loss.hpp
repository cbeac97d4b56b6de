// SAC of continuous actions between the passes of its networks: draws, targets, losses and
// gradients, one row after the other. The twin of learn/sac.py and learn/sac_gradients.py. Host
// only.
#pragma once

#include <cmath>

#include "learn/row_sums.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

inline constexpr int kCritics = 2;

// A squashed Gaussian of every row: its head is a mean and the logarithm of a spread for each of
// `box` numbers, heads are `head_stride` numbers apart.
struct Squashed {
  int rows, box;
  const f32* head;
  i64 head_stride;
  const f32* noise;  // [rows, box], standard normal
  f32* action;       // of row r at action + r * action_stride
  i64 action_stride;

  static f32 kept(f32 log_std) {
    return log_std < kMinLogStd ? kMinLogStd : log_std > kMaxLogStd ? kMaxLogStd : log_std;
  }
};

// Draws actions and says how dense they were.
class SquashedDraw final : public RowSums<1> {
 public:
  SquashedDraw(const Squashed& of, f32* log_prob)
      : RowSums(of.rows), of_(of), log_prob_(log_prob) {}

  f64 log_prob() const { return mean(0); }

 private:
  void row(int r, f64* sums) override {
    constexpr f32 kLog2 = 0.693147180559945309f;
    const f32* head = of_.head + r * of_.head_stride;
    const f32* noise = of_.noise + i64{r} * of_.box;
    f32* action = of_.action + r * of_.action_stride;
    f32 sum = 0;
    for (int i = 0; i < of_.box; ++i) {
      const f32 log_std = Squashed::kept(head[of_.box + i]);
      const f32 drawn = head[i] + std::exp(log_std) * noise[i];
      // With e = exp(-2|u|), tanh |u| is (1 - e) / (1 + e), and the logarithm of its slope
      // 2 (log 2 - |u| - log(1 + e)), which stays exact where the slope itself has become 0.
      const f32 size = std::fabs(drawn), e = std::exp(-2 * size);
      action[i] = std::copysign((1 - e) / (1 + e), drawn);
      const f32 squashing = 2 * (kLog2 - size - std::log(1 + e));
      sum += -0.5f * noise[i] * noise[i] - static_cast<f32>(kHalfLogTau) - log_std - squashing;
    }
    log_prob_[r] = sum;
    sums[0] += static_cast<f64>(sum);
  }

  Squashed of_;
  f32* log_prob_;
};

// What critics are to learn, by row; estimates are [rows, 2].
struct CriticSamples {
  int rows;
  const f32 *q, *next_q;
  const f32* next_log_prob;
  const f32 *paid, *discount, *weight;
  f32 temperature;
};

class CriticLoss final : public RowSums<1> {
 public:
  CriticLoss(const CriticSamples& samples, f32* grad, f32* error)
      : RowSums(samples.rows), of_(samples), grad_(grad), error_(error) {}

  f64 loss() const { return mean(0); }

 private:
  void row(int r, f64* sums) override {
    const f32 target = of_.paid[r] + following(r);
    const f32 weight = of_.weight[r];
    f32 sum = 0, size = 0;
    for (int c = 0; c < kCritics; ++c) {
      const f32 error = of_.q[r * kCritics + c] - target;
      grad_[r * kCritics + c] = error * (weight / static_cast<f32>(of_.rows));
      sum += weight * error * error;
      size += std::fabs(error);
    }
    error_[r] = size / kCritics;
    sums[0] += 0.5 * static_cast<f64>(sum);
  }

  // The more cautious estimate: the smaller one, or where what follows is the other seat's, whose
  // gain is a loss, the larger one. Entropy is worth something only in a seat's own decisions.
  f32 following(int r) const {
    const f32 discount = of_.discount[r];
    if (discount == 0) return 0;
    const f32* next_q = of_.next_q + r * kCritics;
    const f32 cautious = least(discount * next_q[0], discount * next_q[1]);
    return cautious - most(discount, 0.0f) * of_.temperature * of_.next_log_prob[r];
  }

  CriticSamples of_;
  f32 *grad_, *error_;
};

// The gradient of what critics say about drawn actions: only the more cautious one counts.
class ActorLoss final : public RowSums<1> {
 public:
  ActorLoss(int rows, const f32* q, const f32* log_prob, f32 temperature, f32* grad)
      : RowSums(rows),
        rows_(rows),
        q_(q),
        log_prob_(log_prob),
        temperature_(temperature),
        grad_(grad) {}

  f64 loss() const { return mean(0); }

 private:
  void row(int r, f64* sums) override {
    const f32* q = q_ + r * kCritics;
    const int which = q[1] < q[0];
    grad_[r * kCritics + which] = -1.0f / static_cast<f32>(rows_);
    grad_[r * kCritics + 1 - which] = 0;
    sums[0] += static_cast<f64>(temperature_ * log_prob_[r] - q[which]);
  }

  int rows_;
  const f32 *q_, *log_prob_;
  f32 temperature_;
  f32* grad_;
};

// From the gradient of actions to that of the heads. A head may be followed by other numbers, of
// which nothing is learned.
class SquashedGradient final : public RowSums<1> {
 public:
  // of_log_prob: the gradient of every log-density.
  SquashedGradient(const Squashed& of, const f32* of_action, i64 of_action_stride, f32 of_log_prob,
                   f32* grad)
      : RowSums(of.rows),
        of_(of),
        of_action_(of_action),
        stride_(of_action_stride),
        of_log_prob_(of_log_prob),
        grad_(grad) {}

 private:
  void row(int r, f64*) override {
    const f32* head = of_.head + r * of_.head_stride;
    f32* grad = grad_ + r * of_.head_stride;
    for (int i = 0; i < of_.box; ++i) {
      const f32 action = of_.action[r * of_.action_stride + i];
      const f32 log_std = head[of_.box + i], kept = Squashed::kept(log_std);
      // The density falls by 1 - tanh^2, whose logarithm changes by -2 tanh.
      const f32 of_mean =
          2 * of_log_prob_ * action + of_action_[r * stride_ + i] * (1 - action * action);
      const f32 of_spread = of_mean * std::exp(kept) * of_.noise[i64{r} * of_.box + i];
      grad[i] = of_mean;
      grad[of_.box + i] = log_std == kept ? of_spread - of_log_prob_ : 0.0f;
    }
    for (i64 i = 2 * of_.box; i < of_.head_stride; ++i) grad[i] = 0;
  }

  Squashed of_;
  const f32* of_action_;
  i64 stride_;
  f32 of_log_prob_;
  f32* grad_;
};

}  // namespace sparring
