// PPO's update: advantage statistics, the return scale, minibatches, loss and early stopping.
//
// Every array has a leading dimension for the members of a population. The formulas are those of
// src/sparring/learn/ppo.py; src/sparring/learn/fused/update.py launches the kernels in the order
// in which they stand here.
#pragma once

#include "cuda/act.cuh"
#include "cuda/optimizer.cuh"
#include "cuda/rollout.cuh"
#include "cuda/view.cuh"

namespace sparring {

// Hyperparameters that may change between updates, one per member; named as in learn/ppo.py.
struct Hparams {
  f32 lr, entropy, clip, value_clip, value_weight, max_grad_norm, target_kl, gamma, gae_lambda;
};

// Statistics of a rollout's advantages and returns, one per member.
struct Statistics {
  f32 mean, inverse_std;  // of the advantages
  f32 scale, ratio;       // return scale, and the former scale divided by it
  f32 explained;          // explained variance of the returns
};

// Losses of a minibatch, means over its rows.
struct Losses {
  f32 policy_loss, value_loss, entropy, approx_kl, clipfrac;

  SPARRING_FN friend Losses operator+(const Losses& a, const Losses& b) {
    return {a.policy_loss + b.policy_loss, a.value_loss + b.value_loss, a.entropy + b.entropy,
            a.approx_kl + b.approx_kl, a.clipfrac + b.clipfrac};
  }
};

// Sums over the optimizer steps of an update, one per member.
struct Tally {
  f32 policy_loss, value_loss, entropy, approx_kl, clipfrac, grad_norm, optimizer_steps;
};

SPARRING_FN inline Losses warp_sums(const Losses& x) {
  return {warp_sum(x.policy_loss), warp_sum(x.value_loss), warp_sum(x.entropy),
          warp_sum(x.approx_kl), warp_sum(x.clipfrac)};
}

// Sums over samples: advantages, returns, their squares, and the number of nonzero rewards.
struct Moments {
  f64 advantage, advantage_squared, returns, returns_squared, rewarded;
};
inline constexpr int kMoments = sizeof(Moments) / sizeof(f64);

// One block of `partials` per block of threads.
extern "C" __global__ void sum_advantages(SampleListView samples, const f32* advantage,
                                          const f32* value, const f32* reward, Moments* partials) {
  const int member = static_cast<int>(blockIdx.y);
  f64 sums[kMoments]{};
  for (i64 i = global_thread(); i < samples.counts[member]; i += i64{gridDim.x} * blockDim.x) {
    const i32 index = samples.list[member * samples.stride + i];
    const f64 gain = static_cast<f64>(advantage[index]);
    const f64 sample_return = gain + static_cast<f64>(value[index]);
    sums[0] += gain;
    sums[1] += gain * gain;
    sums[2] += sample_return;
    sums[3] += sample_return * sample_return;
    sums[4] += reward[index] != 0;
  }
  __shared__ f64 all[kMoments][256];
  for (int k = 0; k < kMoments; ++k) all[k][threadIdx.x] = sums[k];
  __syncthreads();
  if (threadIdx.x >= kMoments) return;
  f64 sum = 0;
  for (int i = 0; i < 256; ++i) sum += all[threadIdx.x][i];
  f64* mine = reinterpret_cast<f64*>(partials + i64{member} * gridDim.x + blockIdx.x);
  mine[threadIdx.x] = sum;
}

// The sums, and the statistics computed from them.
struct StatisticsView {
  const Moments* partials;  // [members, blocks]
  int blocks;
  const i32* counts;
  u8* has_scale;          // [members], whether a rollout had rewards yet; the first sets the scale
  f32 decay;              // of the former scale
  f32 max_scaled_return;  // the scale is at least the size of returns divided by this
  f32* value_scale;
  Statistics* statistics;
  Tally* tallies;
  u8* stopped;
};

// The return scale after a rollout (PopArt); `next_scale` in nets/net.py. Without rewards, or with
// returns that are not finite, it stays.
SPARRING_FN inline f32 update_return_scale(const StatisticsView& v, int member, const Moments& sums,
                                           f64 n) {
  const f32 before = v.value_scale[member],
            root_mean_square = static_cast<f32>(sqrt(sums.returns_squared / n));
  if (sums.rewarded == 0 || !is_finite(root_mean_square)) return before;
  const f32 size = fmaxf(root_mean_square, 1e-6f);
  const f32 scale = v.has_scale[member]
                        ? fmaxf(v.decay * before + (1 - v.decay) * size, size / v.max_scaled_return)
                        : size;
  v.has_scale[member] = 1;
  return scale;
}

// The return scale and the normalization of advantages, one thread per member; clears the tallies.
extern "C" __global__ void summarize_advantages(StatisticsView v) {
  const int member = static_cast<int>(threadIdx.x);
  Moments sums{};
  for (int b = 0; b < v.blocks; ++b) {
    const Moments& one = v.partials[i64{member} * v.blocks + b];
    sums = {sums.advantage + one.advantage, sums.advantage_squared + one.advantage_squared,
            sums.returns + one.returns, sums.returns_squared + one.returns_squared,
            sums.rewarded + one.rewarded};
  }
  const f64 n = static_cast<f64>(v.counts[member] ? v.counts[member] : 1);
  const f64 mean = sums.advantage / n;
  const f64 variance = fmax(sums.advantage_squared / n - mean * mean, 0.0);
  const f64 mean_return = sums.returns / n;
  const f64 return_variance = fmax(sums.returns_squared / n - mean_return * mean_return, 0.0);
  const f32 before = v.value_scale[member], scale = update_return_scale(v, member, sums, n);
  v.statistics[member] = {
      static_cast<f32>(mean), 1.0f / (static_cast<f32>(sqrt(variance)) + 1e-8f), scale,
      before / scale,
      return_variance > 0 ? static_cast<f32>(1 - variance / return_variance) : 0.0f};
  v.value_scale[member] = scale;
  v.tallies[member] = {};
  v.stopped[member] = 0;
}

// Rescales the value head for the new return scale; unscaled values stay the same.
extern "C" __global__ void rescale_values(f32* weight, Num* compute, i64 stride, int count,
                                          const Statistics* statistics) {
  const int at = static_cast<int>(global_thread());
  if (at >= count) return;
  const i64 index = blockIdx.y * stride + at;
  weight[index] *= statistics[blockIdx.y].ratio;
  compute[index] = rounded(weight[index]);
}

// Where `i` of 0..count-1 goes in a shuffle that `key` chooses: a Feistel network over the next
// power of two, walked until it lands inside.
SPARRING_FN inline u32 shuffled(u32 i, u32 count, u64 key) {
  const int bits = count > 1 ? 32 - __clz(static_cast<int>(count - 1)) : 1;
  const int low_bits = (bits + 1) / 2, high_bits = bits - low_bits;
  const u32 low_mask = (1u << low_bits) - 1, high_mask = (1u << high_bits) - 1;
  do {
    u32 high = i >> low_bits, low = i & low_mask;
    for (u32 round = 0; round < 8; ++round) {
      const u32 from = round & 1 ? high : low;
      u32 mixed = (from + round * 0x9E3779B9u) ^ static_cast<u32>(key);
      mixed = (mixed ^ mixed >> 16) * 0x85EBCA6Bu;
      mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35u ^ static_cast<u32>(key >> 32);
      mixed = (mixed ^ mixed >> 16) * 0x7FEB352Du;
      mixed ^= mixed >> 15;
      if (round & 1)
        low ^= mixed & low_mask;
      else
        high ^= mixed & high_mask;
    }
    i = high << low_bits | low;
  } while (i >= count);
  return i;
}

// Minibatch `number` of an epoch: which samples of the shuffled list it takes.
struct Slice {
  i64 first, rows;
};
SPARRING_FN inline Slice slice_of(int count, int number, int minibatches, int room) {
  const i64 first = i64{count} * number / minibatches,
            end = i64{count} * (number + 1) / minibatches;
  return {first, min(end - first, i64{room})};
}

// The minibatches of an epoch, and the key of their shuffle.
struct ShuffleView {
  const u64* seeds;  // [members]
  const i32* clock;  // the number of the update
  int epoch, minibatches, members, room;
  int first, stride;  // offset in a minibatch, and rows of a minibatch
  i32* picked;        // [minibatches, members, stride]: an index, or -1 past the last sample

