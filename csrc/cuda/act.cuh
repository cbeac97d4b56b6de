// Sampling of actions from the outputs of a network's heads: categorical and Gaussian.
//
// NVRTC compiles this file with the actions of the game (`action_constants` in
// src/sparring/learn/fused/kernels.py). Actions are numbers (SPARRING_BOX of them) or one of
// SPARRING_ACTIONS.
#pragma once

#include "core/rng.hpp"
#include "cuda/number.cuh"
#include "nets/exploring.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

inline constexpr int kActions = SPARRING_ACTIONS, kWords = SPARRING_LEGAL_WORDS;
inline constexpr int kBox = SPARRING_BOX;  // numbers of a continuous action, 0 for discrete ones
inline constexpr int kLogits = ((kBox ? 2 * kBox : kActions) + 7) / 8 * 8;  // the head's columns
#if SPARRING_BOX
using Action = f32;  // kBox of them
#else
using Action = i32;
#endif

// Outputs of a network's heads, without their biases.
struct HeadsView {
  const f32* policy;  // [rows, kLogits]
  const f32* value;   // [rows, value_stride], the first column counts
  int value_stride;
  const f32* policy_bias;
  const f32* value_bias;
  i64 bias_stride;  // between members

  SPARRING_FN const f32* logits(i64 row) const { return policy + row * kLogits; }
  SPARRING_FN const f32* logit_bias(i64 member) const { return policy_bias + member * bias_stride; }
  // Divided by the value scale.
  SPARRING_FN f32 value_of(i64 row, i64 member) const {
    return value[row * value_stride] + value_bias[member * bias_stride];
  }
};

// Rows of frozen opponents, whose outputs are sorted by network. Null: outputs are in row order.
struct FrozenView {
  const i32* position;  // [rows], index of a row's outputs; -1: not a frozen network's row
  const i32* group;     // by position, the network whose biases are added
  const u8* greedy;     // by group, whether the most probable action is taken

  SPARRING_FN bool any() const { return position != nullptr; }
};

// Exploration of a value-based learner. Without `epsilon` there is none.
struct ExploreView {
  const f32* epsilon;  // [rows], probability of a uniformly random legal action
  int greedy;          // 1: the best action is taken, 0: one is sampled

  SPARRING_FN bool any() const { return epsilon != nullptr; }
};

// Rows that need an action, `rows_each` of every member, numbered from `first_row` in each.
struct DecisionsView {
  const u64* legal;   // [rows, kWords]
  const i16* policy;  // [rows], policy id
  int learner;        // the policy id that acts
  FrozenView frozen;  // act instead of the learner, if there are any
  ExploreView explore;
  const u64* seeds;  // [members]
  const i32* clock;  // the number of the rollout
  const f32* value_scale;
  int rows, rows_each, first_row, step;
  const i8* role;  // [rows], or null: one network decides in all roles
  int only;        // the role that acts

  SPARRING_FN bool skips(i64 row) const { return role && role[row] != only; }
};

// Sampled actions with their log-probabilities and values. Rows of other policies get action 0.
struct SampledView {
  Action* action;
  f32* log_prob;
  f32* value;
  f32* played;  // if not null: continuous actions after tanh, for the games
};

#if SPARRING_BOX
// The Gaussian of one row, held by one thread: means and log standard deviations, as in
// `mean_and_std` in src/sparring/nets/distribution.py.
struct Gaussian {
  static constexpr f32 kShift = static_cast<f32>(kHalfLogTau);
  f32 mean[kBox], log_std[kBox];
  bool free[kBox];  // the standard deviation is not clamped, so that it has a gradient

  SPARRING_FN Gaussian(const f32* product, const f32* bias) {
    for (int i = 0; i < kBox; ++i) {
      mean[i] = product[i] + bias[i];
      const f32 raw = product[kBox + i] + bias[kBox + i];
      log_std[i] = fminf(fmaxf(raw, kMinLogStd), kMaxLogStd);
      free[i] = raw >= kMinLogStd && raw <= kMaxLogStd;
    }
  }

