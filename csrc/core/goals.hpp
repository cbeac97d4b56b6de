// Hindsight: a decision seen once more, as if what came out had been the goal.
//
// A game has goals if a decision sets one that later decisions of the seat are paid by: a bid, a
// target. When it is settled, the game says what came of it in one number that is not 0, its record
// (`Result::record`). Rows and records are all that is needed to see decisions anew: the functions
// below know neither tables nor pools, and a GPU shares them.
#pragma once

#include "core/game.hpp"
#include "core/replay.hpp"
#include "core/transitions.hpp"

namespace sparring {

// What a row says about its decision.
struct GoalRow {
  int role;   // in which it is made
  int stage;  // counts up through the episode, G::kStages of them to a goal, from 0
  bool asks;  // for the goal itself; all others pursue the one that their row shows
};

// What a game with goals declares, all of it static and a function of rows and records:
//   kGoalRole        the role that sets goals
//   kStages          stages that a goal has at most
//   goal_row         what a row says
//   made, achieved   the goal that was set; the one that came true, -1 if none did
//   goal_action      the action that sets a goal
//   set_goal         rewrites a row that pursues a goal, as if another had been set
//   paid_for         what `role` is paid for the stages from..to-1 of a goal that `record` settled,
//                    had the goal been another and everything else the same
//   goal_pays        whether a part's payments can be told from a record
template <class G>
concept HasGoals =
    requires(const typename G::Config& config, const u8* obs, u8* row, const f32* weight) {
      requires G::kGoalRole >= 0 && G::kGoalRole < G::kRoles&& G::kStages > 0;
      { G::goal_row(config, obs) } -> Same<GoalRow>;
      { G::made(0u) } -> Same<int>;
      { G::achieved(0u) } -> Same<int>;
      { G::goal_action(0) } -> Same<int>;
      { G::set_goal(config, row, 0) } -> Same<void>;
      { G::paid_for(config, weight, 0, 0u, 0, 0, 0) } -> Same<f32>;
      { G::goal_pays(0) } -> Same<bool>;
    };

inline constexpr u32 kNoRecord = 0;
// Of a decision of which nobody can say any more whether its goal was settled. Games never emit it.
inline constexpr u32 kUnknownRecord = ~u32{0};
inline constexpr int kLastStage = 1 << 30;  // behind all stages of an episode

SPARRING_FN inline bool is_record(u32 record) {
  return record != kNoRecord && record != kUnknownRecord;
}

// The lots by which a share of the decisions is seen anew.
SPARRING_FN inline bool drawn_for_hindsight(u64 seed, u32 place, u32 number, f32 share) {
  Rng rng(seed, place, number, Stream::kHindsight);
  return rng.uniform() < share;
}

// The record of every decision of one game: the first one of its seat at or behind its step.
// `record` is [steps, games, seats]; `out` is by place. A decision that was carried over keeps
// what it had, and gets one of this rollout only if it had none: its goal may be settled already.
SPARRING_FN inline void record_of_game(const RolloutView& v, const u32* record, u32* out,
                                       int game) {
  for (int seat = 0; seat < v.seats; ++seat) {
    u32 comes = kNoRecord;
    for (int step = v.steps - 1; step >= 0; --step) {
      const int at = step * v.games + game;
      if (v.terminated[at] || v.truncated[at]) comes = kNoRecord;
      if (const u32 here = record[at * v.seats + seat]) comes = here;
      for (int r = 0; r < v.rows; ++r) {
        const int row = game * v.rows + r;
        if (v.seat[step * v.games * v.rows + row] == seat) out[v.place(step, row)] = comes;
      }
    }
    for (int chain = 0; chain < v.chains; ++chain) {
      u32& carried = out[(game * v.seats + seat) * v.chains + chain];
      if (carried == kNoRecord) carried = comes;
    }
  }
}

// Makes an example of a row and what was done: what would have been right had `record`'s outcome
// been the goal. A decision that asks for the goal gets another action, one that pursues it another
// row. `allows` tells which actions the row's mask has. False: there is none, nothing was changed.
template <HasGoals G, class Allows>
SPARRING_FN inline bool relabel(const typename G::Config& config, u32 record, u8* obs,
                                Allows allows, i32& action) {
  if (!is_record(record)) return false;
  const int goal = G::achieved(record);
  if (goal < 0) return false;
  if (!G::goal_row(config, obs).asks) {
    G::set_goal(config, obs, goal);
    return true;
  }
  const int setting = G::goal_action(goal);
  if (!allows(setting)) return false;
  action = setting;
  return true;
}

// Out of a replay

template <HasGoals G>
SPARRING_FN inline GoalRow row_at(const typename G::Config& config, const RingView& ring,
                                  int place) {
  return G::goal_row(config, ring.obs + i64{place} * ring.row_bytes);
}

template <HasGoals G>
SPARRING_FN inline bool same_goal(const GoalRow& one, const GoalRow& other) {
  return one.stage / G::kStages == other.stage / G::kStages;
}

// The record of a decision in a ring. One that was complete before its goal was settled has none of
// its own; a later decision about the same goal has.
template <HasGoals G>
SPARRING_FN inline u32 record_at(const typename G::Config& config, const RingView& ring,
                                 const u32* record, int place) {
  const GoalRow mine = row_at<G>(config, ring, place);
  while (record[place] == kNoRecord) {
    if (ring.end[place] != kToNext) return kNoRecord;
    place = ring.next[place];
    const GoalRow here = row_at<G>(config, ring, place);
    if (here.asks || !same_goal<G>(here, mine)) return kNoRecord;
  }
  return record[place];
}

// What the decision at `place` would have been paid until the seat's next one. Where that lies
// behind the goal's end, what was paid for later goals stays as it was.
template <HasGoals G>
SPARRING_FN inline f32 paid_in_hindsight(const typename G::Config& config, const f32* weight,
                                         const RingView& ring, u32 record, int place) {
  const GoalRow here = row_at<G>(config, ring, place);
  const bool last = ring.next[place] == place;
  const int to = last ? kLastStage : row_at<G>(config, ring, ring.next[place]).stage;
  const f32 paid =
      G::paid_for(config, weight, here.role, record, G::achieved(record), here.stage, to);
  if (to <= (here.stage / G::kStages + 1) * G::kStages) return paid;
  const f32 was = G::paid_for(config, weight, here.role, record, G::made(record), here.stage, to);
  return (ring.paid[place] - was) + paid;
}

// Makes sample `i`, which `take_sample` wrote, one in hindsight: row, action, payments and, if it
// is about the same goal, the row that follows. False: it stays as it was.
template <HasGoals G>
SPARRING_FN inline bool relabel_sample(const typename G::Config& config, const f32* weight,
                                       const RingView& ring, const u32* records,
                                       const SamplesView& out, int i, int n) {
  const int place = static_cast<int>(out.place[i]);
  const u32 record = record_at<G>(config, ring, records, place);
  const i64 bytes = ring.row_bytes;
  const u8* mask = out.mask + i64{i} * ring.actions;
  const auto allows = [&](int action) { return mask[action] != 0; };
  if (!relabel<G>(config, record, out.obs + i * bytes, allows, out.action[i])) return false;
  const GoalRow mine = row_at<G>(config, ring, place);
  Followed found{0, 1, place};
  for (int k = 0; k < n; ++k) {
    const bool same = same_goal<G>(row_at<G>(config, ring, found.place), mine);
    found.paid +=
        found.discount * (same ? paid_in_hindsight<G>(config, weight, ring, record, found.place)
                               : ring.paid[found.place]);
    found.discount *= ring.discount[found.place];
    if (found.discount == 0) break;
    found.place = ring.next[found.place];
    if (ring.end[found.place] == kNotASample) break;
  }
  out.paid[i] = found.paid;
  const GoalRow next = row_at<G>(config, ring, found.place);
  if (!next.asks && same_goal<G>(next, mine))
    G::set_goal(config, out.next_obs + i * bytes, G::achieved(record));
  return true;
}

}  // namespace sparring
