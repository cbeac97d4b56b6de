// Hindsight on a GPU: the goal result of every decision, and relabeled decisions as examples for
// imitation. NVRTC compiles this file after a game's header, as it does cuda/pool.cuh.
#pragma once

#include "core/goals.hpp"
#include "cuda/stage.cuh"

namespace sparring {

SPARRING_FN inline int thread_index() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// One thread finds the goal results of one game's decisions.
extern "C" __global__ void find_goal_results(SPARRING_VIEW RolloutView rollout,
                                             const u32* goal_result, u32* goal_result_of) {
  const int game = thread_index();
  if (game < rollout.games) goal_results_of_game(rollout, goal_result, goal_result_of, game);
}

// Samples of which a random share becomes relabeled examples.
struct ExamplesView {
  const SettingStorage<G>* settings;  // [members]
  const i32* list;                    // [members, stride]: indices of samples
  i64 stride;
  const i32* counts;          // [members], number of samples
  const u32* goal_result_of;  // by rollout index, as the next three
  const u8* obs;
  const Legal<G>* legal;
  const i32* action;
  const u64* seeds;  // [members]
  const i32* clock;  // the number of the update
  f32 share;
  int members, pending_each, rows_each;
  int max_examples;    // of a member
  i32 first_index;     // of the examples
  u8* rows;            // [members, max_examples, kRowBytes]
  i32* source;         // [members, max_examples], index of the decision
  i32* target_action;  // [members, max_examples]
  i32* example_index;  // [members, max_examples]
  i32* example_counts;

  // The index that the decision has when the member is trained alone.
  SPARRING_FN u32 local(int member, i64 index) const {
    const i64 pending_count = i64{members} * pending_each, each = rows_each, all = each * members;
    if (index < pending_count) return static_cast<u32>(index - i64{member} * pending_each);
    const i64 row = index - pending_count;
    return static_cast<u32>(pending_each + row / all * each + row % all - member * each);
  }

  // Relabels a copied row and its action. False: the decision makes no example.
  SPARRING_FN bool relabel_row(int member, i64 index, u8* row, i32& action_taken) const {
    const Legal<G>& mask = legal[index];
    const auto is_legal = [&](int candidate) { return mask.test(candidate); };
    return relabel<G>(settings[member].config, goal_result_of[index], row, is_legal, action_taken);
  }
};

extern "C" __global__ void mark_examples(SPARRING_VIEW ExamplesView v, i32* marks) {
  const int member = static_cast<int>(blockIdx.y);
  const i64 thread = thread_index();
  if (thread >= v.stride) return;
  i32& mark = marks[member * v.stride + thread];
  mark = 0;
  if (thread >= v.counts[member]) return;
  const i64 index = v.list[member * v.stride + thread];
  if (!is_goal_result(v.goal_result_of[index]) ||
      !draws_hindsight(v.seeds[member], v.local(member, index), static_cast<u32>(v.clock[0]),
                       v.share))
    return;
  u8 row[kRowBytes];
  copy_bytes(row, v.obs + index * kRowBytes, kRowBytes);
  i32 action_taken = v.action[index];
  mark = v.relabel_row(member, index, row, action_taken);
}

// `ranks` are the running sums of the marks. Examples beyond max_examples are dropped.
extern "C" __global__ void make_examples(SPARRING_VIEW ExamplesView v, const i32* ranks) {
  const int member = static_cast<int>(blockIdx.y);
  const i64 thread = thread_index();
  if (thread >= v.stride) return;
  const i64 i = member * v.stride + thread;
  const i32 rank = ranks[i];
  if (thread == v.stride - 1) v.example_counts[member] = min(rank, v.max_examples);
  if (rank == (thread ? ranks[i - 1] : 0) || rank > v.max_examples) return;
  const i64 example = i64{member} * v.max_examples + rank - 1, index = v.list[i];
  u8* row = v.rows + example * kRowBytes;
  copy_bytes(row, v.obs + index * kRowBytes, kRowBytes);
  i32 action_taken = v.action[index];
  v.relabel_row(member, index, row, action_taken);
  v.source[example] = static_cast<i32>(index);
  v.target_action[example] = action_taken;
  v.example_index[example] = static_cast<i32>(v.first_index + example);
}

}  // namespace sparring
