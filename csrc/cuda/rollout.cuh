// Processing of a rollout, the same for every learner: values at truncations, transitions and
// advantages, the list of samples, and pending decisions for the next rollout.
#pragma once

#include "core/gae.hpp"
#include "cuda/act.cuh"

namespace sparring {

// Rows of games that were truncated for the `number`th time in a rollout.
struct TruncationsView {
  const i32* index;  // [rows], `cut_at` of EndsView in cuda/pool.cuh
  const i32* count;  // [games]
  int number, rows, rows_each, rows_per_game;
  const f32* value_scale;  // [members]
  f32* final_value;
  const i8* role;  // [rows], or null: one network decides in all roles
  int only;        // the role whose values these are
  i8* final_role;  // or null
};

// Writes the values of truncated games final_index the step kernel noted them.
extern "C" __global__ void write_truncation_values(HeadsView heads, TruncationsView truncations) {
  const i64 thread = global_thread();
  if (thread >= truncations.rows ||
      truncations.count[thread / truncations.rows_per_game] <= truncations.number ||
      truncations.index[thread] < 0)
    return;
  if (truncations.role && truncations.role[thread] != truncations.only) return;
  const int member = static_cast<int>(thread / truncations.rows_each);
  const f32 value = heads.value_of(thread, member) * truncations.value_scale[member];
  const i32 final_index = truncations.index[thread] >> 1;
  truncations.final_value[final_index] = value;
  if (truncations.final_role)
    truncations.final_role[final_index] = static_cast<i8>(truncations.only);
  if (!(truncations.index[thread] & 1)) return;
  truncations.final_value[final_index ^ 1] = -value;
  if (truncations.final_role)
    truncations.final_role[final_index ^ 1] = static_cast<i8>(truncations.only);
}

// Discounts and lambdas of the members of a population, `each` games per member.
struct EstimateView {
  const f32* gamma;       // gamma[member * hparams_stride]
  const f32* gae_lambda;  // as gamma
  int hparams_stride;
  const f32* gamma_into;  // [members, roles]
  const f32* gamma_of;    // [members, roles], or null: gamma
  const f32* lambda_of;   // [members, roles], or null: gae_lambda
  const u32* ended_by;    // [members, roles], or null: decisions of discount 0 end all
  const f32* value;       // by place
  f32* advantage;         // by place
  int each;
};

// The rollout with the discounts of a game's member.
SPARRING_FN inline RolloutView discounted(const RolloutView& rollout, const EstimateView& estimate,
                                          int game) {
  const int member = game / estimate.each;
  RolloutView discounted_rollout = rollout;
  discounted_rollout.gamma = estimate.gamma[i64{member} * estimate.hparams_stride];
  discounted_rollout.gamma_into = estimate.gamma_into + member * rollout.roles;
  if (estimate.gamma_of) discounted_rollout.gamma_of = estimate.gamma_of + member * rollout.roles;
  if (estimate.lambda_of)
    discounted_rollout.lambda_of = estimate.lambda_of + member * rollout.roles;
  if (estimate.ended_by) discounted_rollout.ended_by = estimate.ended_by + member * rollout.roles;
  return discounted_rollout;
}

// One thread links the decisions of one game.
extern "C" __global__ void link(RolloutView rollout, Links links, EstimateView estimate) {
  const int game = static_cast<int>(global_thread());
  if (game < rollout.games) link_game(discounted(rollout, estimate, game), links, game);
}

// One thread links the decisions of one game and estimates their advantages.
extern "C" __global__ void estimate_advantages(RolloutView rollout, Links links,
                                               EstimateView estimate) {
  const int game = static_cast<int>(global_thread());
  if (game >= rollout.games) return;
  const int member = game / estimate.each;
  const RolloutView of_member = discounted(rollout, estimate, game);
  link_game(of_member, links, game);
  gae_of_game(of_member, links, estimate.value,
              estimate.gae_lambda[i64{member} * estimate.hparams_stride], estimate.advantage, game);
}

// Indices of a rollout, counted member by member: pending decisions first, then step by step.
struct IndicesView {
  int members, pending_each, rows_each, steps;
  const u8* end;   // by rollout index
  const i8* role;  // [steps, rows], or null: all roles
  int only;        // the role whose decisions are samples
  int chains;      // pending decisions of a seat are ordered by chain

  SPARRING_FN i64 count() const { return pending_each + i64{steps} * rows_each; }
  SPARRING_FN i64 index(int member, i64 number) const {
    if (number < pending_each) return i64{member} * pending_each + number;
    number -= pending_each;
    const i64 step = number / rows_each;
    return i64{members} * pending_each + (step * members + member) * rows_each + number % rows_each;
  }
  SPARRING_FN bool is_sample(i64 i) const {
    if (end[i] == kNotASample) return false;
    if (!role) return true;
    const i64 pending_count = i64{members} * pending_each;
    return (i < pending_count ? static_cast<int>(i % chains) : role[i - pending_count]) == only;
  }
};

// Indices of the samples, member by member.
struct SampleListView {
  i32* list;  // [members, stride]
  i64 stride;
  i32* counts;  // [members]
};

extern "C" __global__ void mark_samples(IndicesView indices, i32* marks) {
  const i64 thread = global_thread();
  if (thread >= indices.members * indices.count()) return;
  const int member = static_cast<int>(thread / indices.count());
  marks[thread] = indices.is_sample(indices.index(member, thread % indices.count()));
}

// `ranks` are the running sums of the marks.
extern "C" __global__ void list_samples(IndicesView indices, const i32* ranks,
                                        SampleListView samples) {
  const i64 thread = global_thread();
  if (thread >= indices.members * indices.count()) return;
  const int member = static_cast<int>(thread / indices.count());
  const i64 index = indices.index(member, thread % indices.count());
  if (indices.is_sample(index))
    samples.list[member * samples.stride + ranks[thread] - 1] = static_cast<i32>(index);
  if ((thread + 1) % indices.count() == 0) samples.counts[member] = ranks[thread];
}

// Arrays of a rollout by index; the first `pending_count` entries are for pending decisions.
struct PendingView {
  const PendingTransition* pending;
  int pending_count, row_bytes;
  u8* obs;
  u64* legal;
  Action* action;
  f32* log_prob;
  f32* value;
};

// Moves the rows of pending decisions to the front, one warp each.
extern "C" __global__ void move_pending(PendingView v) {
  const i64 to = global_warp();
  if (to >= v.pending_count || v.pending[to].row < 0 || v.pending[to].row == to) return;
  const i64 from = v.pending[to].row;
  const Bytes16* row = reinterpret_cast<const Bytes16*>(v.obs + from * v.row_bytes);
  Bytes16* target = reinterpret_cast<Bytes16*>(v.obs + to * v.row_bytes);
  for (int i = lane(); i < v.row_bytes / 16; i += kWarp) target[i] = row[i];
  for (int i = lane(); i < kWords; i += kWarp)
    v.legal[to * kWords + i] = v.legal[from * kWords + i];
  constexpr int kNumbers = max(kBox, 1);
  for (int i = lane(); i < kNumbers; i += kWarp)
    v.action[to * kNumbers + i] = v.action[from * kNumbers + i];
  if (lane() != 0) return;
  v.log_prob[to] = v.log_prob[from];
  v.value[to] = v.value[from];
}

}  // namespace sparring
