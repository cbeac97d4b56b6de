// SAC for continuous actions: sampling, targets, losses and gradients, row by row, as learn/sac.py
// and learn/sac_gradients.py. Host only.
#pragma once

#include <cmath>

#include "learn/row_sums.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

inline constexpr int kCritics = 2;

// A squashed Gaussian for every row: the head holds `box` means, then `box` log standard
// deviations; heads are `head_stride` numbers apart.
struct Squashed {
  int rows, box;
  const f32* head;
  i64 head_stride;
  const f32* noise;  // [rows, box], standard normal
  f32* action;       // of row r at action + r * action_stride
  i64 action_stride;

  static f32 clamped(f32 log_std) {
    return log_std < kMinLogStd ? kMinLogStd : log_std > kMaxLogStd ? kMaxLogStd : log_std;
  }
};

// Samples actions and computes their log-densities.
class SquashedDraw final : public RowSums<1> {
 public:
  SquashedDraw(const Squashed& of, f32* log_prob)
      : RowSums(of.rows), samples_(of), log_prob_(log_prob) {}

  f64 log_prob() const { return mean(0); }

 private:
  void row(int r, f64* sums) override {
    constexpr f32 kLog2 = 0.693147180559945309f;
    const f32* head = samples_.head + r * samples_.head_stride;
    const f32* noise = samples_.noise + i64{r} * samples_.box;
    f32* action = samples_.action + r * samples_.action_stride;
    f32 sum = 0;
    for (int i = 0; i < samples_.box; ++i) {
      const f32 log_std = Squashed::clamped(head[samples_.box + i]);
      const f32 drawn = head[i] + std::exp(log_std) * noise[i];
      // With e = exp(-2|u|), tanh |u| is (1 - e) / (1 + e), and the logarithm of its derivative is
      // 2 (log 2 - |u| - log(1 + e)), which is exact even where the derivative rounds to 0.
      const f32 size = std::fabs(drawn), e = std::exp(-2 * size);
      action[i] = std::copysign((1 - e) / (1 + e), drawn);
      const f32 log_det_jacobian = 2 * (kLog2 - size - std::log(1 + e));
      sum +=
          -0.5f * noise[i] * noise[i] - static_cast<f32>(kHalfLogTau) - log_std - log_det_jacobian;
    }
    log_prob_[r] = sum;
    sums[0] += static_cast<f64>(sum);
  }

  Squashed samples_;
  f32* log_prob_;
};

// A batch for the critics; Q values are [rows, 2].
struct CriticSamples {
  int rows;
  const f32 *q, *next_q;
  const f32* next_log_prob;
  const f32 *reward, *discount, *weight;
  f32 temperature;
};

class CriticLoss final : public RowSums<1> {
 public:
  CriticLoss(const CriticSamples& samples, f32* grad, f32* error)
      : RowSums(samples.rows), samples_(samples), grad_(grad), error_(error) {}

  f64 loss() const { return mean(0); }

 private:
  void row(int r, f64* sums) override {
    const f32 target = samples_.reward[r] + next_value(r);
    const f32 weight = samples_.weight[r];
    f32 sum = 0, size = 0;
    for (int c = 0; c < kCritics; ++c) {
      const f32 error = samples_.q[r * kCritics + c] - target;
      grad_[r * kCritics + c] = error * (weight / static_cast<f32>(samples_.rows));
      sum += weight * error * error;
      size += std::fabs(error);
    }
    error_[r] = size / kCritics;
    sums[0] += 0.5 * static_cast<f64>(sum);
  }

  // The smaller of the two discounted Q values (a negative discount marks the other seat's
  // decision), plus the entropy bonus, which only a seat's own decisions get.
  f32 next_value(int r) const {
    const f32 discount = samples_.discount[r];
    if (discount == 0) return 0;
    const f32* next_q = samples_.next_q + r * kCritics;
    const f32 min_next_q = min(discount * next_q[0], discount * next_q[1]);
    return min_next_q - max(discount, 0.0f) * samples_.temperature * samples_.next_log_prob[r];
  }

  CriticSamples samples_;
  f32 *grad_, *error_;
};

// The actor's loss and its gradient with respect to the Q values: only the smaller Q counts.
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

// Turns the gradient of actions into that of the heads. Other columns of a head get gradient 0.
class SquashedGradient final : public RowSums<1> {
 public:
  // log_prob_grad: the gradient of each log-density.
  SquashedGradient(const Squashed& of, const f32* action_grad, i64 action_grad_stride,
                   f32 log_prob_grad, f32* grad)
      : RowSums(of.rows),
        samples_(of),
        action_grad_(action_grad),
        stride_(action_grad_stride),
        log_prob_grad_(log_prob_grad),
        grad_(grad) {}

 private:
  void row(int r, f64*) override {
    const f32* head = samples_.head + r * samples_.head_stride;
    f32* grad = grad_ + r * samples_.head_stride;
    for (int i = 0; i < samples_.box; ++i) {
      const f32 action = samples_.action[r * samples_.action_stride + i];
      const f32 log_std = head[samples_.box + i], clamped = Squashed::clamped(log_std);
      // d/du log(1 - tanh(u)^2) = -2 tanh(u).
      const f32 mean_grad =
          2 * log_prob_grad_ * action + action_grad_[r * stride_ + i] * (1 - action * action);
      const f32 log_std_grad =
          mean_grad * std::exp(clamped) * samples_.noise[i64{r} * samples_.box + i];
      grad[i] = mean_grad;
      grad[samples_.box + i] = log_std == clamped ? log_std_grad - log_prob_grad_ : 0.0f;
    }
    for (i64 i = 2 * samples_.box; i < samples_.head_stride; ++i) grad[i] = 0;
  }

  Squashed samples_;
  const f32* action_grad_;
  i64 stride_;
  f32 log_prob_grad_;
  f32* grad_;
};

}  // namespace sparring