  SPARRING_FN i32& to(i64 at) const { return picked[at / room * stride + first + at % room]; }
};

// Distributes the shuffled samples of an epoch over its minibatches.
extern "C" __global__ void shuffle(SampleListView samples, ShuffleView view) {
  const i64 at = global_thread();
  if (at >= i64{view.minibatches} * view.members * view.room) return;
  const int row = static_cast<int>(at % view.room);
  const int member = static_cast<int>(at / view.room % view.members);
  const int count = samples.counts[member];
  const Slice slice =
      slice_of(count, static_cast<int>(at / view.room / view.members), view.minibatches, view.room);
  if (row >= slice.rows) {
    view.to(at) = -1;
    return;
  }
  const u64 seed = view.seeds[member];
  const PhiloxBlock key = philox(static_cast<u32>(view.clock[0]), static_cast<u32>(view.epoch), 0,
                                 0, static_cast<u32>(seed), static_cast<u32>(seed >> 32));
  const u32 drawn = shuffled(static_cast<u32>(slice.first + row), static_cast<u32>(count),
                             u64{key.word[0]} << 32 | key.word[1]);
  view.to(at) = samples.list[member * samples.stride + drawn];
}

// The value loss of one row: the squared error and its gradient, both unweighted.
struct ValueLoss {
  f32 error, slope = 1;

