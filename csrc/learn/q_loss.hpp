// DQN's targets, loss and gradient of the heads, row by row, as learn/losses.py. Host only.
#pragma once

#include <cmath>
#include <vector>

#include "core/thread_pool.hpp"
#include "learn/row_sums.hpp"

namespace sparring {

// A batch of samples. Outputs of heads are [rows, actions + 1], the value last.
struct QSamples {
  int rows, actions;
  const f32 *outputs, *next_q_target;  // online network on obs, target network on next_obs
  const f32* next_q_online;            // network that chooses the next action
  const u8 *mask, *next_mask;
  const i32* action;
  const f32 *reward, *discount;
  const f32* weight;  // null: 1
};

struct QHparams {
  bool dueling;
  f32 huber;  // errors beyond it count linearly; 0: squared loss
};

class QLoss final : public RowSums<2> {
 public:
  // grad: [rows, actions + 1]. error: [rows], absolute TD error.
  QLoss(const QSamples& samples, const QHparams& hparams, f32* grad, f32* error)
      : RowSums(samples.rows), samples_(samples), hparams_(hparams), grad_(grad), error_(error) {}

  f64 loss() const { return mean(0); }
  f64 mean_error() const { return mean(1); }

 private:
  void row(int r, f64* sums) override {
    const int width = samples_.actions + 1;
    const i64 at = i64{r} * width;
    const u8* legal = samples_.mask + i64{r} * samples_.actions;
    const f32 target = samples_.reward[r] + samples_.discount[r] * next_value(r);
    const i32 action = samples_.action[r];
    const f32 error = q_of(samples_.outputs + at, legal, action) - target;
    const f32 near = hparams_.huber > 0 ? min(max(error, -hparams_.huber), hparams_.huber) : error;
    const f32 weight = samples_.weight ? samples_.weight[r] : 1.0f;
    const f32 slope = near * weight / static_cast<f32>(samples_.rows);
    f32* grad = grad_ + at;
    const f32 share = hparams_.dueling ? slope / static_cast<f32>(max(count(legal), 1)) : 0.0f;
    for (int a = 0; a < samples_.actions; ++a) grad[a] = legal[a] ? -share : 0.0f;
    grad[action] += slope;
    grad[samples_.actions] = hparams_.dueling ? slope : 0.0f;
    error_[r] = std::fabs(error);
    sums[0] += static_cast<f64>(near * (error - 0.5f * near) * weight);
    sums[1] += static_cast<f64>(error_[r]);
  }

  // The target network's value of the best next action; of the first one where none is legal.
  f32 next_value(int r) const {
    const i64 at = i64{r} * (samples_.actions + 1);
    const u8* legal = samples_.next_mask + i64{r} * samples_.actions;
    const f32* head = samples_.next_q_online + at;
    int best = -1;
    for (int a = 0; a < samples_.actions; ++a)
      if (legal[a] && (best < 0 || head[a] > head[best])) best = a;
    return q_of(samples_.next_q_target + at, legal, max(best, 0));
  }

  f32 q_of(const f32* heads, const u8* legal, int action) const {
    if (!hparams_.dueling) return heads[action];
    f32 sum = 0;
    for (int a = 0; a < samples_.actions; ++a) sum += legal[a] ? heads[a] : 0.0f;
    return heads[action] + heads[samples_.actions] - sum / static_cast<f32>(max(count(legal), 1));
  }

  int count(const u8* legal) const {
    int found = 0;
    for (int a = 0; a < samples_.actions; ++a) found += legal[a] != 0;
    return found;
  }

  QSamples samples_;
  QHparams hparams_;
  f32 *grad_, *error_;
};

}  // namespace sparring
