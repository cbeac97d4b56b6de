// Replay buffers on the GPU, one ring for every member of a population; the same as
// `learn.replay.Replay` on the host. src/sparring/learn/fused/replay.py launches the kernels in the
// order in which they stand here, with `link` after the first.
#pragma once

#include "core/replay.hpp"
#include "cuda/rollout.cuh"

namespace sparring {

inline constexpr int kNumbers = max(kBox, 1);  // dimension of an action

// The rings of all members, one after the other.
struct RingsView {
  i64 capacity;  // of each
  int row_bytes;
  u8* obs;         // [members * capacity, row_bytes]
  u64* legal;      // [members * capacity, kWords]
  Action* action;  // [members * capacity, kNumbers], as the games received it
  f32* reward;
  f32* discount;
  i32* next;   // index in the member's ring; the decision's own index if none follows
  u8* end;     // see End
  i64* heads;  // [members], next serial number

  SPARRING_FN i64 index(i64 member, i64 serial) const {
    return member * capacity + serial % capacity;
  }
  // The ring of a member, with the columns that `n_step_return` reads.
  SPARRING_FN RingView of(i64 member) const {
    RingView ring{};
    const i64 first = member * capacity;
    ring.capacity = static_cast<int>(capacity);
    ring.next = next + first;
    ring.end = end + first;
    ring.reward = reward + first;
    ring.discount = discount + first;
    return ring;
  }
};

// Priorities as sum trees. Without `leaf` sampling is uniform.
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

// Last rows of truncated games, by index in `final_value`: [steps, games, seats].
struct LastRowsView {
  i32* stands_for;  // index of the last row that a seat bootstraps from; -1: none
  i32* row;         // index of that row in `cut_obs`
  i64* serial;      // of its entry in the ring
};

// A rollout that is stored in the rings. The items of a member are its rows, step by step, and then
// the last rows of its games by step, game and seat.
struct StoreView {
  int members, rows_each, steps, layers, rows_per_game, games_each, seats, pending_count;
  int learner;
  const i8* seat;     // [steps, rows]
  const i16* policy;  // [steps, rows]
  const u8* obs;      // by rollout index, as the next two
  const u64* legal;
  const Action* action;
  int squash;              // games receive tanh of the actions
  const u8* cut_obs;       // [layers, rows, row_bytes]
  const i32* cut_at;       // [layers, rows], see EndsView in cuda/pool.cuh
  const i32* cut_count;    // [games]
  const u64* final_legal;  // [steps, games, seats, kWords]
  f32* final_value;        // 0 where a last row is stored
  LastRowsView last;
  i64* serial;  // by rollout index: of its entry in the ring
  i32* marks;   // [members, items], running sums afterwards

