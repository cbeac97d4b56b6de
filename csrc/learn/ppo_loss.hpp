// PPO's loss on a minibatch and its gradient with respect to the outputs of the heads, as
// `ppo_loss` in src/sparring/learn/ppo.py and `example_loss` in learn/hindsight.py. Rows are read
// in place. Sums have the same order for any number of threads. Host only.
#pragma once

#include <vector>

#include "core/thread_pool.hpp"
#include "learn/rowwise.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

// Decisions of a minibatch: for row r the outputs are at r, the mask at index[r], everything else
// at sample[r]. Null lists stand for r.
struct Decisions {
  int rows;
  const i64 *index, *sample;
  const u8* mask;  // [indices, actions]
  int actions;     // 0: continuous ones
  const i32* action;
  const f32* drawn;  // continuous actions [samples, box], before squashing
  int box;

  i64 index_of(int row) const { return index ? index[row] : row; }
  i64 sample_of(int row) const { return sample ? sample[row] : row; }
  // Rows of a shuffled minibatch are far apart in memory.
  void prefetch(int row) const {
    const u8* next = mask + index_of(row) * actions;
    for (int byte = 0; byte < actions; byte += 64) __builtin_prefetch(next + byte);
  }
  int head() const { return actions ? actions : 2 * box; }
};

// Data of the decisions from the policy that acted.
struct OldPolicyData {
  const f32 *log_prob, *value, *advantage, *returns;
  const u8* mirrored;  // mirror images do not count in approx_kl and clipfrac; may be null
};

struct PolicyHparams {
  f32 clip, value_clip, value_weight, entropy;
};

struct PolicySums {
  f64 policy, value, entropy, approx_kl, clipped, unmirrored;
};

// Log-probability and entropy of one decision, and their gradients.
class DecisionRow {
 public:
  explicit DecisionRow(const Decisions& decisions)
      : decisions_(decisions),
        padded_(padded_to_sums(decisions.actions)),
        chance_(static_cast<size_t>(padded_)),
        below_(static_cast<size_t>(padded_)) {}

  f32 log_prob = 0, entropy = 0;

  void read(const f32* head, int row) {
    head_ = head;
    sample_ = decisions_.sample_of(row);
    if (!decisions_.actions) return read_gaussian();
    const u8* mask = decisions_.mask + decisions_.index_of(row) * decisions_.actions;
    f32 top;
    total_ = rowwise().masked_exp(head, mask, decisions_.actions, padded_, chance_.data(),
                                  below_.data(), top);
    const i32 action = decisions_.action[sample_];
    log_total_ = std::log(total_);
    log_prob =
        mask[action] ? head[action] - top - log_total_ : -std::numeric_limits<f32>::infinity();
    entropy = log_total_ - rowwise().dot(chance_.data(), below_.data(), padded_) / total_;
  }

  // grad = by_log_prob * gradient of log_prob + by_entropy * gradient of entropy.
  void backward(f32 by_log_prob, f32 by_entropy, f32* grad) const {
    if (!decisions_.actions) return backward_gaussian(by_log_prob, by_entropy, grad);
    rowwise().softmax_grad(chance_.data(), below_.data(), decisions_.actions, 1 / total_,
                           by_entropy * (log_total_ - entropy) - by_log_prob, -by_entropy, grad);
    grad[decisions_.action[sample_]] += by_log_prob;
  }

 private:
  static constexpr f32 kLogSqrtTau = static_cast<f32>(kHalfLogTau);

  static f32 bounded(f32 log_std) {
    return log_std < kMinLogStd ? kMinLogStd : log_std > kMaxLogStd ? kMaxLogStd : log_std;
  }

  void read_gaussian() {
    const int box = decisions_.box;
    log_prob = entropy = 0;
    for (int i = 0; i < box; ++i) {
      const f32 log_std = bounded(head_[box + i]);
      const f32 error = (decisions_.drawn[sample_ * box + i] - head_[i]) * std::exp(-log_std);
      log_prob += -0.5f * error * error - log_std - kLogSqrtTau;
      entropy += log_std + 0.5f + kLogSqrtTau;
    }
  }

  void backward_gaussian(f32 by_log_prob, f32 by_entropy, f32* grad) const {
    const int box = decisions_.box;
    for (int i = 0; i < box; ++i) {
      const f32 raw = head_[box + i], log_std = bounded(raw);
      const f32 by = std::exp(-log_std);
      const f32 error = (decisions_.drawn[sample_ * box + i] - head_[i]) * by;
      grad[i] = by_log_prob * error * by;
      const bool inside = raw >= kMinLogStd && raw <= kMaxLogStd;
      grad[box + i] = inside ? by_log_prob * (error * error - 1) + by_entropy : 0;
    }
  }

  const Decisions& decisions_;
  int padded_;
  std::vector<f32> chance_, below_;
  const f32* head_ = nullptr;
  i64 sample_ = 0;
  f32 total_ = 1, log_total_ = 0;
};

// outputs, grad: [rows, head + 1], the value last.
class PolicyLoss final : public Job {
 public:
  static constexpr int kRows = 64;  // per chunk