  // Distance of an action's component from its mean, in standard deviations.
  SPARRING_FN f32 off(const f32* action, int i) const {
    return (action[i] - mean[i]) * expf(-log_std[i]);
  }

  SPARRING_FN f32 log_density(const f32* action) const {
    f32 sum = 0;
    for (int i = 0; i < kBox; ++i)
      sum -= 0.5f * off(action, i) * off(action, i) + log_std[i] + kShift;
    return sum;
  }

  SPARRING_FN f32 entropy() const {
    f32 sum = 0;
    for (int i = 0; i < kBox; ++i) sum += log_std[i] + 0.5f + kShift;
    return sum;
  }
};

// Draws an action for every row, one thread each: the twin of nets/sampler.hpp, with the same
// random numbers.
extern "C" __global__ void __launch_bounds__(256)
    draw(HeadsView heads, DecisionsView decisions, SampledView sampled) {
  const i64 row = global_thread();
  if (row >= decisions.rows) return;
  const i64 member = row / decisions.rows_each;
  const bool frozen = decisions.frozen.any();
  const i64 at = frozen ? decisions.frozen.position[row] : row;
  if (at < 0 || decisions.skips(row)) return;
  const i64 group = frozen ? decisions.frozen.group[at] : member;
  const Gaussian gaussian(heads.logits(at), heads.logit_bias(group));
  Rng rng(decisions.seeds[member],
          static_cast<u32>(decisions.first_row + row % decisions.rows_each),
          static_cast<u32>(decisions.clock[0]), Stream::kSampling,
          static_cast<u32>(decisions.step) * gaussian_draws(kBox));
  const bool mine = frozen || decisions.policy[row] == decisions.learner;
  const f32 far = frozen && decisions.frozen.greedy[group] ? 0.0f : 1.0f;
  f32 log_density = 0, radius = 0, turns = 0;
  Rng chance = exploring_rng(
      decisions.seeds[member], static_cast<u32>(decisions.first_row + row % decisions.rows_each),
      static_cast<u32>(decisions.clock[0]), static_cast<u32>(decisions.step), kBox);
  const bool random =
      !frozen && decisions.explore.any() && explores(decisions.explore.epsilon[row], chance);
  for (int i = 0; i < kBox; ++i) {
    if (i % 2 == 0) {
      radius = sqrtf(-2 * logf((static_cast<f32>(rng.next()) + 1) * (1.0f / 4294967296.0f)));
      turns = 2 * static_cast<f32>(rng.next()) * (1.0f / 4294967296.0f);
    }
    const f32 normal = far * radius * (i % 2 ? sinpif(turns) : cospif(turns));
    f32 drawn = gaussian.mean[i] + normal * expf(gaussian.log_std[i]);
    if (random) drawn = explored_number(sampled.played != nullptr, chance);
    log_density -= 0.5f * normal * normal + gaussian.log_std[i] + Gaussian::kShift;
    sampled.action[row * kBox + i] = mine ? drawn : 0.0f;
    if (sampled.played) sampled.played[row * kBox + i] = mine ? tanhf(drawn) : 0.0f;
  }
  if (frozen) return;
  sampled.log_prob[row] = mine ? log_density : 0.0f;
  sampled.value[row] = heads.value_of(row, member) * decisions.value_scale[member];
}
#else
inline constexpr int kChunks = (kActions + kWarp - 1) / kWarp;
inline constexpr f32 kNever = -3.0e38f;

// The categorical distribution of one row, spread over a warp: lane l of chunk c holds action
// 32 c + l. Illegal actions have weight 0.
struct Choices {
  f32 logit[kChunks];   // kNever if illegal
  f32 weight[kChunks];  // exp(logit - top)
  f32 top, total;