  // `value` is divided by the return scale; the old value and the advantage are not.
  SPARRING_FN ValueLoss(f32 value, f32 old, f32 gain, const Statistics& statistics,
                        const Hparams& hparams) {
    const f32 before = old / statistics.scale, back = (gain + old) / statistics.scale;
    error = value - back;
    if (hparams.value_clip <= 0) return;
    const f32 moved = value - before;
    const f32 limited = fminf(fmaxf(moved, -hparams.value_clip), hparams.value_clip);
    const f32 other = before + limited - back;
    if (other * other <= error * error) return;
    error = other;
    slope = moved == limited ? 1.0f : 0.0f;
  }
  SPARRING_FN f32 gradient() const { return 2 * error * slope; }
};

// The clipped surrogate of one row.
struct Surrogate {
  f32 log_ratio, ratio, gain, near;

  SPARRING_FN Surrogate(f32 log_prob, f32 old_log_prob, f32 advantage, const Statistics& statistics,
                        f32 clip) {
    gain = (advantage - statistics.mean) * statistics.inverse_std;
    log_ratio = log_prob - old_log_prob;
    ratio = expf(log_ratio);
    near = fminf(fmaxf(ratio, 1 - clip), 1 + clip);
  }
  // With respect to the log-probability; the clipped branch is constant.
  SPARRING_FN f32 gradient() const { return gain * ratio > gain * near ? 0.0f : -gain * ratio; }

  SPARRING_FN Losses losses(const ValueLoss& value, f32 entropy, f32 clip) const {
    return {-fminf(gain * ratio, gain * near), value.error * value.error, entropy,
            ratio - 1 - log_ratio, fabsf(ratio - 1) > clip ? 1.0f : 0.0f};
  }
};

// Sums the losses of the warps of a block of 256 threads.
__device__ inline void add_losses(const Losses& warps, Losses* out) {
  __shared__ Losses all[8];
  if (lane() == 0) all[threadIdx.x / kWarp] = warps;
  __syncthreads();
  if (threadIdx.x) return;
  Losses sum{};
  for (const Losses& one : all) sum = sum + one;
  *out = sum;
}

// A minibatch of every member: indices of its samples, and their arrays.
struct MinibatchView {
  const i32* picked;  // [members, stride]: an index, or -1; the first `room` are samples
  const u64* legal;   // by rollout index, as the next four
  const Action* action;
  const f32* old_log_prob;
  const f32* old_value;
  const f32* advantage;
  const i32* counts;  // [members], samples of the rollout
  int number, minibatches, room;
  int stride;  // rows of a member in the forward pass: samples, then examples

