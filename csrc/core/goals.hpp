// Hindsight experience replay: decisions are relabeled as if the achieved goal had been the desired
// one.
//
// A game has goals if a decision sets a goal (a bid, a target) on which the rewards of the seat's
// later decisions depend. When the goal is decided, the game packs the outcome into one nonzero
// number, the goal result (`Recorder::record_goal`). Observation rows and goal results are all that
// the functions below need; CPU and GPU share them.
#pragma once

#include "core/game.hpp"
#include "core/replay.hpp"
#include "core/transitions.hpp"

namespace sparring {

// Facts about a decision that its observation row shows.
struct GoalDecision {
  int role;
  int stage;       // counts up through the episode from 0, G::kStages for each goal
  bool sets_goal;  // other decisions pursue the goal that their row shows
};

// A game with goals declares, all static functions of rows and goal results:
//   kGoalRole        the role that sets goals
//   kStages          the largest number of stages of a goal
//   goal_decision    the facts that a row shows
//   desired_goal     the goal that was set
//   achieved_goal    the goal that was achieved, -1 if none was
//   goal_action      the action that sets a goal
//   set_goal         rewrites a row that pursues a goal, as if another goal had been set
//   goal_reward      the reward of `role` in the stages from..to-1 for another goal and the same
//                    course of the game
//   is_goal_reward   whether a reward part follows from the goal result
template <class G>
concept HasGoals =
    requires(const typename G::Config& config, const u8* obs, u8* row, const f32* weight) {
      requires G::kGoalRole >= 0 && G::kGoalRole < G::kRoles&& G::kStages > 0;
      { G::goal_decision(config, obs) } -> Same<GoalDecision>;
      { G::desired_goal(0u) } -> Same<int>;
      { G::achieved_goal(0u) } -> Same<int>;
      { G::goal_action(0) } -> Same<int>;
      { G::set_goal(config, row, 0) } -> Same<void>;
      { G::goal_reward(config, weight, 0, 0u, 0, 0, 0) } -> Same<f32>;
      { G::is_goal_reward(0) } -> Same<bool>;
    };

inline constexpr u32 kNoGoalResult = 0;
// Whether the goal of the decision was decided is no longer known. Games never record it.
inline constexpr u32 kUnknownGoalResult = ~u32{0};
inline constexpr int kLastStage = 1 << 30;  // after all stages of an episode

SPARRING_FN inline bool is_goal_result(u32 goal_result) {
  return goal_result != kNoGoalResult && goal_result != kUnknownGoalResult;
}

// Whether a decision is relabeled; true for a random `share` of the decisions.
SPARRING_FN inline bool draws_hindsight(u64 seed, u32 index, u32 number, f32 share) {
  Rng rng(seed, index, number, Stream::kHindsight);
  return rng.uniform() < share;
}

// Finds the goal result of every decision of one game: the first one of its seat at its step or
// later. `goal_result` is [steps, games, seats]; `out` is by rollout index. A pending decision of
// the rollout before keeps its goal result if it has one: its goal may have been decided already.
SPARRING_FN inline void goal_results_of_game(const RolloutView& v, const u32* goal_result, u32* out,
                                             int game) {
  for (int seat = 0; seat < v.seats; ++seat) {
    u32 next = kNoGoalResult;
    for (int step = v.steps - 1; step >= 0; --step) {
      const int at = step * v.games + game;
      if (v.terminated[at] || v.truncated[at]) next = kNoGoalResult;
      if (const u32 current = goal_result[at * v.seats + seat]) next = current;
      for (int r = 0; r < v.rows; ++r) {
        const int row = game * v.rows + r;
        if (v.seat[step * v.games * v.rows + row] == seat) out[v.index(step, row)] = next;
      }
    }
    for (int chain = 0; chain < v.chains; ++chain) {
      u32& pending = out[(game * v.seats + seat) * v.chains + chain];
      if (pending == kNoGoalResult) pending = next;
    }
  }
}

// Relabels a decision with the achieved goal: a decision that sets the goal gets another action,
// one that pursues it another row. `is_legal` tests the row's mask. False: no goal was achieved, or
// its action is not legal; nothing was changed.
template <HasGoals G, class IsLegal>
SPARRING_FN inline bool relabel(const typename G::Config& config, u32 goal_result, u8* obs,
                                IsLegal is_legal, i32& action) {
  if (!is_goal_result(goal_result)) return false;
  const int goal = G::achieved_goal(goal_result);
  if (goal < 0) return false;
  if (!G::goal_decision(config, obs).sets_goal) {
    G::set_goal(config, obs, goal);
    return true;
  }
  const int goal_action = G::goal_action(goal);
  if (!is_legal(goal_action)) return false;
  action = goal_action;
  return true;
}

// In a replay ring

template <HasGoals G>
SPARRING_FN inline GoalDecision goal_decision_at(const typename G::Config& config,
                                                 const RingView& ring, int index) {
  return G::goal_decision(config, ring.obs + i64{index} * ring.row_bytes);
}

template <HasGoals G>
SPARRING_FN inline bool same_goal(const GoalDecision& one, const GoalDecision& other) {
  return one.stage / G::kStages == other.stage / G::kStages;
}

// The goal result of a decision in a ring: its own, or that of a later decision about the same
// goal.
template <HasGoals G>
SPARRING_FN inline u32 goal_result_at(const typename G::Config& config, const RingView& ring,
                                      const u32* goal_result, int index) {
  const GoalDecision first = goal_decision_at<G>(config, ring, index);
  while (goal_result[index] == kNoGoalResult) {
    if (ring.end[index] != kToNext) return kNoGoalResult;
    index = ring.next[index];
    const GoalDecision later = goal_decision_at<G>(config, ring, index);
    if (later.sets_goal || !same_goal<G>(later, first)) return kNoGoalResult;
  }
  return goal_result[index];
}

// The relabeled reward of the decision at `index` until the seat's next one. Rewards for later
// goals in between stay as they were.
template <HasGoals G>
SPARRING_FN inline f32 hindsight_reward(const typename G::Config& config, const f32* weight,
                                        const RingView& ring, u32 goal_result, int index) {
  const GoalDecision decision = goal_decision_at<G>(config, ring, index);
  const bool last = ring.next[index] == index;
  const int to = last ? kLastStage : goal_decision_at<G>(config, ring, ring.next[index]).stage;
  const f32 relabeled = G::goal_reward(config, weight, decision.role, goal_result,
                                       G::achieved_goal(goal_result), decision.stage, to);
  if (to <= (decision.stage / G::kStages + 1) * G::kStages) return relabeled;
  const f32 original = G::goal_reward(config, weight, decision.role, goal_result,
                                      G::desired_goal(goal_result), decision.stage, to);
  return (ring.reward[index] - original) + relabeled;
}

// Relabels sample `i`, which `take_sample` wrote: row, action, reward and, if it is about the same
// goal, the next row. False: the sample is unchanged.
template <HasGoals G>
SPARRING_FN inline bool relabel_sample(const typename G::Config& config, const f32* weight,
                                       const RingView& ring, const u32* goal_results,
                                       const SamplesView& out, int i, int n) {
  const int index = static_cast<int>(out.index[i]);
  const u32 goal_result = goal_result_at<G>(config, ring, goal_results, index);
  const i64 bytes = ring.row_bytes;
  const u8* mask = out.mask + i64{i} * ring.actions;
  const auto is_legal = [&](int action) { return mask[action] != 0; };
  if (!relabel<G>(config, goal_result, out.obs + i * bytes, is_legal, out.action[i])) return false;
  const GoalDecision first = goal_decision_at<G>(config, ring, index);
  NStepReturn sum{0, 1, index};
  for (int k = 0; k < n; ++k) {
    const bool same = same_goal<G>(goal_decision_at<G>(config, ring, sum.index), first);
    sum.reward +=
        sum.discount * (same ? hindsight_reward<G>(config, weight, ring, goal_result, sum.index)
                             : ring.reward[sum.index]);
    sum.discount *= ring.discount[sum.index];
    if (sum.discount == 0) break;
    sum.index = ring.next[sum.index];
    if (ring.end[sum.index] == kNotASample) break;
  }
  out.reward[i] = sum.reward;
  const GoalDecision next = goal_decision_at<G>(config, ring, sum.index);
  if (!next.sets_goal && same_goal<G>(next, first))
    G::set_goal(config, out.next_obs + i * bytes, G::achieved_goal(goal_result));
  return true;
}

}  // namespace sparring
