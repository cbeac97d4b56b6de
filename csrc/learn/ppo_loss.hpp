// PPO's loss on a minibatch and its gradient with respect to what the heads say: the twin of
// `ppo_loss` in src/sparring/learn/ppo.py and of `example_loss` in learn/hindsight.py. Rows are
// read where they lie. Every sum has one order, whatever the number of threads. Host only.
#pragma once

#include <vector>

#include "core/thread_pool.hpp"
#include "learn/rowwise.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

// Decisions: of a minibatch's row r, what the heads say is at r, the mask at place[r], all else at
// sample[r]. Without a list they are at r.
struct Decisions {
  int rows;
  const i64 *place, *sample;
  const u8* mask;  // [places, actions]
  int actions;     // 0: continuous ones
  const i32* action;
  const f32* drawn;  // continuous ones [samples, box], as they were drawn
  int box;

  i64 place_of(int row) const { return place ? place[row] : row; }
  i64 sample_of(int row) const { return sample ? sample[row] : row; }
  // Rows of a shuffled minibatch are far apart.
  void fetch(int row) const {
    const u8* next = mask + place_of(row) * actions;
    for (int byte = 0; byte < actions; byte += 64) __builtin_prefetch(next + byte);
  }
  int head() const { return actions ? actions : 2 * box; }
};

// What was thought of them when they were made, and what came of them.
struct Judged {
  const f32 *log_prob, *value, *advantage, *returns;
  const u8* mirrored;  // images do not count in how far the policy has moved; may be null
};

struct PolicyHparams {
  f32 clip, value_clip, value_weight, entropy;
};

struct PolicySums {
  f64 policy, value, entropy, moved, clipped, plain;
};

// What a policy head says about one decision, and the gradients of that.
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
    at_ = decisions_.sample_of(row);
    if (!decisions_.actions) return read_gaussian();
    const u8* mask = decisions_.mask + decisions_.place_of(row) * decisions_.actions;
    f32 top;
    total_ = rowwise().weigh(head, mask, decisions_.actions, padded_, chance_.data(), below_.data(),
                             top);
    const i32 action = decisions_.action[at_];
    log_total_ = std::log(total_);
    log_prob =
        mask[action] ? head[action] - top - log_total_ : -std::numeric_limits<f32>::infinity();
    entropy = log_total_ - rowwise().inner(chance_.data(), below_.data(), padded_) / total_;
  }

  // grad = by_log_prob times the gradient of log_prob, plus by_entropy times that of the entropy.
  void descend(f32 by_log_prob, f32 by_entropy, f32* grad) const {
    if (!decisions_.actions) return descend_gaussian(by_log_prob, by_entropy, grad);
    rowwise().spread(chance_.data(), below_.data(), decisions_.actions, 1 / total_,
                     by_entropy * (log_total_ - entropy) - by_log_prob, -by_entropy, grad);
    grad[decisions_.action[at_]] += by_log_prob;
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
      const f32 off = (decisions_.drawn[at_ * box + i] - head_[i]) * std::exp(-log_std);
      log_prob += -0.5f * off * off - log_std - kLogSqrtTau;
      entropy += log_std + 0.5f + kLogSqrtTau;
    }
  }

  void descend_gaussian(f32 by_log_prob, f32 by_entropy, f32* grad) const {
    const int box = decisions_.box;
    for (int i = 0; i < box; ++i) {
      const f32 said = head_[box + i], log_std = bounded(said);
      const f32 by = std::exp(-log_std);
      const f32 off = (decisions_.drawn[at_ * box + i] - head_[i]) * by;
      grad[i] = by_log_prob * off * by;
      const bool inside = said >= kMinLogStd && said <= kMaxLogStd;
      grad[box + i] = inside ? by_log_prob * (off * off - 1) + by_entropy : 0;
    }
  }

  const Decisions& decisions_;
  int padded_;
  std::vector<f32> chance_, below_;
  const f32* head_ = nullptr;
  i64 at_ = 0;
  f32 total_ = 1, log_total_ = 0;
};

// said, grad: [rows, head + 1], the value last.
class PolicyLoss final : public Job {
 public:
  static constexpr int kRows = 64;  // per chunk

