// Turns the rows of a rollout into transitions: a decision, the same seat's next one, what was paid
// between the two, the discount, and how it ended. Every way of estimating returns reads these
// links; core/gae.hpp is one.
//
// A seat's next row may lie many steps later, and whatever it is paid in between belongs to its
// last decision. Decisions still open when the rollout ends are carried into the next one: their
// rows occupy the first `carried` places of the next rollout's arrays, one for every (game, seat,
// chain). A chain is a role when manager and worker are separate learners, otherwise there is one.
// A decision is paid by the weights of the role that made it.
#pragma once

#include "core/fn.hpp"

namespace sparring {

// A decision that waits for the same seat's next one.
struct Open {
  i32 row;        // place in the rollout, -1 if there is none
  i32 decisions;  // this one and the forced ones of its seat skipped since, in whatever role
  i32 role;       // in which it was made
  f32 reward;
};

enum End : u8 {
  kNotASample = 0,  // a bot's row, another policy's, still open, or dropped at a cut
  kToNext = 1,      // goes on at `next`
  kTerminated = 2,  // the rules ended the game: nothing follows
  kTruncated = 3,   // the game was cut: `tail` estimates what would have followed
};

// One rollout of `steps` steps, time-major, as it was played. Places are rows behind the carried
// ones: [carried + steps * games * rows].
struct RolloutView {
  int steps, games, rows, seats, roles;
  int chains;   // 1, or `roles` when every role is a learner of its own
  int learner;  // policy id whose rows are samples
  f32 gamma;
  const f32* gamma_into;  // [roles]: discount of a step into a decision of that role
  const f32* gamma_of;    // [roles]: discount of forced and last steps of a role; null: gamma
  const f32* lambda_of;   // [roles]: how far a role's estimates look; null: the same for all
  // [roles]: bit r: a decision in role r ends what this role did. Null: one of discount 0 does.
  const u32* ended_by;
  const i8* seat;          // [steps, games * rows]
  const i8* role;          // [steps, games * rows]
  const i16* policy;       // [steps, games * rows]
  const f32* reward;       // [steps, games, seats, roles], paid after the step's actions
  const u8* terminated;    // [steps, games]
  const u8* truncated;     // [steps, games]
  const f32* final_value;  // [steps, games, seats]: value after a cut, NaN if it is not known
  const i8* final_role;    // [steps, games, seats]: in which role that is worth so much; or null
  const u16* skipped;      // [steps, games, seats] or null
  Open* open;              // [games, seats, chains], kept between rollouts

  SPARRING_FN int carried() const { return games * seats * chains; }
  SPARRING_FN int place(int step, int row) const { return carried() + step * games * rows + row; }
  SPARRING_FN f32 gamma_in(int as) const { return gamma_of ? gamma_of[as] : gamma; }
  // Whether nothing that a role did counts behind a decision in another one.
  SPARRING_FN bool ends(int as, int by) const {
    return ended_by ? ended_by[as] >> by & 1 : gamma_into[by] == 0;
  }
};

// What follows every decision, by place.
struct Links {
  u8* end;
  i32* next;      // place of the next decision; after a cut, where in `final_value` its worth is
  f32* paid;      // reward until then
  f32* discount;  // of what follows
  f32* tail;      // after a cut, the estimate of what would have followed
};

// `into` is the discount of the last step; forced decisions in between count as decisions.
SPARRING_FN inline void close_open(const RolloutView& v, const Links& links, Open& open, End end,
                                   i32 next, f32 tail, f32 into) {
  f32 discount = into;
  for (int i = 1; i < open.decisions; ++i) discount *= v.gamma_in(open.role);
  links.end[open.row] = end;
  links.next[open.row] = next;
  links.paid[open.row] = open.reward;
  links.discount[open.row] = discount;
  links.tail[open.row] = tail;
  open.row = -1;
}

// Links every decision of one game with the same seat's next one.
SPARRING_FN inline void link_game(const RolloutView& v, const Links& links, int game) {
  const int open_count = v.seats * v.chains;
  Open* open = v.open + game * open_count;
  for (int i = 0; i < open_count; ++i) {
    const int place = game * open_count + i;
    links.end[place] = kNotASample;
    links.next[place] = -1;
    if (open[i].row >= 0) open[i].row = place;
  }
  for (int step = 0; step < v.steps; ++step) {
    for (int r = 0; r < v.rows; ++r) {
      const int row = game * v.rows + r;
      const int at = step * v.games * v.rows + row;
      const int place = v.place(step, row);
      links.end[place] = kNotASample;
      links.next[place] = -1;
      if (v.policy[at] != v.learner || v.seat[at] < 0) continue;
      const int role = v.role[at];
      Open* own = open + v.seat[at] * v.chains;
      Open& mine = own[v.chains > 1 ? role : 0];
      // What the seat did in other roles may end here too.
      for (int chain = 0; chain < v.chains; ++chain)
        if (own + chain != &mine && own[chain].row >= 0 && v.ends(own[chain].role, role))
          close_open(v, links, own[chain], kToNext, place, 0, 0);
      if (mine.row >= 0) close_open(v, links, mine, kToNext, place, 0, v.gamma_into[role]);
      mine = {place, 1, role, 0};
    }
    const int at_game = step * v.games + game;
    for (int seat = 0; seat < v.seats; ++seat) {
      const int at = at_game * v.seats + seat;
      for (int chain = 0; chain < v.chains; ++chain) {
        Open& mine = open[seat * v.chains + chain];
        if (mine.row < 0) continue;
        mine.reward += v.reward[at * v.roles + mine.role];
        if (v.skipped) mine.decisions += v.skipped[at];
        if (v.terminated[at_game]) {
          close_open(v, links, mine, kTerminated, -1, 0, v.gamma_in(mine.role));
        } else if (v.truncated[at_game]) {
          // The worth of a seat to one role says nothing about that to another.
          const bool known = !v.final_role || v.final_role[at] == mine.role;
          const f32 tail = v.final_value[at];
          if (known && tail == tail)
            close_open(v, links, mine, kTruncated, at, tail, v.gamma_in(mine.role));
          else
            mine.row = -1;
        }
      }
    }
  }
}

}  // namespace sparring
