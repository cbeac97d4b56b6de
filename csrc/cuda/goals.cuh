// Decisions seen in hindsight, on a GPU: what came of every decision's goal, and examples of what
// would have been right. NVRTC compiles this file behind a game's header, as it does
// cuda/pool.cuh.
#pragma once

#include "core/goals.hpp"
#include "cuda/stage.cuh"

namespace sparring {

SPARRING_FN inline int thread_index() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// One thread finds the records of one game's decisions.
extern "C" __global__ void find_records(SPARRING_VIEW RolloutView rollout, const u32* record,
                                        u32* of_place) {
  const int game = thread_index();
  if (game < rollout.games) record_of_game(rollout, record, of_place, game);
}

// Which decisions become examples, and what they are then.
struct ExamplesView {
  const SettingStorage<G>* settings;  // [members]
  const i32* list;                    // [members, stride]: places of samples
  i64 stride;
  const i32* counts;  // [members], how many
  const u32* of_place;
  const u8* obs;  // by place, as all that follows
  const Legal<G>* legal;
  const i32* action;
  const u64* seeds;  // [members]
  const i32* clock;  // the number of the update
  f32 share;
  int members, carried_each, rows_each;
  int most;         // examples of a member
  i32 first_place;  // of all examples
  u8* rows;         // [members, most, kRowBytes]
  i32* from;        // [members, most], the place
  i32* right;       // [members, most], the action
  i32* found;       // [members, most], places of the examples
  i32* found_counts;

  // The number that a place has in a run of its own.
  SPARRING_FN u32 local(int member, i64 place) const {
    const i64 carried = i64{members} * carried_each, each = rows_each, all = each * members;
    if (place < carried) return static_cast<u32>(place - i64{member} * carried_each);
    const i64 row = place - carried;
    return static_cast<u32>(carried_each + row / all * each + row % all - member * each);
  }

  // Rewrites a row that was copied, and what was done there. False: there is no example.
  SPARRING_FN bool see(int member, i64 place, u8* row, i32& does) const {
    const Legal<G>& mask = legal[place];
    const auto allows = [&](int which) { return mask.test(which); };
    return relabel<G>(settings[member].config, of_place[place], row, allows, does);
  }
};

extern "C" __global__ void mark_examples(SPARRING_VIEW ExamplesView v, i32* marks) {
  const int member = static_cast<int>(blockIdx.y);
  const i64 at = thread_index();
  if (at >= v.stride) return;
  i32& mark = marks[member * v.stride + at];
  mark = 0;
  if (at >= v.counts[member]) return;
  const i64 place = v.list[member * v.stride + at];
  if (!is_record(v.of_place[place]) || !drawn_for_hindsight(v.seeds[member], v.local(member, place),
                                                            static_cast<u32>(v.clock[0]), v.share))
    return;
  u8 row[kRowBytes];
  copy_bytes(row, v.obs + place * kRowBytes, kRowBytes);
  i32 does = v.action[place];
  mark = v.see(member, place, row, does);
}

// `ranks` are the running sums of the marks. Those that find no room are left out.
extern "C" __global__ void make_examples(SPARRING_VIEW ExamplesView v, const i32* ranks) {
  const int member = static_cast<int>(blockIdx.y);
  const i64 at = thread_index();
  if (at >= v.stride) return;
  const i64 i = member * v.stride + at;
  const i32 rank = ranks[i];
  if (at == v.stride - 1) v.found_counts[member] = least(rank, v.most);
  if (rank == (at ? ranks[i - 1] : 0) || rank > v.most) return;
  const i64 example = i64{member} * v.most + rank - 1, place = v.list[i];
  u8* row = v.rows + example * kRowBytes;
  copy_bytes(row, v.obs + place * kRowBytes, kRowBytes);
  i32 does = v.action[place];
  v.see(member, place, row, does);
  v.from[example] = static_cast<i32>(place);
  v.right[example] = does;
  v.found[example] = static_cast<i32>(v.first_place + example);
}

}  // namespace sparring