  SPARRING_FN f32 share(int member) const {  // weight of one row in the means
    const i64 rows = slice_of(counts[member], number, minibatches, room).rows;
    return 1.0f / static_cast<f32>(rows ? rows : 1);
  }
};

// Hyperparameters and statistics of the loss, and its outputs.
struct LossView {
  const Hparams* hparams;
  const Statistics* statistics;
  int rows_per_block;
  Num* policy_grad;  // [members, room, kLogits]
  Num* value_grad;   // [members, room, value_stride]
  Losses* partials;  // [members, blocks]
  u32* arrived;      // [members], blocks that have finished; 0 before and after
  Losses* means;     // [members]
  u8* diverged;      // [members]
};

// Examples after the samples of a minibatch: relabeled decisions, see cuda/goals.cuh.
struct ExampleRowsView {
  const i32* picked;  // [members, stride]: from `first` on the index of an example, or -1
  int first, stride, rows;
  int first_index;    // of all examples
  const i32* source;  // by example, index of the decision whose mask it has
  const i32* action;  // by example, the target action
  const u64* legal;   // by rollout index
  const i32* counts;  // [members]
  int number, minibatches;
  const f32* weight;  // [members], of the examples' loss
  Num* policy_grad;   // [members, stride, kLogits]
  Num* value_grad;    // [members, stride, value_stride]
  f32* partials;      // [members, blocks], sums of the mean loss
};

// Reads losses that another multiprocessor wrote: not from the L1 cache.
__device__ inline Losses load_uncached(const Losses* at) {
  return {__ldcg(&at->policy_loss), __ldcg(&at->value_loss), __ldcg(&at->entropy),
          __ldcg(&at->approx_kl), __ldcg(&at->clipfrac)};
}

// Sums the losses of a block. The last block to finish averages all blocks in their order, which
// saves a launch. A loss that is not finite marks the member as diverged.
__device__ inline void finish_losses(const Losses& warps, const MinibatchView& batch,
                                     const LossView& out) {
  __shared__ bool is_last;
  __shared__ Losses total;
  const int member = static_cast<int>(blockIdx.y), blocks = static_cast<int>(gridDim.x);
  Losses* mine = out.partials + i64{member} * blocks;
  add_losses(warps, mine + blockIdx.x);
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicInc(out.arrived + member, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  Losses sum{};
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += 256)
    sum = sum + load_uncached(mine + i);
  add_losses(warp_sums(sum), &total);
  if (threadIdx.x) return;
  const f32 share = batch.share(member);
  const Losses mean{total.policy_loss * share, total.value_loss * share, total.entropy * share,
                    total.approx_kl * share, total.clipfrac * share};
  out.means[member] = mean;
  if (!is_finite(mean.policy_loss + mean.value_loss + mean.entropy)) out.diverged[member] = 1;
}

// `loss` computes the gradient with respect to the policy head and the value, and the means of the
// losses. The formulas are those of `ppo_loss` in src/sparring/learn/ppo.py.
#if SPARRING_BOX
// One thread per row.
extern "C" __global__ void __launch_bounds__(256)
    loss(SPARRING_VIEW HeadsView heads, SPARRING_VIEW MinibatchView batch,
         SPARRING_VIEW LossView out) {
  const int member = static_cast<int>(blockIdx.y);
  const Hparams hparams = out.hparams[member];
  const Statistics statistics = out.statistics[member];
  const f32 share = batch.share(member);
  const int mine =
      static_cast<int>(blockIdx.x) * out.rows_per_block + static_cast<int>(threadIdx.x);
  Losses sums{};
  if (mine < batch.room) {
    const i64 row = i64{member} * batch.stride + mine;
    const i32 index = batch.picked[row];
    f32 head_grad[kLogits]{}, value_grad = 0;
    if (index >= 0) {
      const Gaussian gaussian(heads.logits(row), heads.logit_bias(member));
      const f32* taken = batch.action + i64{index} * kBox;
      const f32 gain = batch.advantage[index];
      const Surrogate policy(gaussian.log_density(taken), batch.old_log_prob[index], gain,
                             statistics, hparams.clip);
      const f32 log_prob_grad = policy.gradient() * share;
      for (int i = 0; i < kBox; ++i) {
        const f32 off = gaussian.off(taken, i);
        head_grad[i] = log_prob_grad * off * expf(-gaussian.log_std[i]);
        if (gaussian.free[i])
          head_grad[kBox + i] = log_prob_grad * (off * off - 1) - hparams.entropy * share;
      }
      const ValueLoss value(heads.value_of(row, member), batch.old_value[index], gain, statistics,
                            hparams);
      value_grad = hparams.value_weight * value.gradient() * share;
      sums = policy.losses(value, gaussian.entropy(), hparams.clip);
    }
    for (int i = 0; i < kLogits; ++i) out.policy_grad[row * kLogits + i] = rounded(head_grad[i]);
    for (int i = 0; i < heads.value_stride; ++i)
      out.value_grad[row * heads.value_stride + i] = rounded(i == 0 ? value_grad : 0.0f);
  }
  finish_losses(warp_sums(sums), batch, out);
}
#else
// One warp per row.
extern "C" __global__ void __launch_bounds__(256)
    loss(SPARRING_VIEW HeadsView heads, SPARRING_VIEW MinibatchView batch,
         SPARRING_VIEW LossView out) {
  const int member = static_cast<int>(blockIdx.y), value_stride = heads.value_stride;
  const Hparams hparams = out.hparams[member];
  const Statistics statistics = out.statistics[member];
  const f32 share = batch.share(member);
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
    const i32 taken = batch.action[index];
    const f32 gain = batch.advantage[index], old = batch.old_value[index];
    const f32 old_log_prob = batch.old_log_prob[index], value = heads.value_of(row, member);
    const Choices choices(heads.logits(row), heads.logit_bias(member),
                          batch.legal + i64{index} * kWords);
    const f32 log_total = logf(choices.total) + choices.top, inverse = 1 / choices.total;
    f32 entropy = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (choices.weight[c] > 0) entropy -= choices.weight[c] * (choices.logit[c] - log_total);
    entropy = warp_sum(entropy) * inverse;
    const Surrogate policy(choices.logit_of(taken) - log_total, old_log_prob, gain, statistics,
                           hparams.clip);
    const f32 log_prob_grad = policy.gradient() * share;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int a = c * kWarp + lane();
      const f32 p = choices.weight[c] * inverse;
      f32 grad = 0;
      if (choices.logit[c] != kNever)
        grad = log_prob_grad * ((a == taken ? 1.0f : 0.0f) - p) +
               hparams.entropy * share * p * (choices.logit[c] - log_total + entropy);
      if (a < kLogits) out.policy_grad[row * kLogits + a] = rounded(grad);
    }
    const ValueLoss error(value, old, gain, statistics, hparams);
    if (lane() < value_stride)
      out.value_grad[row * value_stride + lane()] =
          rounded(lane() == 0 ? hparams.value_weight * error.gradient() * share : 0.0f);
    sums = sums + policy.losses(error, entropy, hparams.clip);
  }
  finish_losses(sums, batch, out);
}

