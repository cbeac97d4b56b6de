// DQN between the passes of its networks: targets, the loss and the gradient of the heads, one row
// after the other. The twin of learn/losses.py. Host only.
#pragma once

#include <cmath>
#include <vector>

#include "core/thread_pool.hpp"
#include "learn/row_sums.hpp"

namespace sparring {

// What is learned from, by row. Heads are [rows, actions + 1], a value last.
struct QSamples {
  int rows, actions;
  const f32 *said, *ahead;  // by the network about decisions, by the target about what followed
  const f32* chooser;       // whose best action is taken there
  const u8 *mask, *next_mask;
  const i32* action;
  const f32 *paid, *discount;
  const f32* weight;  // null: 1
};

struct QHparams {
  bool dueling;
  f32 huber;  // errors beyond it count linearly; 0: none do
};

class QLoss final : public RowSums<2> {
 public:
  // grad: as heads are. error: of every row.
  QLoss(const QSamples& samples, const QHparams& hparams, f32* grad, f32* error)
      : RowSums(samples.rows), of_(samples), hparams_(hparams), grad_(grad), error_(error) {}

  f64 loss() const { return mean(0); }
  f64 off() const { return mean(1); }  // the mean error

 private:
  void row(int r, f64* sums) override {
    const int width = of_.actions + 1;
    const i64 at = i64{r} * width;
    const u8* legal = of_.mask + i64{r} * of_.actions;
    const f32 target = of_.paid[r] + of_.discount[r] * following(r);
    const i32 action = of_.action[r];
    const f32 off = q_of(of_.said + at, legal, action) - target;
    const f32 near = hparams_.huber > 0 ? least(most(off, -hparams_.huber), hparams_.huber) : off;
    const f32 weight = of_.weight ? of_.weight[r] : 1.0f;
    const f32 slope = near * weight / static_cast<f32>(of_.rows);
    f32* grad = grad_ + at;
    const f32 share = hparams_.dueling ? slope / static_cast<f32>(most(count(legal), 1)) : 0.0f;
    for (int a = 0; a < of_.actions; ++a) grad[a] = legal[a] ? -share : 0.0f;
    grad[action] += slope;
    grad[of_.actions] = hparams_.dueling ? slope : 0.0f;
    error_[r] = std::fabs(off);
    sums[0] += static_cast<f64>(near * (off - 0.5f * near) * weight);
    sums[1] += static_cast<f64>(error_[r]);
  }

  // The target's estimate of the best action that follows; where none is legal, of the first one.
  f32 following(int r) const {
    const i64 at = i64{r} * (of_.actions + 1);
    const u8* legal = of_.next_mask + i64{r} * of_.actions;
    const f32* head = of_.chooser + at;
    int best = -1;
    for (int a = 0; a < of_.actions; ++a)
      if (legal[a] && (best < 0 || head[a] > head[best])) best = a;
    return q_of(of_.ahead + at, legal, most(best, 0));
  }

  f32 q_of(const f32* heads, const u8* legal, int action) const {
    if (!hparams_.dueling) return heads[action];
    f32 sum = 0;
    for (int a = 0; a < of_.actions; ++a) sum += legal[a] ? heads[a] : 0.0f;
    return heads[action] + heads[of_.actions] - sum / static_cast<f32>(most(count(legal), 1));
  }

  int count(const u8* legal) const {
    int found = 0;
    for (int a = 0; a < of_.actions; ++a) found += legal[a] != 0;
    return found;
  }

  QSamples of_;
  QHparams hparams_;
  f32 *grad_, *error_;
};

}  // namespace sparring
