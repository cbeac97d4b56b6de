// PPO's update: advantage statistics, the unit of values, minibatches, loss and early stopping.
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

// What a run may change between updates, one per member; named as in learn/ppo.py.
struct Hparams {
  f32 lr, entropy, clip, value_clip, value_weight, max_grad_norm, target_kl, gamma, gae_lambda;
};

// What the advantages of a rollout amount to, one per member.
struct Statistics {
  f32 mean, inverse_std;  // of the advantages
  f32 scale, ratio;       // unit of the values, and the former unit in it
  f32 explained;          // share of the returns' variance
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

// Sums over samples: of advantages, returns and their squares, and how many were paid anything.
struct Moments {
  f64 gain, gain_squared, back, back_squared, paid;
};
inline constexpr int kMoments = sizeof(Moments) / sizeof(f64);

// One block of `partials` per block of threads.
extern "C" __global__ void sum_advantages(SampleListView samples, const f32* advantage,
                                          const f32* value, const f32* paid, Moments* partials) {
  const int member = static_cast<int>(blockIdx.y);
  f64 sums[kMoments]{};
  for (i64 i = global_thread(); i < samples.counts[member]; i += i64{gridDim.x} * blockDim.x) {
    const i32 place = samples.list[member * samples.stride + i];
    const f64 gain = static_cast<f64>(advantage[place]);
    const f64 back = gain + static_cast<f64>(value[place]);
    sums[0] += gain;
    sums[1] += gain * gain;
    sums[2] += back;
    sums[3] += back * back;
    sums[4] += paid[place] != 0;
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

// From those sums to what an update starts with.
struct StatisticsView {
  const Moments* partials;  // [members, blocks]
  int blocks;
  const i32* counts;
  u8* has_unit;  // [members], whether a rollout has paid anything yet; the first sets the unit
  f32 keep;      // share of the former unit of values
  f32 most;      // units that returns measure
  f32* value_scale;
  Statistics* statistics;
  Tally* tallies;
  u8* stopped;
};

// The unit of values behind a rollout; `next_unit` in nets/net.py. Where nothing was paid, or the
// returns are not finite, it stays.
SPARRING_FN inline f32 choose_unit(const StatisticsView& v, int member, const Moments& sums,
                                   f64 n) {
  const f32 before = v.value_scale[member], found = static_cast<f32>(sqrt(sums.back_squared / n));
  if (sums.paid == 0 || !is_finite(found)) return before;
  const f32 size = fmaxf(found, 1e-6f);
  const f32 unit =
      v.has_unit[member] ? fmaxf(v.keep * before + (1 - v.keep) * size, size / v.most) : size;
  v.has_unit[member] = 1;
  return unit;
}

// The unit of values and the normalization of advantages, one thread per member; clears the
// tallies.
extern "C" __global__ void summarize_advantages(StatisticsView v) {
  const int member = static_cast<int>(threadIdx.x);
  Moments sums{};
  for (int b = 0; b < v.blocks; ++b) {
    const Moments& one = v.partials[i64{member} * v.blocks + b];
    sums = {sums.gain + one.gain, sums.gain_squared + one.gain_squared, sums.back + one.back,
            sums.back_squared + one.back_squared, sums.paid + one.paid};
  }
  const f64 n = static_cast<f64>(v.counts[member] ? v.counts[member] : 1);
  const f64 mean = sums.gain / n, spread = fmax(sums.gain_squared / n - mean * mean, 0.0);
  const f64 back = sums.back / n, back_spread = fmax(sums.back_squared / n - back * back, 0.0);
  const f32 before = v.value_scale[member], scale = choose_unit(v, member, sums, n);
  v.statistics[member] = {static_cast<f32>(mean), 1.0f / (static_cast<f32>(sqrt(spread)) + 1e-8f),
                          scale, before / scale,
                          back_spread > 0 ? static_cast<f32>(1 - spread / back_spread) : 0.0f};
  v.value_scale[member] = scale;
  v.tallies[member] = {};
  v.stopped[member] = 0;
}

// The value head in its new unit; what it says about any row stays the same.
extern "C" __global__ void rescale_values(f32* weight, Num* compute, i64 stride, int count,
                                          const Statistics* statistics) {
  const int at = static_cast<int>(global_thread());
  if (at >= count) return;
  const i64 place = blockIdx.y * stride + at;
  weight[place] *= statistics[blockIdx.y].ratio;
  compute[place] = rounded(weight[place]);
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
  return {first, least(end - first, i64{room})};
}

// The minibatches of an epoch, and what shuffles them.
struct DealView {
  const u64* seeds;  // [members]
  const i32* clock;  // the number of the update
  int epoch, minibatches, members, room;
  int first, stride;  // where they stand in a minibatch, and rows of a minibatch
  i32* picked;        // [minibatches, members, stride]: a place, or -1 past the samples' end

  SPARRING_FN i32& to(i64 at) const { return picked[at / room * stride + first + at % room]; }
};

// Deals the samples of an epoch to its minibatches.
extern "C" __global__ void shuffle(SampleListView samples, DealView deal) {
  const i64 at = global_thread();
  if (at >= i64{deal.minibatches} * deal.members * deal.room) return;
  const int row = static_cast<int>(at % deal.room);
  const int member = static_cast<int>(at / deal.room % deal.members);
  const int count = samples.counts[member];
  const Slice slice =
      slice_of(count, static_cast<int>(at / deal.room / deal.members), deal.minibatches, deal.room);
  if (row >= slice.rows) {
    deal.to(at) = -1;
    return;
  }
  const u64 seed = deal.seeds[member];
  const PhiloxBlock key = philox(static_cast<u32>(deal.clock[0]), static_cast<u32>(deal.epoch), 0,
                                 0, static_cast<u32>(seed), static_cast<u32>(seed >> 32));
  const u32 drawn = shuffled(static_cast<u32>(slice.first + row), static_cast<u32>(count),
                             u64{key.word[0]} << 32 | key.word[1]);
  deal.to(at) = samples.list[member * samples.stride + drawn];
}

// The value loss of one row: the squared miss and its gradient, both unweighted.
struct ValueMiss {
  f32 miss, slope = 1;

  // `value` in units of the scale; the old value and the advantage are not.
  SPARRING_FN ValueMiss(f32 value, f32 old, f32 gain, const Statistics& of, const Hparams& hparam) {
    const f32 before = old / of.scale, back = (gain + old) / of.scale;
    miss = value - back;
    if (hparam.value_clip <= 0) return;
    const f32 moved = value - before;
    const f32 limited = fminf(fmaxf(moved, -hparam.value_clip), hparam.value_clip);
    const f32 other = before + limited - back;
    if (other * other <= miss * miss) return;
    miss = other;
    slope = moved == limited ? 1.0f : 0.0f;
  }
  SPARRING_FN f32 gradient() const { return 2 * miss * slope; }
};

// The clipped surrogate of one row.
struct Surrogate {
  f32 log_ratio, ratio, gain, near;

  SPARRING_FN Surrogate(f32 log_prob, f32 old_log_prob, f32 advantage, const Statistics& of,
                        f32 clip) {
    gain = (advantage - of.mean) * of.inverse_std;
    log_ratio = log_prob - old_log_prob;
    ratio = expf(log_ratio);
    near = fminf(fmaxf(ratio, 1 - clip), 1 + clip);
  }
  // With respect to the log-probability; the clipped branch is constant.
  SPARRING_FN f32 gradient() const { return gain * ratio > gain * near ? 0.0f : -gain * ratio; }

  SPARRING_FN Losses losses(const ValueMiss& value, f32 entropy, f32 clip) const {
    return {-fminf(gain * ratio, gain * near), value.miss * value.miss, entropy,
            ratio - 1 - log_ratio, fabsf(ratio - 1) > clip ? 1.0f : 0.0f};
  }
};

// Adds up what the warps of a block of 256 threads found.
__device__ inline void add_losses(const Losses& warps, Losses* out) {
  __shared__ Losses all[8];
  if (lane() == 0) all[threadIdx.x / kWarp] = warps;
  __syncthreads();
  if (threadIdx.x) return;
  Losses sum{};
  for (const Losses& one : all) sum = sum + one;
  *out = sum;
}

// A minibatch of every member: which samples, and what was known of them.
struct MinibatchView {
  const i32* picked;  // [members, stride]: a place, or -1; `room` of them are samples
  const u64* legal;   // by place, as all that follows
  const Action* action;
  const f32* old_log_prob;
  const f32* old_value;
  const f32* advantage;
  const i32* counts;  // [members], samples of the rollout
  int number, minibatches, room;
  int stride;  // rows of a member in the pass: samples, and examples behind them

  SPARRING_FN f32 share(int member) const {  // of one row in the means
    const i64 rows = slice_of(counts[member], number, minibatches, room).rows;
    return 1.0f / static_cast<f32>(rows ? rows : 1);
  }
};

// By what the loss is measured, and where its gradient and its sums go.
struct LossView {
  const Hparams* hparams;
  const Statistics* statistics;
  int rows_per_block;
  Num* policy_grad;  // [members, room, kLogits]
  Num* value_grad;   // [members, room, value_stride]
  Losses* partials;  // [members, blocks]
  u32* arrived;      // [members], blocks that have written theirs; 0 before and after
  Losses* means;     // [members]
  u8* diverged;      // [members]
};

// Examples behind the samples of a minibatch: decisions seen in hindsight, see cuda/goals.cuh.
struct ExampleRowsView {
  const i32* picked;  // [members, stride]: from `first` on the place of an example, or -1
  int first, stride, rows;
  int first_place;    // of all examples
  const i32* from;    // by example, the place whose mask it has
  const i32* action;  // by example, what would have been right
  const u64* legal;   // by place
  const i32* counts;  // [members]
  int number, minibatches;
  const f32* weight;  // [members], of their loss
  Num* policy_grad;   // [members, stride, kLogits]
  Num* value_grad;    // [members, stride, value_stride]
  f32* partials;      // [members, blocks], of their mean loss
};

// Read past the cache of this processor: another one wrote it.
__device__ inline Losses others_losses(const Losses* at) {
  return {__ldcg(&at->policy_loss), __ldcg(&at->value_loss), __ldcg(&at->entropy),
          __ldcg(&at->approx_kl), __ldcg(&at->clipfrac)};
}

// Adds up what the block's warps found. The block that comes last averages what all found, in the
// order of the blocks, which saves a launch. A loss that is not finite is never stepped on.
__device__ inline void settle_losses(const Losses& warps, const MinibatchView& batch,
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
    sum = sum + others_losses(mine + i);
  add_losses(warp_sums(sum), &total);
  if (threadIdx.x) return;
  const f32 share = batch.share(member);
  const Losses mean{total.policy_loss * share, total.value_loss * share, total.entropy * share,
                    total.approx_kl * share, total.clipfrac * share};
  out.means[member] = mean;
  if (!is_finite(mean.policy_loss + mean.value_loss + mean.entropy)) out.diverged[member] = 1;
}

// `loss` has the gradient of the loss with respect to the policy head and the value, and the means
// of the losses. The formulas are those of `ppo_loss` in src/sparring/learn/ppo.py.
#if SPARRING_BOX
// One thread per row.
extern "C" __global__ void __launch_bounds__(256)
    loss(SPARRING_VIEW HeadsView heads, SPARRING_VIEW MinibatchView batch,
         SPARRING_VIEW LossView out) {
  const int member = static_cast<int>(blockIdx.y);
  const Hparams hparam = out.hparams[member];
  const Statistics of = out.statistics[member];
  const f32 share = batch.share(member);
  const int mine =
      static_cast<int>(blockIdx.x) * out.rows_per_block + static_cast<int>(threadIdx.x);
  Losses sums{};
  if (mine < batch.room) {
    const i64 row = i64{member} * batch.stride + mine;
    const i32 place = batch.picked[row];
    f32 head_grad[kLogits]{}, value_grad = 0;
    if (place >= 0) {
      const Gaussian gaussian(heads.logits(row), heads.logit_bias(member));
      const f32* taken = batch.action + i64{place} * kBox;
      const f32 gain = batch.advantage[place];
      const Surrogate policy(gaussian.log_density(taken), batch.old_log_prob[place], gain, of,
                             hparam.clip);
      const f32 pull = policy.gradient() * share;
      for (int i = 0; i < kBox; ++i) {
        const f32 off = gaussian.off(taken, i);
        head_grad[i] = pull * off * expf(-gaussian.log_std[i]);
        if (gaussian.free[i]) head_grad[kBox + i] = pull * (off * off - 1) - hparam.entropy * share;
      }
      const ValueMiss value(heads.value_of(row, member), batch.old_value[place], gain, of, hparam);
      value_grad = hparam.value_weight * value.gradient() * share;
      sums = policy.losses(value, gaussian.entropy(), hparam.clip);
    }
    for (int i = 0; i < kLogits; ++i) out.policy_grad[row * kLogits + i] = rounded(head_grad[i]);
    for (int i = 0; i < heads.value_stride; ++i)
      out.value_grad[row * heads.value_stride + i] = rounded(i == 0 ? value_grad : 0.0f);
  }
  settle_losses(warp_sums(sums), batch, out);
}
#else
// One warp per row.
extern "C" __global__ void __launch_bounds__(256)
    loss(SPARRING_VIEW HeadsView heads, SPARRING_VIEW MinibatchView batch,
         SPARRING_VIEW LossView out) {
  const int member = static_cast<int>(blockIdx.y), value_stride = heads.value_stride;
  const Hparams hparam = out.hparams[member];
  const Statistics of = out.statistics[member];
  const f32 share = batch.share(member);
  const int first = static_cast<int>(blockIdx.x) * out.rows_per_block;
  Losses sums{};
  for (int r = static_cast<int>(threadIdx.x) / kWarp; r < out.rows_per_block; r += 8) {
    if (first + r >= batch.room) break;
    const i64 row = i64{member} * batch.stride + first + r;
    const i32 place = batch.picked[row];
    if (place < 0) {
      for (int a = lane(); a < kLogits; a += kWarp) out.policy_grad[row * kLogits + a] = rounded(0);
      if (lane() < value_stride) out.value_grad[row * value_stride + lane()] = rounded(0);
      continue;
    }
    const i32 taken = batch.action[place];
    const f32 gain = batch.advantage[place], old = batch.old_value[place];
    const f32 old_log_prob = batch.old_log_prob[place], value = heads.value_of(row, member);
    const Choices choices(heads.logits(row), heads.logit_bias(member),
                          batch.legal + i64{place} * kWords);
    const f32 log_total = logf(choices.total) + choices.top, inverse = 1 / choices.total;
    f32 entropy = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (choices.weight[c] > 0) entropy -= choices.weight[c] * (choices.logit[c] - log_total);
    entropy = warp_sum(entropy) * inverse;
    const Surrogate policy(choices.logit_of(taken) - log_total, old_log_prob, gain, of,
                           hparam.clip);
    const f32 pull = policy.gradient() * share;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int a = c * kWarp + lane();
      const f32 p = choices.weight[c] * inverse;
      f32 grad = 0;
      if (choices.logit[c] != kNever)
        grad = pull * ((a == taken ? 1.0f : 0.0f) - p) +
               hparam.entropy * share * p * (choices.logit[c] - log_total + entropy);
      if (a < kLogits) out.policy_grad[row * kLogits + a] = rounded(grad);
    }
    const ValueMiss miss(value, old, gain, of, hparam);
    if (lane() < value_stride)
      out.value_grad[row * value_stride + lane()] =
          rounded(lane() == 0 ? hparam.value_weight * miss.gradient() * share : 0.0f);
    sums = sums + policy.losses(miss, entropy, hparam.clip);
  }
  settle_losses(sums, batch, out);
}

// The gradient of the mean cross-entropy of examples, one warp per row. Values learn nothing.
extern "C" __global__ void __launch_bounds__(256)
    imitate(SPARRING_VIEW HeadsView heads, SPARRING_VIEW ExampleRowsView v) {
  const int member = static_cast<int>(blockIdx.y), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int mine = static_cast<int>(blockIdx.x) * 8 + warp;
  const i64 among = slice_of(v.counts[member], v.number, v.minibatches, v.rows).rows;
  const f32 share = 1.0f / static_cast<f32>(among ? among : 1);
  f32 missed = 0;
  if (mine < v.rows) {
    const i64 row = i64{member} * v.stride + v.first + mine;
    const i32 place = v.picked[row];
    if (lane() < heads.value_stride) v.value_grad[row * heads.value_stride + lane()] = rounded(0);
    if (place < 0) {
      for (int a = lane(); a < kLogits; a += kWarp) v.policy_grad[row * kLogits + a] = rounded(0);
    } else {
      const i32 example = place - v.first_place, right = v.action[example];
      const Choices choices(heads.logits(row), heads.logit_bias(member),
                            v.legal + i64{v.from[example]} * kWords);
      const f32 pull = v.weight[member] * share, inverse = 1 / choices.total;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const int a = c * kWarp + lane();
        const f32 grad = pull * (choices.weight[c] * inverse - (a == right ? 1.0f : 0.0f));
        if (a < kLogits)
          v.policy_grad[row * kLogits + a] = rounded(choices.logit[c] == kNever ? 0.0f : grad);
      }
      missed = (logf(choices.total) + choices.top - choices.logit_of(right)) * share;
    }
  }
  __shared__ f32 all[8];
  if (lane() == 0) all[warp] = missed;
  __syncthreads();
  if (threadIdx.x) return;
  f32 sum = 0;
  for (f32 one : all) sum += one;
  v.partials[i64{member} * gridDim.x + blockIdx.x] = sum;
}
#endif

// The minibatches of an epoch behind it.
struct EpochView {
  const Losses* means;  // [minibatches, members]
  const Plan* plans;    // [minibatches, members]
  int minibatches, members;
  const Hparams* hparams;
  Tally* tallies;
  u8* stopped;
};

// Adds up what was learned, one thread per member, and ends the update early for those whose policy
// moved far enough.
extern "C" __global__ void end_epoch(EpochView v) {
  const int member = static_cast<int>(threadIdx.x);
  Tally tally = v.tallies[member];
  f32 kl = 0;
  for (int m = 0; m < v.minibatches; ++m) {
    const Losses& mean = v.means[m * v.members + member];
    const Plan& plan = v.plans[m * v.members + member];
    kl += mean.approx_kl;
    if (plan.active == 0) continue;
    tally = {tally.policy_loss + mean.policy_loss,
             tally.value_loss + mean.value_loss,
             tally.entropy + mean.entropy,
             tally.approx_kl + mean.approx_kl,
             tally.clipfrac + mean.clipfrac,
             tally.grad_norm + plan.norm,
             tally.optimizer_steps + 1};
  }
  v.tallies[member] = tally;
  const f32 limit = v.hparams[member].target_kl;
  if (limit > 0 && kl / static_cast<f32>(v.minibatches) > limit) v.stopped[member] = 1;
}

}  // namespace sparring