  SPARRING_FN i64 rows() const { return i64{members} * rows_each; }
  SPARRING_FN i64 row_items() const { return i64{steps} * rows_each; }
  SPARRING_FN i64 finals_each() const { return i64{games_each} * seats; }
  SPARRING_FN i64 items() const { return row_items() + steps * finals_each(); }
  // The rollout index of an item that is a row.
  SPARRING_FN i64 index(i64 member, i64 item) const {
    return pending_count + item / rows_each * rows() + member * rows_each + item % rows_each;
  }
  // The index in `final_value` of an item that is a last row, and back.
  SPARRING_FN i64 final_of(i64 member, i64 item) const {
    const i64 final_item = item - row_items();
    return (final_item / finals_each() * members + member) * finals_each() +
           final_item % finals_each();
  }
  SPARRING_FN i64 mark_of(i64 final) const {
    const i64 step = final / (members * finals_each());
    const i64 member = final / finals_each() % members;
    return member * items() + row_items() + step * finals_each() + final % finals_each();
  }
};

// Notes the last rows of truncated games; `final_value` gets a number, so that links end there.
extern "C" __global__ void note_truncations(StoreView v) {
  const i64 thread = global_thread();
  if (thread >= v.layers * v.rows()) return;
  const i64 layer = thread / v.rows(), row = thread % v.rows();
  if (v.cut_count[row / v.rows_per_game] <= layer || v.cut_at[thread] < 0) return;
  const i32 where = v.cut_at[thread] >> 1;
  v.final_value[where] = 0;
  v.last.stands_for[where] = where;
  v.last.row[where] = static_cast<i32>(thread);
  if (!(v.cut_at[thread] & 1)) return;
  v.final_value[where ^ 1] = 0;
  v.last.stands_for[where ^ 1] = where;
}

// Marks the items that are stored: the learner's rows, and the last rows in which they end.
extern "C" __global__ void mark_rows(StoreView v) {
  const i64 thread = global_thread();
  if (thread >= v.members * v.row_items()) return;
  const i64 member = thread / v.row_items(), item = thread % v.row_items();
  const i64 decisions = v.index(member, item) - v.pending_count;
  v.marks[member * v.items() + item] = v.policy[decisions] == v.learner && v.seat[decisions] >= 0;
}

extern "C" __global__ void mark_last_rows(StoreView v, Links links, i64 indices) {
  const i64 index = global_thread();
  if (index >= indices || links.end[index] != kTruncated) return;
  const i32 where = v.last.stands_for[links.next[index]];
  if (where >= 0) v.marks[v.mark_of(where)] = 1;
}

// Copies marked items into the rings, one warp each. Their links are stored later.
extern "C" __global__ void store_rows(StoreView v, RingsView rings, PrioritiesView priorities) {
  const i64 thread = global_warp();
  if (thread >= v.members * v.items()) return;
  const i64 member = thread / v.items(), item = thread % v.items();
  const i64 before = item ? v.marks[thread - 1] : 0;
  if (v.marks[thread] == before) return;
  const i64 serial = rings.heads[member] + before, to = rings.index(member, serial);
  const bool is_last = item >= v.row_items();
  const i64 where = is_last ? v.final_of(member, item) : 0;
  const i64 from = is_last ? v.last.row[where] : v.index(member, item);
  const u8* obs = (is_last ? v.cut_obs : v.obs) + from * rings.row_bytes;
  const u64* legal = is_last ? v.final_legal + where * kWords : v.legal + from * kWords;
  const Bytes16* seen = reinterpret_cast<const Bytes16*>(obs);
  Bytes16* kept = reinterpret_cast<Bytes16*>(rings.obs + to * rings.row_bytes);
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

// Stores the links of complete decisions, one thread per rollout index. The heads are those after
// `store_rows`.
extern "C" __global__ void store_links(StoreView v, RingsView rings, PrioritiesView priorities,
                                       Links links, i64 indices) {
  const i64 index = global_thread();
  if (index >= indices || links.end[index] == kNotASample) return;
  const i64 member = index < v.pending_count ? index / (v.pending_count / v.members)
                                             : (index - v.pending_count) % v.rows() / v.rows_each;
  const i64 serial = v.serial[index];
  if (serial < 0 || serial < rings.heads[member] - rings.capacity) return;  // overwritten by now
  i64 next = -1;
  f32 discount = links.discount[index];
  if (links.end[index] == kToNext) {
    next = v.serial[links.next[index]];
  } else if (links.end[index] == kTruncated) {
    const i32 where = v.last.stands_for[links.next[index]];
    if (where >= 0) next = v.last.serial[where];
    if (where != links.next[index]) discount = -discount;
  }
  const i64 to = rings.index(member, serial);
  rings.end[to] = links.end[index];
  rings.reward[to] = links.reward[index];
  rings.next[to] = static_cast<i32>((next < 0 ? serial : next) % rings.capacity);
  rings.discount[to] = next < 0 ? 0.0f : discount;
  if (priorities.leaf) priorities.leaf[to] = priorities.highest[member];
}

// Sums one level of all trees, from the leaves upwards.
extern "C" __global__ void sum_level(PrioritiesView priorities, int members, int level) {
  const TreeLevel tree_nodes = tree_level(priorities.leaves, level);
  const i64 node = global_thread();
  if (node < i64{members} * tree_nodes.nodes)
    sum_node(priorities.of(node / tree_nodes.nodes), tree_nodes,
             static_cast<int>(node % tree_nodes.nodes));
}

// Moves the serial numbers of pending decisions to the front, for the next rollout.
extern "C" __global__ void move_pending_serials(const PendingTransition* pending, int pending_count,
                                                i64* serial) {
  const i64 to = global_thread();
  if (to < pending_count) serial[to] = pending[to].row >= 0 ? serial[pending[to].row] : -1;
}

// A batch of samples for every member.
struct DrawView {
  int members, batch, n_step;
  const u64* seeds;   // [members]
  const i32* number;  // [members], of the optimizer step
  const u8* stopped;  // [members], no optimizer step
  const i64* firsts;  // [members], oldest serial number that may be drawn
  i32* picked;        // [members, batch], rows of `obs`
  i32* after;         // [members, batch], rows of the next decisions
  f32* reward;
  f32* discount;
};

extern "C" __global__ void draw_samples(RingsView rings, PrioritiesView priorities, DrawView v) {
  const i64 thread = global_thread();
  if (thread >= i64{v.members} * v.batch) return;
  const i64 member = thread / v.batch, head = rings.heads[member];
  const RingView ring = rings.of(member);
  const i64 fill = min(head - v.firsts[member], rings.capacity);
  Rng rng = sample_rng(v.seeds[member], static_cast<int>(thread % v.batch),
                       static_cast<u32>(v.number[thread / v.batch]));
  const int index = priorities.leaf ? draw_leaf(priorities.of(member), rng)
                                    : pick(ring, static_cast<int>((head - fill) % rings.capacity),
                                           static_cast<int>(fill), rng);
  const NStepReturn after = n_step_return(ring, index, v.n_step);
  const i64 first = member * rings.capacity;
  v.picked[thread] = static_cast<i32>(first + index);
  v.after[thread] = static_cast<i32>(first + after.index);
  v.reward[thread] = after.reward;
  v.discount[thread] = after.discount;
}

// The lowest weight of every batch; `lowest` is preset to the highest number.
extern "C" __global__ void find_lowest(PrioritiesView priorities, DrawView v) {
  const i64 thread = global_thread();
  if (thread < i64{v.members} * v.batch)
    atomicMin(priorities.lowest + thread / v.batch, priorities.leaf[v.picked[thread]]);
}

// Importance weights of the samples, which correct for prioritized sampling. correction: [members].
extern "C" __global__ void compute_importance(PrioritiesView priorities, DrawView v,
                                              const f32* correction, f32* weight) {
  const i64 thread = global_thread();
  if (thread >= i64{v.members} * v.batch) return;
  weight[thread] = correction_of(priorities.leaf[v.picked[thread]],
                                 priorities.lowest[thread / v.batch], correction[thread / v.batch]);
}

// The weights of a batch are cleared, then set from the TD errors; a decision that was drawn twice
// gets the larger one.
extern "C" __global__ void clear_priorities(PrioritiesView priorities, DrawView v) {
  const i64 thread = global_thread();
  if (thread < i64{v.members} * v.batch && !v.stopped[thread / v.batch])
    priorities.leaf[v.picked[thread]] = 0;
}

extern "C" __global__ void update_priorities(PrioritiesView priorities, DrawView v,
                                             const f32* error, f32 exponent) {
  const i64 thread = global_thread();
  if (thread >= i64{v.members} * v.batch || v.stopped[thread / v.batch]) return;
  const u32 weight = weight_of(error[thread], exponent);
  atomicMax(priorities.leaf + v.picked[thread], weight);
  atomicMax(priorities.highest + thread / v.batch, weight);
}

// Draws the samples that are mirrored; `coins` in src/sparring/learn/transforms.py.
extern "C" __global__ void draw_mirrors(DrawView v, u8* mirrored) {
  const i64 thread = global_thread();
  if (thread >= i64{v.members} * v.batch) return;
  const u32 sample = static_cast<u32>(thread % v.batch);
  Rng rng(v.seeds[thread / v.batch], 0, static_cast<u32>(v.number[thread / v.batch]),
          Stream::kMirrors, sample / 32);
  mirrored[thread] = rng.next() >> sample % 32 & 1;
}

// Standard normal numbers by seed, sample and optimizer step: [members, batch, numbers].
extern "C" __global__ void draw_noise(const u64* seeds, const i32* number, int members, int batch,
                                      int numbers, f32* noise) {
  const i64 thread = global_thread();
  if (thread >= i64{members} * batch) return;
  Rng rng(seeds[thread / batch], static_cast<u32>(thread % batch),
          static_cast<u32>(number[thread / batch]), Stream::kReplay, 1u << 20);
  f32 radius = 0, turns = 0;
  for (int i = 0; i < numbers; ++i) {
    if (i % 2 == 0) {
      radius = sqrtf(-2 * logf((static_cast<f32>(rng.next()) + 1) * (1.0f / 4294967296.0f)));
      turns = 2 * static_cast<f32>(rng.next()) * (1.0f / 4294967296.0f);
    }
    noise[thread * numbers + i] = radius * (i % 2 ? sinpif(turns) : cospif(turns));
  }
}

}  // namespace sparring
