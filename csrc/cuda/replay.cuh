// Rings of decisions on the GPU: what `learn.replay.Replay` does on the host, for every member of a
// population. src/sparring/learn/fused/replay.py launches the kernels in the order in which they
// stand here, and `link` behind the first.
#pragma once

#include "core/replay.hpp"
#include "cuda/rollout.cuh"

namespace sparring {

inline constexpr int kNumbers = most(kBox, 1);  // of an action

// The rings of all members, one behind the other.
struct RingsView {
  i64 capacity;  // of each
  int row_bytes;
  u8* obs;         // [members * capacity, row_bytes]
  u64* legal;      // [members * capacity, kWords]
  Action* action;  // [members * capacity, kNumbers], as the games took it
  f32* paid;
  f32* discount;
  i32* next;   // place in the member's ring, the own one if nothing follows
  u8* end;     // End; what can be sampled is not kNotASample
  i64* heads;  // [members], serial numbers that come next

  SPARRING_FN i64 place(i64 member, i64 serial) const {
    return member * capacity + serial % capacity;
  }
  // A member's own, without what nobody has to follow.
  SPARRING_FN RingView of(i64 member) const {
    RingView ring{};
    const i64 first = member * capacity;
    ring.capacity = static_cast<int>(capacity);
    ring.next = next + first;
    ring.end = end + first;
    ring.paid = paid + first;
    ring.discount = discount + first;
    return ring;
  }
};

// How much every place is preferred, as sum trees. Without `leaf` all are alike.
struct PrioritiesView {
  int leaves, sums_each;  // of each member
  u32* leaf;              // [members, leaves]
  u64* sums;              // [members, sums_each]
  u32* highest;           // [members], of all weights so far
  u32* lowest;            // [members], of the batch

  SPARRING_FN SumTree of(i64 member) const {
    return {leaves, leaf + member * leaves, sums + member * sums_each};
  }
};

// Where games were cut, by place in `final_value`: [steps, games, seats].
struct LastRowsView {
  i32* stands_for;  // whose last row stands for what a seat would have seen; -1: nobody's
  i32* row;         // where that row lies in the layers of cuts
  i64* serial;      // of what was remembered of it
};

// A rollout that is to be remembered. Items of a member are its rows, step by step, and behind them
// the last rows of its games by step, game and seat.
struct RememberView {
  int members, rows_each, steps, layers, rows_per_game, games_each, seats, carried;
  int learner;
  const i8* seat;     // [steps, rows]
  const i16* policy;  // [steps, rows]
  const u8* obs;      // by place, as the two behind it
  const u64* legal;
  const Action* action;
  int squash;              // actions pass through tanh on their way to the games
  const u8* cut_obs;       // [layers, rows, row_bytes]
  const i32* cut_at;       // [layers, rows], see EndsView in cuda/pool.cuh
  const i32* cut_count;    // [games]
  const u64* final_legal;  // [steps, games, seats, kWords]
  f32* final_value;        // 0 where a last row stands for what would have followed
  LastRowsView last;
  i64* serial;  // by place: of what was remembered of it
  i32* marks;   // [members, items], running sums afterwards