// The gradient of the mean cross-entropy of examples, one warp per row; values get none.
extern "C" __global__ void __launch_bounds__(256)
    imitate(SPARRING_VIEW HeadsView heads, SPARRING_VIEW ExampleRowsView v) {
  const int member = static_cast<int>(blockIdx.y), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int mine = static_cast<int>(blockIdx.x) * 8 + warp;
  const i64 among = slice_of(v.counts[member], v.number, v.minibatches, v.rows).rows;
  const f32 share = 1.0f / static_cast<f32>(among ? among : 1);
  f32 cross_entropy = 0;
  if (mine < v.rows) {
    const i64 row = i64{member} * v.stride + v.first + mine;
    const i32 index = v.picked[row];
    if (lane() < heads.value_stride) v.value_grad[row * heads.value_stride + lane()] = rounded(0);
    if (index < 0) {
      for (int a = lane(); a < kLogits; a += kWarp) v.policy_grad[row * kLogits + a] = rounded(0);
    } else {
      const i32 example = index - v.first_index, target_action = v.action[example];
      const Choices choices(heads.logits(row), heads.logit_bias(member),
                            v.legal + i64{v.source[example]} * kWords);
      const f32 log_prob_grad = v.weight[member] * share, inverse = 1 / choices.total;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const int a = c * kWarp + lane();
        const f32 grad =
            log_prob_grad * (choices.weight[c] * inverse - (a == target_action ? 1.0f : 0.0f));
        if (a < kLogits)
          v.policy_grad[row * kLogits + a] = rounded(choices.logit[c] == kNever ? 0.0f : grad);
      }
      cross_entropy = (logf(choices.total) + choices.top - choices.logit_of(target_action)) * share;
    }
  }
  __shared__ f32 all[8];
  if (lane() == 0) all[warp] = cross_entropy;
  __syncthreads();
  if (threadIdx.x) return;
  f32 sum = 0;
  for (f32 one : all) sum += one;
  v.partials[i64{member} * gridDim.x + blockIdx.x] = sum;
}
#endif

// Losses and optimizer steps of a finished epoch.
struct EpochView {
  const Losses* means;            // [minibatches, members]
  const StepParams* step_params;  // [minibatches, members]
  int minibatches, members;
  const Hparams* hparams;
  Tally* tallies;
  u8* stopped;
};

// Adds the epoch to the tallies, one thread per member, and stops the update early for members that
// exceed the target KL.
extern "C" __global__ void end_epoch(EpochView v) {
  const int member = static_cast<int>(threadIdx.x);
  Tally tally = v.tallies[member];
  f32 kl = 0;
  for (int m = 0; m < v.minibatches; ++m) {
    const Losses& mean = v.means[m * v.members + member];
    const StepParams& params = v.step_params[m * v.members + member];
    kl += mean.approx_kl;
    if (params.active == 0) continue;
    tally = {tally.policy_loss + mean.policy_loss,
             tally.value_loss + mean.value_loss,
             tally.entropy + mean.entropy,
             tally.approx_kl + mean.approx_kl,
             tally.clipfrac + mean.clipfrac,
             tally.grad_norm + params.norm,
             tally.optimizer_steps + 1};
  }
  v.tallies[member] = tally;
  const f32 limit = v.hparams[member].target_kl;
  if (limit > 0 && kl / static_cast<f32>(v.minibatches) > limit) v.stopped[member] = 1;
}

}  // namespace sparring
