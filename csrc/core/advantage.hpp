// Turns the rows of a rollout into transitions of one seat, and transitions into advantages.
//
// A seat's next row may lie many steps later, and whatever it is paid in between belongs to its
// last decision. Decisions still open when the rollout ends are carried into the next one: their
// rows occupy the first `carried` places of the next rollout's arrays, one for every (game, seat,
// chain). A chain is a role when manager and worker are separate learners, otherwise there is one.
#pragma once

#include "core/fn.hpp"

namespace sparring {

// A decision that waits for the same seat's next one.
struct Open {
  i32 row;        // place in the rollout, -1 if there is none
  i32 decisions;  // this one and the forced ones skipped since
  f32 reward;
};

enum Link : u8 {
  kNotASample = 0,  // a bot's row, another policy's, still open, or dropped at a cut
  kToNext = 1,      // goes on at `next`
  kTerminated = 2,  // the rules ended the game: nothing follows
  kTruncated = 3,   // the game was cut: `tail` estimates what would have followed
};

// One rollout of `steps` steps, time-major. Rows are [carried + steps * games * rows].
struct RolloutView {
  int steps, games, rows, seats, roles;
  int chains;   // 1, or `roles` when every role is a learner of its own
  int learner;  // policy id whose rows are samples
  f32 gamma, lambda;
  const f32* gamma_into;   // [roles]: discount of a step into a decision of that role
  const i8* seat;          // [steps, games * rows]
  const i8* role;          // [steps, games * rows]
  const i16* policy;       // [steps, games * rows]
  const f32* value;        // [carried + steps * games * rows]
  const f32* reward;       // [steps, games, seats, roles], paid after the step's actions
  const u8* terminated;    // [steps, games]
  const u8* truncated;     // [steps, games]
  const f32* final_value;  // [steps, games, seats]: value after a cut, NaN if it is not known
  const u16* skipped;      // [steps, games, seats] or null
  Open* open;              // [games, seats, chains], kept between rollouts
  // Results, [carried + steps * games * rows].
  u8* link;
  i32* next;
  f32* paid;  // reward until the next decision
  f32* discount;
  f32* tail;
  f32* advantage;

  SPARRING_FN int carried() const { return games * seats * chains; }
  SPARRING_FN int place(int step, int row) const { return carried() + step * games * rows + row; }
};

// `into` is the discount of the last step; forced decisions in between count as decisions.
SPARRING_FN inline void close_open(const RolloutView& v, Open& open, Link link, i32 next, f32 tail,
                                   f32 into) {
  f32 discount = into;
  for (int i = 1; i < open.decisions; ++i) discount *= v.gamma;
  v.link[open.row] = link;
  v.next[open.row] = next;
  v.paid[open.row] = open.reward;
  v.discount[open.row] = discount;
  v.tail[open.row] = tail;
  open.row = -1;
}

// Links every decision of one game with the same seat's next one.
SPARRING_FN inline void link_game(const RolloutView& v, int game) {
  const int open_count = v.seats * v.chains;
  Open* open = v.open + game * open_count;
  for (int i = 0; i < open_count; ++i) {
    const int place = game * open_count + i;
    v.link[place] = kNotASample;
    v.next[place] = -1;
    if (open[i].row >= 0) open[i].row = place;
  }
  for (int step = 0; step < v.steps; ++step) {
    for (int r = 0; r < v.rows; ++r) {
      const int row = game * v.rows + r;
      const int at = step * v.games * v.rows + row;
      const int place = v.place(step, row);
      v.link[place] = kNotASample;
      v.next[place] = -1;
      if (v.policy[at] != v.learner || v.seat[at] < 0) continue;
      Open& mine = open[v.seat[at] * v.chains + (v.chains > 1 ? v.role[at] : 0)];
      if (mine.row >= 0)
        close_open(v, mine, kToNext, place, v.value[place], v.gamma_into[v.role[at]]);
      mine = {place, 1, 0};
    }
    const int table = step * v.games + game;
    for (int seat = 0; seat < v.seats; ++seat) {
      for (int chain = 0; chain < v.chains; ++chain) {
        Open& mine = open[seat * v.chains + chain];
        if (mine.row < 0) continue;
        mine.reward += v.reward[(table * v.seats + seat) * v.roles + chain];
        if (v.skipped) mine.decisions += v.skipped[table * v.seats + seat];
        if (v.terminated[table]) {
          close_open(v, mine, kTerminated, -1, 0, v.gamma);
        } else if (v.truncated[table]) {
          const f32 tail = v.final_value[table * v.seats + seat];
          if (tail == tail)
            close_open(v, mine, kTruncated, -1, tail, v.gamma);
          else
            mine.row = -1;
        }
      }
    }
  }
}

// Generalised advantage estimation along the links of one game, last decision first. A decision
// whose successor is not a sample of this rollout ends the sum there.
SPARRING_FN inline void advantages_of_game(const RolloutView& v, int game) {
  const auto settle = [&](int place) {
    if (v.link[place] == kNotASample) {
      v.advantage[place] = 0;
      return;
    }
    f32 advantage = v.paid[place] - v.value[place];
    if (v.link[place] != kTerminated) advantage += v.discount[place] * v.tail[place];
    if (v.link[place] == kToNext && v.link[v.next[place]] != kNotASample)
      advantage += v.discount[place] * v.lambda * v.advantage[v.next[place]];
    v.advantage[place] = advantage;
  };
  for (int step = v.steps - 1; step >= 0; --step)
    for (int r = v.rows - 1; r >= 0; --r) settle(v.place(step, game * v.rows + r));
  const int open_count = v.seats * v.chains;
  for (int i = 0; i < open_count; ++i) settle(game * open_count + i);
}

}  // namespace sparring