  SPARRING_FN i64 rows() const { return i64{members} * rows_each; }
  SPARRING_FN i64 own_rows() const { return i64{steps} * rows_each; }
  SPARRING_FN i64 finals_each() const { return i64{games_each} * seats; }
  SPARRING_FN i64 items() const { return own_rows() + steps * finals_each(); }
  // The place of an item that is a row.
  SPARRING_FN i64 place(i64 member, i64 item) const {
    return carried + item / rows_each * rows() + member * rows_each + item % rows_each;
  }
  // The place in `final_value` of an item that is a last row, and back.
  SPARRING_FN i64 final_of(i64 member, i64 item) const {
    const i64 at = item - own_rows();
    return (at / finals_each() * members + member) * finals_each() + at % finals_each();
  }
  SPARRING_FN i64 mark_of(i64 final) const {
    const i64 step = final / (members * finals_each());
    const i64 member = final / finals_each() % members;
    return member * items() + own_rows() + step * finals_each() + final % finals_each();
  }
};

// Notes whose last row stands for what; cut games get a worth that makes links end there.
extern "C" __global__ void note_cuts(RememberView v) {
  const i64 at = global_thread();
  if (at >= v.layers * v.rows()) return;
  const i64 layer = at / v.rows(), row = at % v.rows();
  if (v.cut_count[row / v.rows_per_game] <= layer || v.cut_at[at] < 0) return;
  const i32 where = v.cut_at[at] >> 1;
  v.final_value[where] = 0;
  v.last.stands_for[where] = where;
  v.last.row[where] = static_cast<i32>(at);
  if (!(v.cut_at[at] & 1)) return;
  v.final_value[where ^ 1] = 0;
  v.last.stands_for[where ^ 1] = where;
}

// Which items are remembered: the learner's rows, and last rows that one of them ends in.
extern "C" __global__ void mark_rows(RememberView v) {
  const i64 at = global_thread();
  if (at >= v.members * v.own_rows()) return;
  const i64 member = at / v.own_rows(), item = at % v.own_rows();
  const i64 asked = v.place(member, item) - v.carried;
  v.marks[member * v.items() + item] = v.policy[asked] == v.learner && v.seat[asked] >= 0;
}

extern "C" __global__ void mark_last_rows(RememberView v, Links links, i64 places) {
  const i64 place = global_thread();
  if (place >= places || links.end[place] != kTruncated) return;
  const i32 where = v.last.stands_for[links.next[place]];
  if (where >= 0) v.marks[v.mark_of(where)] = 1;
}

// Copies marked items into the rings, one warp each. What follows them is not known yet.
extern "C" __global__ void remember(RememberView v, RingsView rings, PrioritiesView priorities) {
  const i64 at = global_warp();
  if (at >= v.members * v.items()) return;
  const i64 member = at / v.items(), item = at % v.items();
  const i64 before = item ? v.marks[at - 1] : 0;
  if (v.marks[at] == before) return;
  const i64 serial = rings.heads[member] + before, to = rings.place(member, serial);
  const bool is_last = item >= v.own_rows();
  const i64 where = is_last ? v.final_of(member, item) : 0;
  const i64 from = is_last ? v.last.row[where] : v.place(member, item);
  const u8* obs = (is_last ? v.cut_obs : v.obs) + from * rings.row_bytes;
  const u64* legal = is_last ? v.final_legal + where * kWords : v.legal + from * kWords;
  const Sixteen* seen = reinterpret_cast<const Sixteen*>(obs);
  Sixteen* kept = reinterpret_cast<Sixteen*>(rings.obs + to * rings.row_bytes);
  for (int i = lane(); i < rings.row_bytes / 16; i += kWarp) kept[i] = seen[i];
  for (int i = lane(); i < kWords; i += kWarp) rings.legal[to * kWords + i] = legal[i];
  for (int i = lane(); i < kNumbers && !is_last; i += kWarp) {
    const Action given = v.action[from * kNumbers + i];
#if SPARRING_BOX
    rings.action[to * kNumbers + i] = v.squash ? tanhf(given) : fminf(fmaxf(given, -1.0f), 1.0f);
#else
    rings.action[to * kNumbers + i] = given;
#endif
  }
  if (lane() != 0) return;
  rings.end[to] = kNotASample;
  if (priorities.leaf) priorities.leaf[to] = 0;
  (is_last ? v.last.serial[where] : v.serial[from]) = serial;
}

// Writes what followed decisions that are complete by now, one thread per place of the rollout.
// The heads are those behind it.
extern "C" __global__ void settle(RememberView v, RingsView rings, PrioritiesView priorities,
                                  Links links, i64 places) {
  const i64 place = global_thread();
  if (place >= places || links.end[place] == kNotASample) return;
  const i64 member = place < v.carried ? place / (v.carried / v.members)
                                       : (place - v.carried) % v.rows() / v.rows_each;
  const i64 serial = v.serial[place];
  if (serial < 0 || serial < rings.heads[member] - rings.capacity) return;  // overwritten by now
  i64 next = -1;
  f32 discount = links.discount[place];
  if (links.end[place] == kToNext) {
    next = v.serial[links.next[place]];
  } else if (links.end[place] == kTruncated) {
    const i32 where = v.last.stands_for[links.next[place]];
    if (where >= 0) next = v.last.serial[where];
    if (where != links.next[place]) discount = -discount;
  }
  const i64 to = rings.place(member, serial);
  rings.end[to] = links.end[place];
  rings.paid[to] = links.paid[place];
  rings.next[to] = static_cast<i32>((next < 0 ? serial : next) % rings.capacity);
  rings.discount[to] = next < 0 ? 0.0f : discount;
  if (priorities.leaf) priorities.leaf[to] = priorities.highest[member];
}

// One level of all trees, from the leaves upwards.
extern "C" __global__ void sum_level(PrioritiesView priorities, int members, int level) {
  const TreeLevel at = tree_level(priorities.leaves, level);
  const i64 node = global_thread();
  if (node < i64{members} * at.nodes)
    sum_node(priorities.of(node / at.nodes), at, static_cast<int>(node % at.nodes));
}

// Open decisions keep their serial numbers at the front, where the next rollout finds them.
extern "C" __global__ void carry_serials(const Open* open, int carried, i64* serial) {
  const i64 to = global_thread();
  if (to < carried) serial[to] = open[to].row >= 0 ? serial[open[to].row] : -1;
}

// A batch of every member.
struct DrawView {
  int members, batch, n_step;
  const u64* seeds;   // [members]
  const i32* number;  // [members], of the optimizer step
  const u8* stopped;  // [members], who makes none
  const i64* firsts;  // [members], the oldest serial numbers that count
  i32* picked;        // [members, batch], rows of `obs`
  i32* after;         // of what follows
  f32* paid;
  f32* discount;
};

extern "C" __global__ void draw_samples(RingsView rings, PrioritiesView priorities, DrawView v) {
  const i64 at = global_thread();
  if (at >= i64{v.members} * v.batch) return;
  const i64 member = at / v.batch, head = rings.heads[member];
  const RingView ring = rings.of(member);
  const i64 fill = least(head - v.firsts[member], rings.capacity);
  Rng rng = sample_rng(v.seeds[member], static_cast<int>(at % v.batch),
                       static_cast<u32>(v.number[at / v.batch]));
  const int place = priorities.leaf ? draw_leaf(priorities.of(member), rng)
                                    : pick(ring, static_cast<int>((head - fill) % rings.capacity),
                                           static_cast<int>(fill), rng);
  const Followed after = follow(ring, place, v.n_step);
  const i64 first = member * rings.capacity;
  v.picked[at] = static_cast<i32>(first + place);
  v.after[at] = static_cast<i32>(first + after.place);
  v.paid[at] = after.paid;
  v.discount[at] = after.discount;
}

// The lowest weight of every batch; `lowest` is the highest number before.
extern "C" __global__ void find_lowest(PrioritiesView priorities, DrawView v) {
  const i64 at = global_thread();
  if (at < i64{v.members} * v.batch)
    atomicMin(priorities.lowest + at / v.batch, priorities.leaf[v.picked[at]]);
}

// Takes the preference back: how much every sample counts. correction: [members].
extern "C" __global__ void correct(PrioritiesView priorities, DrawView v, const f32* correction,
                                   f32* weight) {
  const i64 at = global_thread();
  if (at >= i64{v.members} * v.batch) return;
  weight[at] = correction_of(priorities.leaf[v.picked[at]], priorities.lowest[at / v.batch],
                             correction[at / v.batch]);
}

// Decisions of a batch lose their weights and get those of their errors; of a decision that was
// drawn twice, the larger one.
extern "C" __global__ void forget_weights(PrioritiesView priorities, DrawView v) {
  const i64 at = global_thread();
  if (at < i64{v.members} * v.batch && !v.stopped[at / v.batch]) priorities.leaf[v.picked[at]] = 0;
}

extern "C" __global__ void weigh(PrioritiesView priorities, DrawView v, const f32* error,
                                 f32 exponent) {
  const i64 at = global_thread();
  if (at >= i64{v.members} * v.batch || v.stopped[at / v.batch]) return;
  const u32 weight = weight_of(error[at], exponent);
  atomicMax(priorities.leaf + v.picked[at], weight);
  atomicMax(priorities.highest + at / v.batch, weight);
}

// Who is learned from in the mirror; `coins` in src/sparring/learn/transforms.py.
extern "C" __global__ void throw_coins(DrawView v, u8* coin) {
  const i64 at = global_thread();
  if (at >= i64{v.members} * v.batch) return;
  const u32 sample = static_cast<u32>(at % v.batch);
  Rng rng(v.seeds[at / v.batch], 0, static_cast<u32>(v.number[at / v.batch]), Stream::kMirrors,
          sample / 32);
  coin[at] = rng.next() >> sample % 32 & 1;
}

// Standard normal numbers by seed, sample and optimizer step: [members, batch, numbers].
extern "C" __global__ void draw_noise(const u64* seeds, const i32* number, int members, int batch,
                                      int numbers, f32* noise) {
  const i64 at = global_thread();
  if (at >= i64{members} * batch) return;
  Rng rng(seeds[at / batch], static_cast<u32>(at % batch), static_cast<u32>(number[at / batch]),
          Stream::kReplay, 1u << 20);
  f32 radius = 0, turns = 0;
  for (int i = 0; i < numbers; ++i) {
    if (i % 2 == 0) {
      radius = sqrtf(-2 * logf((static_cast<f32>(rng.next()) + 1) * (1.0f / 4294967296.0f)));
      turns = 2 * static_cast<f32>(rng.next()) * (1.0f / 4294967296.0f);
    }
    noise[at * numbers + i] = radius * (i % 2 ? sinpif(turns) : cospif(turns));
  }
}

}  // namespace sparring
