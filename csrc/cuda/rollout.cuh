// What a learner does with a rollout whatever it learns: the worth of cut games, transitions and
// advantages, the list of samples, and decisions that are carried into the next rollout.
#pragma once

#include "core/gae.hpp"
#include "cuda/act.cuh"

namespace sparring {

// Where games were cut for the `number`th time in a rollout, and where their worth goes.
struct CutsView {
  const i32* at;     // [rows], see EndsView in cuda/pool.cuh
  const i32* count;  // [games]
  int number, rows, rows_each, rows_per_game;
  const f32* value_scale;  // [members], of `rows_each` rows
  f32* final_value;
  const i8* role;  // [rows], or null: one network decides in all roles
  int only;        // the role whose worth this is, if it is one
  i8* final_role;  // where that is noted, or null
};

// The worth of games that were cut, where the step kernel noted them.
extern "C" __global__ void place_cuts(HeadsView heads, CutsView cuts) {
  const i64 at = global_thread();
  if (at >= cuts.rows || cuts.count[at / cuts.rows_per_game] <= cuts.number || cuts.at[at] < 0)
    return;
  if (cuts.role && cuts.role[at] != cuts.only) return;
  const int member = static_cast<int>(at / cuts.rows_each);
  const f32 value = heads.value_of(at, member) * cuts.value_scale[member];
  const i32 where = cuts.at[at] >> 1;
  cuts.final_value[where] = value;
  if (cuts.final_role) cuts.final_role[where] = static_cast<i8>(cuts.only);
  if (!(cuts.at[at] & 1)) return;
  cuts.final_value[where ^ 1] = -value;
  if (cuts.final_role) cuts.final_role[where ^ 1] = static_cast<i8>(cuts.only);
}

// How the members of a population, `each` games apiece, discount and estimate.
struct EstimateView {
  const f32* gamma;       // one of every `apart` numbers is a member's
  const f32* gae_lambda;  // as gamma
  int apart;
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
  RolloutView own = rollout;
  own.gamma = estimate.gamma[i64{member} * estimate.apart];
  own.gamma_into = estimate.gamma_into + member * rollout.roles;
  if (estimate.gamma_of) own.gamma_of = estimate.gamma_of + member * rollout.roles;
  if (estimate.lambda_of) own.lambda_of = estimate.lambda_of + member * rollout.roles;
  if (estimate.ended_by) own.ended_by = estimate.ended_by + member * rollout.roles;
  return own;
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
  const RolloutView own = discounted(rollout, estimate, game);
  link_game(own, links, game);
  gae_of_game(own, links, estimate.value, estimate.gae_lambda[i64{member} * estimate.apart],
              estimate.advantage, game);
}

// Places of a rollout, counted member by member: carried decisions first, then step by step.
struct PlacesView {
  int members, carried_each, rows_each, steps;
  const u8* end;   // by place, what follows the decision
  const i8* role;  // [steps, rows], or null: the places of all roles
  int only;        // the role whose places are samples, if it is one
  int chains;      // carried decisions of a seat come chain by chain

  SPARRING_FN i64 count() const { return carried_each + i64{steps} * rows_each; }
  SPARRING_FN i64 place(int member, i64 at) const {
    if (at < carried_each) return i64{member} * carried_each + at;
    at -= carried_each;
    const i64 step = at / rows_each;
    return i64{members} * carried_each + (step * members + member) * rows_each + at % rows_each;
  }
  SPARRING_FN bool is_sample(i64 at) const {
    if (end[at] == kNotASample) return false;
    if (!role) return true;
    const i64 carried = i64{members} * carried_each;
    return (at < carried ? static_cast<int>(at % chains) : role[at - carried]) == only;
  }
};

// The places that can be learned from, member by member.
struct SampleListView {
  i32* list;  // [members, stride]
  i64 stride;
  i32* counts;  // [members]
};

extern "C" __global__ void mark_samples(PlacesView places, i32* marks) {
  const i64 at = global_thread();
  if (at >= places.members * places.count()) return;
  const int member = static_cast<int>(at / places.count());
  marks[at] = places.is_sample(places.place(member, at % places.count()));
}

// `ranks` are the running sums of the marks.
extern "C" __global__ void list_samples(PlacesView places, const i32* ranks,
                                        SampleListView samples) {
  const i64 at = global_thread();
  if (at >= places.members * places.count()) return;
  const int member = static_cast<int>(at / places.count());
  const i64 place = places.place(member, at % places.count());
  if (places.is_sample(place))
    samples.list[member * samples.stride + ranks[at] - 1] = static_cast<i32>(place);
  if ((at + 1) % places.count() == 0) samples.counts[member] = ranks[at];
}

// What is kept of every row, by place; the first `carried` places are for decisions that wait for
// their seat's next one.
struct CarriedView {
  const Open* open;
  int carried, row_bytes;
  u8* obs;
  u64* legal;
  Action* action;
  f32* log_prob;
  f32* value;
};

// Moves the rows of decisions that are still open to the front, one warp each.
extern "C" __global__ void carry(CarriedView v) {
  const i64 to = global_warp();
  if (to >= v.carried || v.open[to].row < 0 || v.open[to].row == to) return;
  const i64 from = v.open[to].row;
  const Sixteen* row = reinterpret_cast<const Sixteen*>(v.obs + from * v.row_bytes);
  Sixteen* kept = reinterpret_cast<Sixteen*>(v.obs + to * v.row_bytes);
  for (int i = lane(); i < v.row_bytes / 16; i += kWarp) kept[i] = row[i];
  for (int i = lane(); i < kWords; i += kWarp)
    v.legal[to * kWords + i] = v.legal[from * kWords + i];
  constexpr int kNumbers = most(kBox, 1);
  for (int i = lane(); i < kNumbers; i += kWarp)
    v.action[to * kNumbers + i] = v.action[from * kNumbers + i];
  if (lane() != 0) return;
  v.log_prob[to] = v.log_prob[from];
  v.value[to] = v.value[from];
}

}  // namespace sparring