  PolicyLoss(const Decisions& decisions, const OldPolicyData& old_data,
             const PolicyHparams& hparams, const f32* outputs, f32* grad)
      : decisions_(decisions),
        old_data_(old_data),
        hparams_(hparams),
        outputs_(outputs),
        grad_(grad),
        sums_(static_cast<size_t>(chunks())) {}

  int open(int phase) override { return phase == 0 ? chunks() : -1; }

  void run(int, int chunk) override {
    DecisionRow row(decisions_);
    PolicySums sums{};
    const int last = min((chunk + 1) * kRows, decisions_.rows);
    for (int r = chunk * kRows; r < last; ++r) {
      if (r + 4 < last) decisions_.prefetch(r + 4);
      add(row, r, sums);
    }
    sums_[static_cast<size_t>(chunk)] = sums;
  }

  PolicySums sums() const {
    PolicySums all{};
    for (const PolicySums& one : sums_) {
      all.policy += one.policy;
      all.value += one.value;
      all.entropy += one.entropy;
      all.approx_kl += one.approx_kl;
      all.clipped += one.clipped;
      all.unmirrored += one.unmirrored;
    }
    return all;
  }

 private:
  int chunks() const { return (decisions_.rows + kRows - 1) / kRows; }

  void add(DecisionRow& row, int r, PolicySums& sums) {
    const i64 width = decisions_.head() + 1, at = decisions_.sample_of(r);
    const f32 share = 1 / static_cast<f32>(decisions_.rows);
    const f32* head = outputs_ + r * width;
    f32* grad = grad_ + r * width;
    row.read(head, r);
    const f32 log_ratio = row.log_prob - old_data_.log_prob[at], ratio = std::exp(log_ratio);
    const f32 low = 1 - hparams_.clip, high = 1 + hparams_.clip;
    const f32 clipped_ratio = ratio < low ? low : ratio > high ? high : ratio;
    const f32 advantage = old_data_.advantage[at];
    const f32 surrogate = advantage * ratio, clipped = advantage * clipped_ratio;
    const bool has_gradient = surrogate <= clipped;
    row.backward(has_gradient ? -share * surrogate : 0, -share * hparams_.entropy, grad);
    sums.policy -= static_cast<f64>(has_gradient ? surrogate : clipped);
    sums.entropy += static_cast<f64>(row.entropy);
    const Error error = value_error(head[width - 1], at);
    grad[width - 1] = share * hparams_.value_weight * error.slope;
    sums.value += static_cast<f64>(error.square);
    if (old_data_.mirrored && old_data_.mirrored[at]) return;
    sums.unmirrored += 1;
    sums.approx_kl += static_cast<f64>((ratio - 1) - log_ratio);
    sums.clipped += std::abs(ratio - 1) > hparams_.clip ? 1 : 0;
  }

  struct Error {
    f32 square, slope;
  };

  Error value_error(f32 value, i64 at) const {
    const f32 error = value - old_data_.returns[at];
    const Error unclipped{error * error, 2 * error};
    if (hparams_.value_clip == 0) return unclipped;
    const f32 old = old_data_.value[at], change = value - old, limit = hparams_.value_clip;
    const f32 clipped_change = change < -limit ? -limit : change > limit ? limit : change;
    const f32 clipped_error = old + clipped_change - old_data_.returns[at];
    const Error clipped{clipped_error * clipped_error,
                        clipped_change == change ? 2 * clipped_error : 0};
    if (unclipped.square == clipped.square)
      return {unclipped.square, (unclipped.slope + clipped.slope) / 2};
    return unclipped.square < clipped.square ? clipped : unclipped;
  }

  const Decisions& decisions_;
  OldPolicyData old_data_;
  PolicyHparams hparams_;
  const f32* outputs_;
  f32* grad_;
  std::vector<PolicySums> sums_;
};

// The mean cross-entropy of target actions, times `weight`; values get no gradient.
class ExampleLoss final : public Job {
 public:
  ExampleLoss(const Decisions& decisions, f32 weight, const f32* outputs, f32* grad)
      : decisions_(decisions),
        weight_(weight),
        outputs_(outputs),
        grad_(grad),
        sums_(static_cast<size_t>(chunks())) {}

  int open(int phase) override { return phase == 0 ? chunks() : -1; }

  void run(int, int chunk) override {
    DecisionRow row(decisions_);
    const i64 width = decisions_.head() + 1;
    const f32 share = 1 / static_cast<f32>(decisions_.rows);
    const int last = min((chunk + 1) * PolicyLoss::kRows, decisions_.rows);
    f64 sum = 0;
    for (int r = chunk * PolicyLoss::kRows; r < last; ++r) {
      row.read(outputs_ + r * width, r);
      row.backward(-share * weight_, 0, grad_ + r * width);
      grad_[(r + 1) * width - 1] = 0;
      sum -= static_cast<f64>(row.log_prob);
    }
    sums_[static_cast<size_t>(chunk)] = sum;
  }

  f64 sum() const {
    f64 all = 0;
    for (const f64 one : sums_) all += one;
    return all;
  }

 private:
  int chunks() const { return (decisions_.rows + PolicyLoss::kRows - 1) / PolicyLoss::kRows; }

  const Decisions& decisions_;
  f32 weight_;
  const f32* outputs_;
  f32* grad_;
  std::vector<f64> sums_;
};

}  // namespace sparring