  // `product` is the head's output without the bias.
  SPARRING_FN Choices(const f32* product, const f32* bias, const u64* legal) {
    top = kNever;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int a = c * kWarp + lane();
      const bool is_legal = a < kActions && (legal[c / 2] >> (a & 63) & 1);
      logit[c] = is_legal ? product[a] + bias[a] : kNever;
      top = fmaxf(top, logit[c]);
    }
    top = warp_max(top);
    total = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      weight[c] = logit[c] == kNever ? 0.0f : expf(logit[c] - top);
      total += weight[c];
    }
    total = warp_sum(total);
  }

  // The most probable action, the lowest of equals; -1 if none is legal.
  SPARRING_FN int best() const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (const u32 any = __ballot_sync(kFullWarp, weight[c] > 0 && logit[c] == top))
        return c * kWarp + __ffs(static_cast<int>(any)) - 1;
    return -1;
  }

  // The logit of any action, for all lanes.
  SPARRING_FN f32 logit_of(int action) const {
    f32 found = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (c == action / kWarp) found = logit[c];
    return __shfl_sync(kFullWarp, found, action % kWarp);
  }
};

// Draws an action for every row, one warp each: the twin of nets/sampler.hpp, with the same random
// numbers.
extern "C" __global__ void __launch_bounds__(256)
    draw(HeadsView heads, DecisionsView decisions, SampledView sampled) {
  const i64 row = global_warp();
  if (row >= decisions.rows) return;
  const i64 member = row / decisions.rows_each;
  const bool frozen = decisions.frozen.any();
  const i64 position = frozen ? decisions.frozen.position[row] : row;
  if (position < 0 || decisions.skips(row)) return;
  if (!frozen && decisions.policy[row] != decisions.learner) {
    if (lane() != 0) return;
    sampled.action[row] = 0;
    sampled.log_prob[row] = 0;
    sampled.value[row] = heads.value_of(row, member) * decisions.value_scale[member];
    return;
  }
  const i64 group = frozen ? decisions.frozen.group[position] : member;
  const Choices choices(heads.logits(position), heads.logit_bias(group),
                        decisions.legal + row * kWords);
  Rng rng(
      decisions.seeds[member], static_cast<u32>(decisions.first_row + row % decisions.rows_each),
      static_cast<u32>(decisions.clock[0]), Stream::kSampling, static_cast<u32>(decisions.step));
  const f32 at = static_cast<f32>(rng.next()) * (1.0f / 4294967296.0f) * choices.total;
  const bool greedy = frozen ? decisions.frozen.greedy[group] : decisions.explore.greedy;
  int chosen = greedy ? choices.best() : -1;
  f32 up_to = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (chosen >= 0) break;
    f32 sum = choices.weight[c];
    for (int by = 1; by < kWarp; by *= 2) {
      const f32 below = __shfl_up_sync(kFullWarp, sum, static_cast<u32>(by));
      if (lane() >= by) sum += below;
    }
    const u32 past = __ballot_sync(kFullWarp, choices.weight[c] > 0 && up_to + sum > at);
    if (past) chosen = c * kWarp + __ffs(static_cast<int>(past)) - 1;
    up_to += __shfl_sync(kFullWarp, sum, kWarp - 1);
  }
  if (chosen < 0) {  // by rounding errors: the last legal action
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (const u32 any = __ballot_sync(kFullWarp, choices.weight[c] > 0))
        chosen = c * kWarp + 31 - __clz(static_cast<int>(any));
  }
  if (!frozen && decisions.explore.any()) {
    Rng chance = exploring_rng(
        decisions.seeds[member], static_cast<u32>(decisions.first_row + row % decisions.rows_each),
        static_cast<u32>(decisions.clock[0]), static_cast<u32>(decisions.step), 0);
    if (explores(decisions.explore.epsilon[row], chance))
      chosen = any_legal(decisions.legal + row * kWords, kWords, chance);
  }
  const f32 log_p = choices.logit_of(chosen < 0 ? 0 : chosen) - choices.top - logf(choices.total);
  if (lane() != 0) return;
  const bool mine = chosen >= 0;
  sampled.action[row] = mine ? chosen : 0;
  if (frozen) return;
  sampled.log_prob[row] = mine ? log_p : 0.0f;
  sampled.value[row] = heads.value_of(row, member) * decisions.value_scale[member];
}
#endif

}  // namespace sparring
