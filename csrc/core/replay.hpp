// Replay buffer: a ring of decisions, each stored once with its observation and the index of the
// seat's next decision. Functions handle one row or one sample; callers loop.
//
// An index is a serial number modulo the capacity. The next decision has a higher serial number, so
// that it stays in the ring as long as the decision does. The last row of a truncated game is an
// entry too. Entries whose `end` is kNotASample are not sampled: pending and dropped decisions, and
// last rows.
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
  int box;           // dimension of a continuous action, or 0
  int action_bytes;  // 2 or 4, or 4 * box
  u8* obs;           // [capacity, row_bytes]
  u64* mask;         // [capacity, mask_words], the first action is the lowest bit
  u8* action;        // [capacity, action_bytes]
  i32* next;         // [capacity]: index of the next decision; its own index where there is none
  u8* end;           // [capacity], see End
  f32* reward;       // [capacity]
  f32* discount;  // [capacity]: 0 where no decision follows, negative where the other seat's does

  SPARRING_FN int mask_words() const { return (actions + 63) / 64; }
};

// A batch of samples.
struct SamplesView {
  u8* obs;       // [batch, row_bytes]
  u8* mask;      // [batch, actions]
  i32* action;   // [batch], or null
  f32* numbers;  // [batch, box], or null
  f32* reward;
  f32* discount;
  u8* next_obs;
  u8* next_mask;
  f32* weight;
  i64* index;
};

// Storing

// 64 actions of a mask from `first` on, as bits.
SPARRING_FN inline u64 pack_mask(const u8* mask, int first, int actions) {
  const int end = min(first + 64, actions);
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

// Stores the transition of a decision. next: the index of the next decision, -1 if there is none.
SPARRING_FN inline void store_link(const RingView& ring, int index, u8 end, int next, f32 reward,
                                   f32 discount) {
  ring.end[index] = end;
  ring.next[index] = next < 0 ? index : next;
  ring.reward[index] = reward;
  ring.discount[index] = next < 0 ? 0 : discount;
}

// Stores an observation row; its action and transition are still unknown.
SPARRING_FN inline void store_row(const RingView& ring, int index, const u8* obs, const u8* mask) {
  copy_bytes(ring.obs + i64{index} * ring.row_bytes, obs, ring.row_bytes);
  u64* words = ring.mask + i64{index} * ring.mask_words();
  for (int w = 0; w < ring.mask_words(); ++w) words[w] = pack_mask(mask, 64 * w, ring.actions);
  zero_bytes(ring.action + i64{index} * ring.action_bytes, ring.action_bytes);
  store_link(ring, index, kNotASample, -1, 0, 0);
}

SPARRING_FN inline void store_action(const RingView& ring, int index, i32 action) {
  u8* to = ring.action + i64{index} * ring.action_bytes;
  const i16 small = static_cast<i16>(action);
  if (ring.action_bytes == 2)
    copy_bytes(to, &small, 2);
  else
    copy_bytes(to, &action, 4);
}

SPARRING_FN inline void store_numbers(const RingView& ring, int index, const f32* numbers) {
  copy_bytes(ring.action + i64{index} * ring.action_bytes, numbers, ring.action_bytes);
}

// Sampling

SPARRING_FN inline Rng sample_rng(u64 seed, int sample, u32 number) {
  return Rng(seed, static_cast<u32>(sample), number, Stream::kReplay);
}

// Draws uniformly among the samples in the `fill` entries from `first` on, by rejection. There must
// be one; after many draws it takes the next sample after the last drawn entry.
SPARRING_FN inline int pick(const RingView& ring, int first, int fill, Rng& rng) {
  constexpr int kDraws = 64;
  int step = 0;
  for (int i = 0; i < kDraws; ++i) {
    step = rng.below(fill);
    const int index = wrap(first - ring.capacity + step, ring.capacity);
    if (ring.end[index] != kNotASample) return index;
  }
  for (;;) {
    const int index = wrap(first - ring.capacity + step, ring.capacity);
    if (ring.end[index] != kNotASample) return index;
    step = wrap(step + 1, fill);
  }
}

struct NStepReturn {
  f32 reward;    // sum of discounted rewards
  f32 discount;  // of the next value; 0 at the end of an episode
  int index;     // index of the next decision, or of the last one at the end of an episode
};

// The n-step return of a decision: rewards of up to `n` decisions of its seat, and the next one.
SPARRING_FN inline NStepReturn n_step_return(const RingView& ring, int index, int n) {
  NStepReturn sum{0, 1, index};
  for (int i = 0; i < n; ++i) {
    sum.reward += sum.discount * ring.reward[sum.index];
    sum.discount *= ring.discount[sum.index];
    if (sum.discount == 0) break;
    sum.index = ring.next[sum.index];
    if (ring.end[sum.index] == kNotASample) break;
  }
  return sum;
}

// Writes sample `i` except its weight. after: its n-step return.
SPARRING_FN inline void take_sample(const RingView& ring, const SamplesView& out, int i, int index,
                                    const NStepReturn& after) {
  const i64 at = i, bytes = ring.row_bytes, words = ring.mask_words();
  copy_bytes(out.obs + at * bytes, ring.obs + index * bytes, ring.row_bytes);
  copy_bytes(out.next_obs + at * bytes, ring.obs + after.index * bytes, ring.row_bytes);
  unpack_mask(ring.mask + index * words, ring.actions, out.mask + at * ring.actions);
  unpack_mask(ring.mask + after.index * words, ring.actions, out.next_mask + at * ring.actions);
  const u8* action = ring.action + i64{index} * ring.action_bytes;
  if (ring.box) {
    copy_bytes(out.numbers + at * ring.box, action, ring.action_bytes);
  } else if (ring.action_bytes == 2) {
    i16 small;
    copy_bytes(&small, action, 2);
    out.action[i] = small;
  } else {
    copy_bytes(out.action + i, action, 4);
  }
  out.reward[i] = after.reward;
  out.discount[i] = after.discount;
  out.index[i] = index;
}

// Priorities

// A priority of 1 as a fixed-point weight; decisions never sampled get the highest weight so far.
inline constexpr u32 kOne = 1u << 16;

// The weight of a decision with a TD error: its size to the power of `exponent`, at least 1, so
// that every decision can be drawn.
SPARRING_FN inline u32 weight_of(f32 error, f32 exponent) {
  const f64 size = error < 0 ? -static_cast<f64>(error) : static_cast<f64>(error);
  const f64 weight = power_of(size, exponent) * kOne + 0.5;
  if (!(weight >= 1)) return 1;
  return weight >= 4294967295.0 ? 4294967295u : static_cast<u32>(weight);
}

// Importance weight that corrects for prioritized sampling; `min_weight` is the lowest of the
// batch.

SPARRING_FN inline f32 correction_of(u32 weight, u32 min_weight, f32 correction) {
  const f64 share = static_cast<f64>(min_weight) / static_cast<f64>(weight);
  return static_cast<f32>(power_of(share, correction));
}

}  // namespace sparring
