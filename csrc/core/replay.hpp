// Replay: a ring of decisions, each stored once with its observation; what follows a decision is
// the place of another one. Functions are for one row or one sample; who calls them loops.
//
// Places are serial numbers modulo the capacity. What follows a decision always has a higher serial
// number, so that it is there as long as the decision is. The last row of a game that was cut is
// an entry too. Entries whose `end` is 0 are not sampled: decisions that are still open or were
// dropped, and last rows.
#pragma once

#include "core/bits.hpp"
#include "core/power.hpp"
#include "core/sum_tree.hpp"
#include "core/transitions.hpp"

namespace sparring {

struct RingView {
  int capacity;
  int row_bytes;
  int actions;       // 0 for continuous ones
  int box;           // numbers of a continuous action, or 0
  int action_bytes;  // 2 or 4, or 4 * box
  u8* obs;           // [capacity, row_bytes]
  u64* mask;         // [capacity, mask_words], the first action is the lowest bit
  u8* action;        // [capacity, action_bytes]
  i32* next;         // [capacity]: the place of what follows; its own where nothing does
  u8* end;           // [capacity], see End
  f32* paid;         // [capacity]
  f32* discount;     // [capacity]: 0 where nothing follows, negative where it is the other seat's

  SPARRING_FN int mask_words() const { return (actions + 63) / 64; }
};

// A batch, by sample.
struct SamplesView {
  u8* obs;       // [batch, row_bytes]
  u8* mask;      // [batch, actions]
  i32* action;   // [batch], or null
  f32* numbers;  // [batch, box], or null
  f32* paid;
  f32* discount;
  u8* next_obs;
  u8* next_mask;
  f32* weight;
  i64* place;
};

// Storing

// 64 actions of a mask from `first` on, as bits.
SPARRING_FN inline u64 pack_mask(const u8* mask, int first, int actions) {
  const int end = least(first + 64, actions);
  u64 word = 0;
  int i = first;
  for (; i + 8 <= end; i += 8) {
    const u64 eight = load8(mask + i);
    const u64 set = (((eight & 0x7f7f7f7f7f7f7f7full) + 0x7f7f7f7f7f7f7f7full) | eight) >> 7 &
                    0x0101010101010101ull;
    word |= (set * 0x0102040810204080ull >> 56) << (i - first);
  }
  for (; i < end; ++i) word |= u64{mask[i] != 0} << (i - first);
  return word;
}

SPARRING_FN inline void unpack_mask(const u64* words, int actions, u8* out) {
  int i = 0;
  for (; i + 8 <= actions; i += 8)
    store8(out + i, spread8(static_cast<u32>(words[i >> 6] >> (i & 63))));
  for (; i < actions; ++i) out[i] = static_cast<u8>(words[i >> 6] >> (i & 63) & 1);
}

// What followed a decision. next: a place, -1 where nothing does.
SPARRING_FN inline void store_link(const RingView& ring, int place, u8 end, int next, f32 paid,
                                   f32 discount) {
  ring.end[place] = end;
  ring.next[place] = next < 0 ? place : next;
  ring.paid[place] = paid;
  ring.discount[place] = next < 0 ? 0 : discount;
}

// A row that was seen; nobody has said yet what was done and what followed.
SPARRING_FN inline void store_row(const RingView& ring, int place, const u8* obs, const u8* mask) {
  copy_bytes(ring.obs + i64{place} * ring.row_bytes, obs, ring.row_bytes);
  u64* words = ring.mask + i64{place} * ring.mask_words();
  for (int w = 0; w < ring.mask_words(); ++w) words[w] = pack_mask(mask, 64 * w, ring.actions);
  zero_bytes(ring.action + i64{place} * ring.action_bytes, ring.action_bytes);
  store_link(ring, place, kNotASample, -1, 0, 0);
}

SPARRING_FN inline void store_action(const RingView& ring, int place, i32 action) {
  u8* to = ring.action + i64{place} * ring.action_bytes;
  const i16 small = static_cast<i16>(action);
  if (ring.action_bytes == 2)
    copy_bytes(to, &small, 2);
  else
    copy_bytes(to, &action, 4);
}

SPARRING_FN inline void store_numbers(const RingView& ring, int place, const f32* numbers) {
  copy_bytes(ring.action + i64{place} * ring.action_bytes, numbers, ring.action_bytes);
}

// Sampling

SPARRING_FN inline Rng sample_rng(u64 seed, int sample, u32 number) {
  return Rng(seed, static_cast<u32>(sample), number, Stream::kReplay);
}

// Uniform among what can be sampled: any of the `fill` places from `first` on, drawn until one can.
// There must be one; after many draws it is the next one behind the last that was drawn.
SPARRING_FN inline int pick(const RingView& ring, int first, int fill, Rng& rng) {
  constexpr int kDraws = 64;
  int step = 0;
  for (int i = 0; i < kDraws; ++i) {
    step = rng.below(fill);
    const int place = wrap(first - ring.capacity + step, ring.capacity);
    if (ring.end[place] != kNotASample) return place;
  }
  for (;;) {
    const int place = wrap(first - ring.capacity + step, ring.capacity);
    if (ring.end[place] != kNotASample) return place;
    step = wrap(step + 1, fill);
  }
}

struct Followed {
  f32 paid;      // discounted
  f32 discount;  // of what follows; 0 if nothing does
  int place;     // of what follows, or of the last decision if nothing does
};

// Up to `n` decisions of a seat's chain from `place` on: what they were paid, and what follows.
SPARRING_FN inline Followed follow(const RingView& ring, int place, int n) {
  Followed found{0, 1, place};
  for (int i = 0; i < n; ++i) {
    found.paid += found.discount * ring.paid[found.place];
    found.discount *= ring.discount[found.place];
    if (found.discount == 0) break;
    found.place = ring.next[found.place];
    if (ring.end[found.place] == kNotASample) break;
  }
  return found;
}

// Everything of sample `i` but its weight. after: what `follow` found.
SPARRING_FN inline void take_sample(const RingView& ring, const SamplesView& out, int i, int place,
                                    const Followed& after) {
  const i64 at = i, bytes = ring.row_bytes, words = ring.mask_words();
  copy_bytes(out.obs + at * bytes, ring.obs + place * bytes, ring.row_bytes);
  copy_bytes(out.next_obs + at * bytes, ring.obs + after.place * bytes, ring.row_bytes);
  unpack_mask(ring.mask + place * words, ring.actions, out.mask + at * ring.actions);
  unpack_mask(ring.mask + after.place * words, ring.actions, out.next_mask + at * ring.actions);
  const u8* action = ring.action + i64{place} * ring.action_bytes;
  if (ring.box) {
    copy_bytes(out.numbers + at * ring.box, action, ring.action_bytes);
  } else if (ring.action_bytes == 2) {
    i16 small;
    copy_bytes(&small, action, 2);
    out.action[i] = small;
  } else {
    copy_bytes(out.action + i, action, 4);
  }
  out.paid[i] = after.paid;
  out.discount[i] = after.discount;
  out.place[i] = place;
}

// Priorities

// Weights of decisions have this for 1; those that were not tried yet get the highest so far.
inline constexpr u32 kOne = 1u << 16;

// The weight of a decision whose estimate was wrong by so much: its size to the power of
// `exponent`. At least 1, so that none is forgotten.
SPARRING_FN inline u32 weight_of(f32 error, f32 exponent) {
  const f64 size = error < 0 ? -static_cast<f64>(error) : static_cast<f64>(error);
  const f64 weight = power_of(size, exponent) * kOne + 0.5;
  if (!(weight >= 1)) return 1;
  return weight >= 4294967295.0 ? 4294967295u : static_cast<u32>(weight);
}

// How much a sample counts, to take the preference back; `min_weight` is that of the batch.
SPARRING_FN inline f32 correction_of(u32 weight, u32 min_weight, f32 correction) {
  const f64 share = static_cast<f64>(min_weight) / static_cast<f64>(weight);
  return static_cast<f32>(power_of(share, correction));
}

}  // namespace sparring