  PolicyLoss(const Decisions& decisions, const Judged& judged, const PolicyHparams& hparams,
             const f32* said, f32* grad)
      : decisions_(decisions),
        judged_(judged),
        hparams_(hparams),
        said_(said),
        grad_(grad),
        sums_(static_cast<size_t>(chunks())) {}

  int open(int phase) override { return phase == 0 ? chunks() : -1; }

  void run(int, int chunk) override {
    DecisionRow row(decisions_);
    PolicySums sums{};
    const int last = least((chunk + 1) * kRows, decisions_.rows);
    for (int r = chunk * kRows; r < last; ++r) {
      if (r + 4 < last) decisions_.fetch(r + 4);
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
      all.moved += one.moved;
      all.clipped += one.clipped;
      all.plain += one.plain;
    }
    return all;
  }

 private:
  int chunks() const { return (decisions_.rows + kRows - 1) / kRows; }

  void add(DecisionRow& row, int r, PolicySums& sums) {
    const i64 width = decisions_.head() + 1, at = decisions_.sample_of(r);
    const f32 share = 1 / static_cast<f32>(decisions_.rows);
    const f32* head = said_ + r * width;
    f32* grad = grad_ + r * width;
    row.read(head, r);
    const f32 log_ratio = row.log_prob - judged_.log_prob[at], ratio = std::exp(log_ratio);
    const f32 low = 1 - hparams_.clip, high = 1 + hparams_.clip;
    const f32 held = ratio < low ? low : ratio > high ? high : ratio;
    const f32 advantage = judged_.advantage[at];
    const f32 free = advantage * ratio, bound = advantage * held;
    const bool follows = free <= bound;
    row.descend(follows ? -share * free : 0, -share * hparams_.entropy, grad);
    sums.policy -= static_cast<f64>(follows ? free : bound);
    sums.entropy += static_cast<f64>(row.entropy);
    const Error error = value_error(head[width - 1], at);
    grad[width - 1] = share * hparams_.value_weight * error.slope;
    sums.value += static_cast<f64>(error.square);
    if (judged_.mirrored && judged_.mirrored[at]) return;
    sums.plain += 1;
    sums.moved += static_cast<f64>((ratio - 1) - log_ratio);
    sums.clipped += std::abs(ratio - 1) > hparams_.clip ? 1 : 0;
  }

  struct Error {
    f32 square, slope;
  };

  Error value_error(f32 value, i64 at) const {
    const f32 off = value - judged_.returns[at];
    const Error free{off * off, 2 * off};
    if (hparams_.value_clip == 0) return free;
    const f32 old = judged_.value[at], moved = value - old, most = hparams_.value_clip;
    const f32 held = moved < -most ? -most : moved > most ? most : moved;
    const f32 near = old + held - judged_.returns[at];
    const Error bound{near * near, held == moved ? 2 * near : 0};
    if (free.square == bound.square) return {free.square, (free.slope + bound.slope) / 2};
    return free.square < bound.square ? bound : free;
  }

  const Decisions& decisions_;
  Judged judged_;
  PolicyHparams hparams_;
  const f32* said_;
  f32* grad_;
  std::vector<PolicySums> sums_;
};

// The mean cross-entropy of actions that would have been right, times `weight`; values learn
// nothing of it.
class ExampleLoss final : public Job {
 public:
  ExampleLoss(const Decisions& decisions, f32 weight, const f32* said, f32* grad)
      : decisions_(decisions),
        weight_(weight),
        said_(said),
        grad_(grad),
        sums_(static_cast<size_t>(chunks())) {}

  int open(int phase) override { return phase == 0 ? chunks() : -1; }

  void run(int, int chunk) override {
    DecisionRow row(decisions_);
    const i64 width = decisions_.head() + 1;
    const f32 share = 1 / static_cast<f32>(decisions_.rows);
    const int last = least((chunk + 1) * PolicyLoss::kRows, decisions_.rows);
    f64 sum = 0;
    for (int r = chunk * PolicyLoss::kRows; r < last; ++r) {
      row.read(said_ + r * width, r);
      row.descend(-share * weight_, 0, grad_ + r * width);
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
  const f32* said_;
  f32* grad_;
  std::vector<f64> sums_;
};

}  // namespace sparring
