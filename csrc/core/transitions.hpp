// Turns the rows of a rollout into transitions: a decision, the same seat's next one, the reward in
// between, the discount, and how it ended. Every return estimator reads these links, such as
// core/gae.hpp.
//
// A seat's next row may come many steps later; all rewards in between belong to its last decision.
// Decisions without a successor at the end of a rollout are pending: their rows occupy the first
// `pending_count` rows of the next rollout's arrays, one for every (game, seat, chain). A chain is
// a role when manager and worker are separate learners, otherwise there is one. A decision is
// rewarded by the weights of the role that made it.
#pragma once

#include "core/fn.hpp"

namespace sparring {

// A decision that waits for the same seat's next one.
struct PendingTransition {
  i32 row;        // index in the rollout, -1 if there is none
  i32 decisions;  // this one and the forced ones of its seat since then, in any role
  i32 role;
  f32 reward;
};

enum End : u8 {
  kNotASample = 0,  // a row of a bot or another policy, pending, or dropped at a truncation
  kToNext = 1,      // `next` is the seat's next decision
  kTerminated = 2,  // the rules ended the game: nothing follows
  kTruncated = 3,   // the game was truncated: `bootstrap` is the value of its last position
};

// One rollout of `steps` steps, time-major. Indices count the pending rows of the rollout before,
// then all rows: [pending_count + steps * games * rows].
struct RolloutView {
  int steps, games, rows, seats, roles;
  int chains;   // 1, or `roles` when every role has its own learner
  int learner;  // policy id whose rows are samples
  f32 gamma;
  const f32* gamma_into;  // [roles]: discount of a step into a decision of that role
  const f32* gamma_of;    // [roles]: discount of forced and last steps of a role; null: gamma
  const f32* lambda_of;   // [roles]: GAE lambda of a role; null: the same for all
  // [roles]: bit r: a decision in role r ends this role's transition. Null: one of discount 0 does.
  const u32* ended_by;
  const i8* seat;              // [steps, games * rows]
  const i8* role;              // [steps, games * rows]
  const i16* policy;           // [steps, games * rows]
  const f32* reward;           // [steps, games, seats, roles], after the step's actions
  const u8* terminated;        // [steps, games]
  const u8* truncated;         // [steps, games]
  const f32* final_value;      // [steps, games, seats]: value at a truncation, NaN if unknown
  const i8* final_role;        // [steps, games, seats]: the role of that value; or null
  const u16* skipped;          // [steps, games, seats] or null
  PendingTransition* pending;  // [games, seats, chains], kept between rollouts

  SPARRING_FN int pending_count() const { return games * seats * chains; }
  SPARRING_FN int index(int step, int row) const {
    return pending_count() + step * games * rows + row;
  }
  SPARRING_FN f32 gamma_in(int as_role) const { return gamma_of ? gamma_of[as_role] : gamma; }
  // Whether a decision in role `by` ends the pending transition of role `as_role`.
  SPARRING_FN bool ends(int as_role, int by) const {
    return ended_by ? ended_by[as_role] >> by & 1 : gamma_into[by] == 0;
  }
};

// The transition of every decision, by rollout index.
struct Links {
  u8* end;
  i32* next;       // index of the next decision; after a truncation, index into `final_value`
  f32* reward;     // reward until then
  f32* discount;   // of the next value
  f32* bootstrap;  // after a truncation, the value of the last position
};

// `into` is the discount of the last step; forced decisions in between are discounted too.
SPARRING_FN inline void finish_transition(const RolloutView& v, const Links& links,
                                          PendingTransition& pending, End end, i32 next,
                                          f32 bootstrap, f32 into) {
  f32 discount = into;
  for (int i = 1; i < pending.decisions; ++i) discount *= v.gamma_in(pending.role);
  links.end[pending.row] = end;
  links.next[pending.row] = next;
  links.reward[pending.row] = pending.reward;
  links.discount[pending.row] = discount;
  links.bootstrap[pending.row] = bootstrap;
  pending.row = -1;
}

// Links every decision of one game to the same seat's next one.
SPARRING_FN inline void link_game(const RolloutView& v, const Links& links, int game) {
  const int pending_each = v.seats * v.chains;
  PendingTransition* pending = v.pending + game * pending_each;
  for (int i = 0; i < pending_each; ++i) {
    const int index = game * pending_each + i;
    links.end[index] = kNotASample;
    links.next[index] = -1;
    if (pending[i].row >= 0) pending[i].row = index;
  }
  for (int step = 0; step < v.steps; ++step) {
    for (int r = 0; r < v.rows; ++r) {
      const int row = game * v.rows + r;
      const int at = step * v.games * v.rows + row;
      const int index = v.index(step, row);
      links.end[index] = kNotASample;
      links.next[index] = -1;
      if (v.policy[at] != v.learner || v.seat[at] < 0) continue;
      const int role = v.role[at];
      PendingTransition* of_seat = pending + v.seat[at] * v.chains;
      PendingTransition& current = of_seat[v.chains > 1 ? role : 0];
      // The decision may end the seat's transitions in other roles too.
      for (int chain = 0; chain < v.chains; ++chain) {
        PendingTransition& other = of_seat[chain];
        if (&other != &current && other.row >= 0 && v.ends(other.role, role))
          finish_transition(v, links, other, kToNext, index, 0, 0);
      }
      if (current.row >= 0)
        finish_transition(v, links, current, kToNext, index, 0, v.gamma_into[role]);
      current = {index, 1, role, 0};
    }
    const int game_index = step * v.games + game;
    for (int seat = 0; seat < v.seats; ++seat) {
      const int at = game_index * v.seats + seat;
      for (int chain = 0; chain < v.chains; ++chain) {
        PendingTransition& current = pending[seat * v.chains + chain];
        if (current.row < 0) continue;
        current.reward += v.reward[at * v.roles + current.role];
        if (v.skipped) current.decisions += v.skipped[at];
        if (v.terminated[game_index]) {
          finish_transition(v, links, current, kTerminated, -1, 0, v.gamma_in(current.role));
        } else if (v.truncated[game_index]) {
          // A value of one role is no value of another.
          const bool known = !v.final_role || v.final_role[at] == current.role;
          const f32 bootstrap = v.final_value[at];
          if (known && bootstrap == bootstrap)
            finish_transition(v, links, current, kTruncated, at, bootstrap,
                              v.gamma_in(current.role));
          else
            current.row = -1;
        }
      }
    }
  }
}

}  // namespace sparring
