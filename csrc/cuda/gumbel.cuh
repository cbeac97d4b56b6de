// The loss of Gumbel AlphaZero: cross-entropy with the improved policy, squared error of values.
//
// The other kernels of an update are those of PPO. The formulas are those of `gumbel_loss` in
// src/sparring/learn/gumbel.py; src/sparring/learn/fused/gumbel.py launches the kernel.
#pragma once

#include "cuda/ppo.cuh"

namespace sparring {

// What searches found, by rollout index.
struct TargetsView {
  const f32* improved;  // [index, kActions]
  const f32* full;      // 1 after a full search, else 0
  const f32* searched;  // [members], full searches of the minibatch, at least 1
};

#if !SPARRING_BOX
// The gradient with respect to logits and value, and the means of the losses, one warp per row.
// `Losses` has the entropy of the targets as `entropy`, and as `clipfrac` the share of full
// searches that prefer another action than the network.
extern "C" __global__ void __launch_bounds__(256)
    search_loss(SPARRING_VIEW HeadsView heads, SPARRING_VIEW MinibatchView batch,
                SPARRING_VIEW TargetsView targets, SPARRING_VIEW LossView out) {
  const int member = static_cast<int>(blockIdx.y), value_stride = heads.value_stride;
  const Hparams hparams = out.hparams[member];
  const Statistics statistics = out.statistics[member];
  const f32 share = batch.share(member), policy_share = 1 / targets.searched[member];
  const int first = static_cast<int>(blockIdx.x) * out.rows_per_block;
  Losses sums{};
  for (int r = static_cast<int>(threadIdx.x) / kWarp; r < out.rows_per_block; r += 8) {
    if (first + r >= batch.room) break;
    const i64 row = i64{member} * batch.stride + first + r;
    const i32 index = batch.picked[row];
    if (index < 0) {
      for (int a = lane(); a < kLogits; a += kWarp) out.policy_grad[row * kLogits + a] = rounded(0);
      if (lane() < value_stride) out.value_grad[row * value_stride + lane()] = rounded(0);
      continue;
    }
    const Choices choices(heads.logits(row), heads.logit_bias(member),
                          batch.legal + i64{index} * kWords);
    const f32 log_total = logf(choices.total) + choices.top, inverse = 1 / choices.total;
    const f32* const improved = targets.improved + i64{index} * kActions;
    f32 target[kChunks], mass = 0, cross_entropy = 0, entropy = 0, most = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      target[c] = choices.logit[c] == kNever ? 0.0f : improved[c * kWarp + lane()];
      if (target[c] <= 0) continue;
      mass += target[c];
      most = fmaxf(most, target[c]);
      cross_entropy -= target[c] * (choices.logit[c] - log_total);
      entropy -= target[c] * logf(target[c]);
    }
    mass = warp_sum(mass);
    most = warp_max(most);
    const f32 weight = targets.full[index] * policy_share;
    f32 preferred = 0;  // the target of the network's best action
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int a = c * kWarp + lane();
      if (choices.logit[c] == choices.top) preferred = fmaxf(preferred, target[c]);
      if (a >= kLogits) continue;
      const f32 p = choices.weight[c] * inverse;
      out.policy_grad[row * kLogits + a] =
          rounded(choices.logit[c] == kNever ? 0.0f : weight * (mass * p - target[c]));
    }
    const ValueLoss error(heads.value_of(row, member), batch.old_value[index],
                          batch.advantage[index], statistics, hparams);
    if (lane() < value_stride)
      out.value_grad[row * value_stride + lane()] =
          rounded(lane() == 0 ? hparams.value_weight * error.gradient() * share : 0.0f);
    const f32 mean = weight / share;  // sums are multiplied by `share`
    sums = sums + Losses{mean * warp_sum(cross_entropy), error.error * error.error,
                         mean * warp_sum(entropy), 0, warp_max(preferred) < most ? mean : 0.0f};
  }
  finish_losses(sums, batch, out);
}
#endif

}  // namespace sparring
