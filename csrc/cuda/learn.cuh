// PPO on the GPU, around matrix products that a library makes: widening, sampling, advantages,
// shuffling, loss, activations, optimiser.
//
// Every array has a leading dimension for the members of a population, which learn side by side
// and never mix; alone, there is one. NVRTC compiles this file with the sizes of the game
// (`constants` in src/sparring/nets/flat.py) and with SPARRING_BF16, 0 or 1: the type of
// activations and of the weights that they meet. src/sparring/learn/fused.py launches the
// kernels in the order in which they stand here.
#pragma once

#include "core/gae.hpp"
#include "core/rng.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

#if SPARRING_BF16
struct Num {
  u16 bits;
};
SPARRING_FN inline f32 number(Num x) { return __uint_as_float(u32{x.bits} << 16); }
// Two numbers to nearest, ties to even; `low` comes first in memory.
SPARRING_FN inline u32 rounded_pair(f32 low, f32 high) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const auto one = [](f32 x) {
    const u32 bits = __float_as_uint(x);
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  };
  return one(low) | one(high) << 16;
#endif
}
SPARRING_FN inline Num rounded(f32 x) { return {static_cast<u16>(rounded_pair(x, x))}; }

// Eight neighbours, moved and rounded together.
struct alignas(16) Num8 {
  u32 pair[4];

  SPARRING_FN f32 get(int i) const {
    return __uint_as_float(i & 1 ? pair[i / 2] & 0xffff0000u : pair[i / 2] << 16);
  }
  SPARRING_FN void put(const f32* x) {
    for (int i = 0; i < 4; ++i) pair[i] = rounded_pair(x[2 * i], x[2 * i + 1]);
  }
};
#else
struct Num {
  f32 value;
};
SPARRING_FN inline f32 number(Num x) { return x.value; }
SPARRING_FN inline Num rounded(f32 x) { return {x}; }

struct alignas(16) Num8 {
  f32 value[8];

  SPARRING_FN f32 get(int i) const { return value[i]; }
  SPARRING_FN void put(const f32* x) {
    for (int i = 0; i < 8; ++i) value[i] = x[i];
  }
};
#endif

struct alignas(16) Sixteen {
  u64 half[2];
};

inline constexpr int kWarp = 32;
inline constexpr u32 kAll = 0xffffffffu;

SPARRING_FN inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
SPARRING_FN inline i64 global_thread() { return i64{blockIdx.x} * blockDim.x + threadIdx.x; }
SPARRING_FN inline i64 global_warp() { return global_thread() / kWarp; }

SPARRING_FN inline f32 warp_sum(f32 x) {
  for (int by = kWarp / 2; by; by /= 2) x += __shfl_xor_sync(kAll, x, by);
  return x;
}
SPARRING_FN inline f32 warp_max(f32 x) {
  for (int by = kWarp / 2; by; by /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, by));
  return x;
}

// What a run may change between updates, one per member.
struct Knobs {
  f32 lr, entropy, clip, value_clip, value_weight, max_grad_norm, target_kl, gamma, lambda;
};

// What the advantages of a rollout amount to, one per member.
struct Aim {
  f32 mean, inverse_std;  // of the advantages
  f32 scale, ratio;       // unit of the values, and the former unit in it
  f32 explained;          // share of the returns' variance
};

// Sums over the gradient steps of an update, one per member.
struct Tally {
  f32 policy, value, entropy, kl, clipped, norm, steps;
};

// Losses of a minibatch, means over its rows.
struct Losses {
  f32 policy, value, entropy, kl, clipped;

  SPARRING_FN friend Losses operator+(const Losses& a, const Losses& b) {
    return {a.policy + b.policy, a.value + b.value, a.entropy + b.entropy, a.kl + b.kl,
            a.clipped + b.clipped};
  }
};

// Where the features lie in an observation: all u8, then i8, i16, f32. A widened row has zeros
// behind them, up to kWidth.
inline constexpr int kObsBytes = SPARRING_OBS_BYTES, kWidth = SPARRING_WIDTH;
inline constexpr int kU8s = SPARRING_U8S, kI8s = SPARRING_I8S, kI16s = SPARRING_I16S,
                     kF32s = SPARRING_F32S;
inline constexpr int kI8At = SPARRING_I8_AT, kI16At = SPARRING_I16_AT, kF32At = SPARRING_F32_AT;
inline constexpr int kEights = kU8s / 8, kRest = kWidth - 8 * kEights;

SPARRING_FN inline f32 feature(const u8* row, int i) {
  if (i < kU8s) return static_cast<f32>(row[i]);
  i -= kU8s;
  if (i < kI8s) return static_cast<f32>(reinterpret_cast<const i8*>(row)[kI8At + i]);
  i -= kI8s;
  if (i < kI16s) return static_cast<f32>(reinterpret_cast<const i16*>(row + kI16At)[i]);
  i -= kI16s;
  return i < kF32s ? reinterpret_cast<const f32*>(row + kF32At)[i] : 0.0f;
}

// Widens rows for a network: row i is `obs` row places[i], or i where `places` is null. Rows
// whose place is negative become zeros. Divisors are part of the first layer's weights. The first
// threads take eight bytes each, those behind them one feature.
extern "C" __global__ void widen(const u8* obs, const i32* places, int rows, Num* out) {
  const u32 at = static_cast<u32>(global_thread());
  const u32 whole = static_cast<u32>(rows) * kEights;
  if (at < whole) {
    const u32 row = at / most(kEights, 1), first = 8 * (at % most(kEights, 1));
    const i64 place = places ? i64{places[row]} : i64{row};
    const u64 bytes =
        place < 0 ? 0 : *reinterpret_cast<const u64*>(obs + place * kObsBytes + first);
    f32 x[8];
    for (int i = 0; i < 8; ++i) x[i] = static_cast<f32>(bytes >> (8 * i) & 0xff);
    Num8 eight;
    eight.put(x);
    *reinterpret_cast<Num8*>(out + i64{row} * kWidth + first) = eight;
  } else if (at - whole < static_cast<u32>(rows) * kRest) {
    const u32 row = (at - whole) / most(kRest, 1), i = 8 * kEights + (at - whole) % most(kRest, 1);
    const i64 place = places ? i64{places[row]} : i64{row};
    out[i64{row} * kWidth + i] =
        rounded(place < 0 ? 0 : feature(obs + place * kObsBytes, static_cast<int>(i)));
  }
}

SPARRING_FN inline f32 activated(f32 x, int tanh) { return tanh ? tanhf(x) : fmaxf(x, 0.0f); }

// Adds the bias and applies the activation, in place, eight columns per thread.
extern "C" __global__ void activate(Num* x, const Num* bias, i64 bias_stride, int rows_each,
                                    int columns, int members, int tanh) {
  const i64 at = global_thread() * 8;
  if (at >= i64{members} * rows_each * columns) return;
  const i64 member = at / (i64{rows_each} * columns);
  const Num* add = bias + member * bias_stride + at % columns;
  Num8 eight = *reinterpret_cast<const Num8*>(x + at);
  const Num8 more = *reinterpret_cast<const Num8*>(add);
  f32 made[8];
  for (int i = 0; i < 8; ++i) made[i] = activated(eight.get(i) + more.get(i), tanh);
  eight.put(made);
  *reinterpret_cast<Num8*>(x + at) = eight;
}

inline constexpr int kActions = SPARRING_ACTIONS, kWords = SPARRING_LEGAL_WORDS;
inline constexpr int kBox = SPARRING_BOX;  // numbers of a continuous action, 0 for discrete ones
inline constexpr int kLogits = ((kBox ? 2 * kBox : kActions) + 7) / 8 * 8;  // the head's columns

#if SPARRING_BOX
// The Gaussian of one row, one thread's: means and logarithms of spreads, as mean_and_spread in
// src/sparring/nets/distribution.py has them.
struct Gaussian {
  static constexpr f32 kShift = static_cast<f32>(kHalfLogTau);
  f32 mean[kBox], log_spread[kBox];
  bool free[kBox];  // the spread is not at a limit, where it has no gradient

  SPARRING_FN Gaussian(const f32* product, const f32* bias) {
    for (int i = 0; i < kBox; ++i) {
      mean[i] = product[i] + bias[i];
      const f32 raw = product[kBox + i] + bias[kBox + i];
      log_spread[i] = fminf(fmaxf(raw, kLeastLogSpread), kMostLogSpread);
      free[i] = raw >= kLeastLogSpread && raw <= kMostLogSpread;
    }
  }

  // How many spreads a number of an action is away from its mean.
  SPARRING_FN f32 off(const f32* action, int i) const {
    return (action[i] - mean[i]) * expf(-log_spread[i]);
  }

  SPARRING_FN f32 log_density(const f32* action) const {
    f32 sum = 0;
    for (int i = 0; i < kBox; ++i)
      sum -= 0.5f * off(action, i) * off(action, i) + log_spread[i] + kShift;
    return sum;
  }

  SPARRING_FN f32 entropy() const {
    f32 sum = 0;
    for (int i = 0; i < kBox; ++i) sum += log_spread[i] + 0.5f + kShift;
    return sum;
  }
};

// Draws an action for every row, one thread each: the twin of nets/sampler.hpp, with the same
// random numbers. `played`, if not null, gets what is squashed for the games.
extern "C" __global__ void __launch_bounds__(256)
    draw(const f32* heads, const f32* values, int value_stride, const f32* head_bias,
         const f32* value_bias, i64 bias_stride, const u64*, const i16* policy, const u64* seeds,
         const i32* clock, const f32* value_scale, int rows, int rows_each, int first_row, int step,
         f32* action, f32* log_prob, f32* value, f32* played) {
  const i64 row = global_thread();
  if (row >= rows) return;
  const i64 member = row / rows_each;
  const Gaussian gaussian(heads + row * kLogits, head_bias + member * bias_stride);
  Rng rng(seeds[member], static_cast<u32>(first_row + row % rows_each), static_cast<u32>(clock[0]),
          Stream::kSampling, static_cast<u32>(step) * gaussian_draws(kBox));
  const bool asked = policy[row] >= 0;
  f32 log_density = 0, radius = 0, turns = 0;
  for (int i = 0; i < kBox; ++i) {
    if (i % 2 == 0) {
      radius = sqrtf(-2 * logf((static_cast<f32>(rng.next()) + 1) * (1.0f / 4294967296.0f)));
      turns = 2 * static_cast<f32>(rng.next()) * (1.0f / 4294967296.0f);
    }
    const f32 normal = radius * (i % 2 ? sinpif(turns) : cospif(turns));
    const f32 drawn = gaussian.mean[i] + normal * expf(gaussian.log_spread[i]);
    log_density -= 0.5f * normal * normal + gaussian.log_spread[i] + Gaussian::kShift;
    action[row * kBox + i] = asked ? drawn : 0.0f;
    if (played) played[row * kBox + i] = asked ? tanhf(drawn) : 0.0f;
  }
  log_prob[row] = asked ? log_density : 0.0f;
  value[row] =
      (values[row * value_stride] + value_bias[member * bias_stride]) * value_scale[member];
}
#else
inline constexpr int kChunks = (kActions + kWarp - 1) / kWarp;
inline constexpr f32 kNever = -3.0e38f;

// The legal choices of one row, spread over a warp in the order of the actions: lane l of chunk c
// has action 32 c + l. Illegal ones weigh exactly 0.
struct Choices {
  f32 logit[kChunks];   // kNever if illegal
  f32 weight[kChunks];  // exp(logit - top)
  f32 top, total;

  // `product` is the head's output without the bias.
  SPARRING_FN Choices(const f32* product, const f32* bias, const u64* legal) {
    top = kNever;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int a = c * kWarp + lane();
      const bool may = a < kActions && (legal[c / 2] >> (a & 63) & 1);
      logit[c] = may ? product[a] + bias[a] : kNever;
      top = fmaxf(top, logit[c]);
    }
    top = warp_max(top);
    total = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      weight[c] = logit[c] == kNever ? 0.0f : expf(logit[c] - top);
      total += weight[c];
    }
    total = warp_sum(total);
  }

  // Any lane may ask for any action.
  SPARRING_FN f32 logit_of(int action) const {
    f32 found = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (c == action / kWarp) found = logit[c];
    return __shfl_sync(kAll, found, action % kWarp);
  }
};

// Draws an action for every row: the twin of nets/sampler.hpp, with the same random numbers. The
// rows are numbered from `first_row` in every member. Rows that nobody answers get action 0.
extern "C" __global__ void __launch_bounds__(256)
    draw(const f32* logits, const f32* values, int value_stride, const f32* logit_bias,
         const f32* value_bias, i64 bias_stride, const u64* legal, const i16* policy,
         const u64* seeds, const i32* clock, const f32* value_scale, int rows, int rows_each,
         int first_row, int step, i32* action, f32* log_prob, f32* value, f32*) {
  const i64 row = global_warp();
  if (row >= rows) return;
  const i64 member = row / rows_each;
  const Choices choices(logits + row * kLogits, logit_bias + member * bias_stride,
                        legal + row * kWords);
  Rng rng(seeds[member], static_cast<u32>(first_row + row % rows_each), static_cast<u32>(clock[0]),
          Stream::kSampling, static_cast<u32>(step));
  const f32 at = static_cast<f32>(rng.next()) * (1.0f / 4294967296.0f) * choices.total;
  int chosen = -1;
  f32 up_to = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (chosen >= 0) break;
    f32 sum = choices.weight[c];
    for (int by = 1; by < kWarp; by *= 2) {
      const f32 below = __shfl_up_sync(kAll, sum, static_cast<u32>(by));
      if (lane() >= by) sum += below;
    }
    const u32 past = __ballot_sync(kAll, choices.weight[c] > 0 && up_to + sum > at);
    if (past) chosen = c * kWarp + __ffs(static_cast<int>(past)) - 1;
    up_to += __shfl_sync(kAll, sum, kWarp - 1);
  }
  if (chosen < 0) {  // rounding left nothing: the last choice there is
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (const u32 any = __ballot_sync(kAll, choices.weight[c] > 0))
        chosen = c * kWarp + 31 - __clz(static_cast<int>(any));
  }
  const f32 log_p = choices.logit_of(chosen < 0 ? 0 : chosen) - choices.top - logf(choices.total);
  if (lane() != 0) return;
  const bool asked = policy[row] >= 0 && chosen >= 0;
  action[row] = asked ? chosen : 0;
  log_prob[row] = asked ? log_p : 0.0f;
  value[row] =
      (values[row * value_stride] + value_bias[member * bias_stride]) * value_scale[member];
}
#endif

// The worth of games that were cut, where the step kernel noted them.
extern "C" __global__ void place_cuts(const f32* values, int value_stride, const f32* value_bias,
                                      i64 bias_stride, const i32* cut_at, const i32* cut_count,
                                      int room, int members, const f32* value_scale,
                                      f32* final_value) {
  const i64 at = global_thread();
  if (at >= i64{members} * room) return;
  const int member = static_cast<int>(at / room);
  if (at % room >= cut_count[member]) return;
  const f32 value =
      (values[at * value_stride] + value_bias[member * bias_stride]) * value_scale[member];
  const i32 where = cut_at[at] >> 1;
  final_value[where] = value;
  if (cut_at[at] & 1) final_value[where ^ 1] = -value;
}

// One thread links and weighs the decisions of one game.
extern "C" __global__ void advantages(int steps, int games, int each, int rows, int seats,
                                      int roles, int chains, const Knobs* knobs,
                                      const f32* gamma_into, const i8* seat, const i8* role,
                                      const i16* policy, const f32* value, const f32* reward,
                                      const u8* terminated, const u8* truncated,
                                      const f32* final_value, const u16* skipped, Open* open,
                                      u8* end, i32* next, f32* paid, f32* discount, f32* tail,
                                      f32* advantage) {
  const int game = static_cast<int>(global_thread());
  if (game >= games) return;
  const Knobs& mine = knobs[game / each];
  const RolloutView view{steps,       games,      rows,
                         seats,       roles,      chains,
                         0,           mine.gamma, gamma_into + (game / each) * roles,
                         seat,        role,       policy,
                         reward,      terminated, truncated,
                         final_value, skipped,    open};
  const Links links{end, next, paid, discount, tail};
  link_game(view, links, game);
  gae_of_game(view, links, value, mine.lambda, advantage, game);
}

// Places of a rollout, counted member by member: carried decisions first, then step by step.
struct Places {
  int members, carried_each, rows_each, steps;

  SPARRING_FN i64 count() const { return carried_each + i64{steps} * rows_each; }
  SPARRING_FN i64 place(int member, i64 at) const {
    if (at < carried_each) return i64{member} * carried_each + at;
    at -= carried_each;
    const i64 step = at / rows_each;
    return i64{members} * carried_each + (step * members + member) * rows_each + at % rows_each;
  }
};

extern "C" __global__ void mark_samples(const u8* link, int members, int carried_each,
                                        int rows_each, int steps, i32* marks) {
  const Places places{members, carried_each, rows_each, steps};
  const i64 at = global_thread();
  if (at >= members * places.count()) return;
  const int member = static_cast<int>(at / places.count());
  marks[at] = link[places.place(member, at % places.count())] != kNotASample;
}

// `ranks` are the running sums of the marks.
extern "C" __global__ void list_samples(const u8* link, const i32* ranks, int members,
                                        int carried_each, int rows_each, int steps, i32* list,
                                        i32* counts) {
  const Places places{members, carried_each, rows_each, steps};
  const i64 at = global_thread();
  if (at >= members * places.count()) return;
  const int member = static_cast<int>(at / places.count());
  const i64 place = places.place(member, at % places.count());
  if (link[place] != kNotASample)
    list[member * places.count() + ranks[at] - 1] = static_cast<i32>(place);
  if ((at + 1) % places.count() == 0) counts[member] = ranks[at];
}

// Sums of advantages, returns and their squares; one block of `partials` per block of threads.
extern "C" __global__ void moments(const i32* list, i64 list_stride, const i32* counts,
                                   const f32* advantage, const f32* value, f64* partials) {
  const int member = static_cast<int>(blockIdx.y);
  f64 sums[4]{};
  for (i64 i = global_thread(); i < counts[member]; i += i64{gridDim.x} * blockDim.x) {
    const i32 place = list[member * list_stride + i];
    const f64 gain = static_cast<f64>(advantage[place]);
    const f64 back = gain + static_cast<f64>(value[place]);
    sums[0] += gain;
    sums[1] += gain * gain;
    sums[2] += back;
    sums[3] += back * back;
  }
  __shared__ f64 all[4][256];
  for (int k = 0; k < 4; ++k) all[k][threadIdx.x] = sums[k];
  __syncthreads();
  if (threadIdx.x >= 4) return;
  f64 sum = 0;
  for (int i = 0; i < 256; ++i) sum += all[threadIdx.x][i];
  partials[(i64{member} * gridDim.x + blockIdx.x) * 4 + threadIdx.x] = sum;
}

// From the sums to the unit of values and the normalisation of advantages; clears the tallies.
extern "C" __global__ void take_aim(const f64* partials, int blocks, const i32* counts,
                                    const i32* clock, f32 memory, f32* value_scale, Aim* aims,
                                    Tally* tallies, u8* stopped) {
  const int member = static_cast<int>(threadIdx.x);
  f64 sums[4]{};
  for (int b = 0; b < blocks; ++b)
    for (int k = 0; k < 4; ++k) sums[k] += partials[(i64{member} * blocks + b) * 4 + k];
  const f64 n = static_cast<f64>(counts[member] ? counts[member] : 1);
  const f64 mean = sums[0] / n, spread = fmax(sums[1] / n - mean * mean, 0.0);
  const f64 back = sums[2] / n, back_spread = fmax(sums[3] / n - back * back, 0.0);
  const f32 size = fmaxf(static_cast<f32>(sqrt(sums[3] / n)), 1e-6f);
  const f32 keep = clock[0] ? memory : 0.0f, before = value_scale[member];
  const f32 scale = keep * before + (1 - keep) * size;
  aims[member] = {static_cast<f32>(mean), 1.0f / (static_cast<f32>(sqrt(spread)) + 1e-8f), scale,
                  before / scale,
                  back_spread > 0 ? static_cast<f32>(1 - spread / back_spread) : 0.0f};
  value_scale[member] = scale;
  tallies[member] = {};
  stopped[member] = 0;
}

// The value head in its new unit; what it says about any row stays the same.
extern "C" __global__ void rescale_values(f32* weight, Num* compute, i64 stride, int count,
                                          const Aim* aims) {
  const int at = static_cast<int>(global_thread());
  if (at >= count) return;
  const i64 place = blockIdx.y * stride + at;
  weight[place] *= aims[blockIdx.y].ratio;
  compute[place] = rounded(weight[place]);
}

// Where `i` of 0..count-1 goes in a shuffle that `key` chooses: a Feistel network over the next
// power of two, walked until it lands inside.
SPARRING_FN inline u32 shuffled(u32 i, u32 count, u64 key) {
  const int bits = count > 1 ? 32 - __clz(static_cast<int>(count - 1)) : 1;
  const int low_bits = (bits + 1) / 2, high_bits = bits - low_bits;
  const u32 low_mask = (1u << low_bits) - 1, high_mask = (1u << high_bits) - 1;
  do {
    u32 high = i >> low_bits, low = i & low_mask;
    for (u32 round = 0; round < 8; ++round) {
      const u32 from = round & 1 ? high : low;
      u32 mixed = (from + round * 0x9E3779B9u) ^ static_cast<u32>(key);
      mixed = (mixed ^ mixed >> 16) * 0x85EBCA6Bu;
      mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35u ^ static_cast<u32>(key >> 32);
      mixed = (mixed ^ mixed >> 16) * 0x7FEB352Du;
      mixed ^= mixed >> 15;
      if (round & 1)
        low ^= mixed & low_mask;
      else
        high ^= mixed & high_mask;
    }
    i = high << low_bits | low;
  } while (i >= count);
  return i;
}

// Minibatch `number` of `parts`: which samples of the shuffled list it takes.
struct Slice {
  i64 first, rows;
};
SPARRING_FN inline Slice slice_of(int count, int number, int parts, int room) {
  const i64 first = i64{count} * number / parts, end = i64{count} * (number + 1) / parts;
  return {first, least(end - first, i64{room})};
}

// Deals the samples of an epoch to its minibatches: picked[part][member][row] is a place, or -1
// past the minibatch's end.
extern "C" __global__ void shuffle(const i32* list, i64 list_stride, const i32* counts,
                                   const u64* seeds, const i32* clock, int epoch, int parts,
                                   int members, int room, i32* picked) {
  const i64 at = global_thread();
  if (at >= i64{parts} * members * room) return;
  const int row = static_cast<int>(at % room), member = static_cast<int>(at / room % members);
  const Slice slice = slice_of(counts[member], static_cast<int>(at / room / members), parts, room);
  if (row >= slice.rows) {
    picked[at] = -1;
    return;
  }
  const PhiloxBlock key =
      philox(static_cast<u32>(clock[0]), static_cast<u32>(epoch), 0, 0,
             static_cast<u32>(seeds[member]), static_cast<u32>(seeds[member] >> 32));
  const u32 drawn = shuffled(static_cast<u32>(slice.first + row), static_cast<u32>(counts[member]),
                             u64{key.word[0]} << 32 | key.word[1]);
  picked[at] = list[member * list_stride + drawn];
}

// The value part of the loss of one row: the squared miss and its gradient, both unweighted.
struct ValueMiss {
  f32 miss, slope = 1;

  // `value` in units of the scale; the old value and the advantage are not.
  SPARRING_FN ValueMiss(f32 value, f32 old, f32 gain, const Aim& aim, const Knobs& knob) {
    const f32 before = old / aim.scale, back = (gain + old) / aim.scale;
    miss = value - back;
    if (knob.value_clip <= 0) return;
    const f32 moved = value - before;
    const f32 limited = fminf(fmaxf(moved, -knob.value_clip), knob.value_clip);
    const f32 other = before + limited - back;
    if (other * other <= miss * miss) return;
    miss = other;
    slope = moved == limited ? 1.0f : 0.0f;
  }
  SPARRING_FN f32 gradient() const { return 2 * miss * slope; }
};

// The policy part: the clipped surrogate of one row.
struct Surrogate {
  f32 log_ratio, ratio, gain, near;

  SPARRING_FN Surrogate(f32 log_prob, f32 old_log_prob, f32 advantage, const Aim& aim, f32 clip) {
    gain = (advantage - aim.mean) * aim.inverse_std;
    log_ratio = log_prob - old_log_prob;
    ratio = expf(log_ratio);
    near = fminf(fmaxf(ratio, 1 - clip), 1 + clip);
  }
  // With respect to the log-probability; the clipped branch is constant.
  SPARRING_FN f32 gradient() const { return gain * ratio > gain * near ? 0.0f : -gain * ratio; }

  SPARRING_FN Losses losses(const ValueMiss& value, f32 entropy, f32 clip) const {
    return {-fminf(gain * ratio, gain * near), value.miss * value.miss, entropy,
            ratio - 1 - log_ratio, fabsf(ratio - 1) > clip ? 1.0f : 0.0f};
  }
};

// Adds up what the warps of a block of 256 threads found.
__device__ inline void add_losses(const Losses& warps, Losses* out) {
  __shared__ Losses all[8];
  if (lane() == 0) all[threadIdx.x / kWarp] = warps;
  __syncthreads();
  if (threadIdx.x) return;
  Losses sum{};
  for (const Losses& one : all) sum = sum + one;
  *out = sum;
}

// `loss` has the gradient of the loss with respect to the policy head and the value, and the sums
// of the losses per block. The formulas are those of `ppo_loss` in src/sparring/learn/ppo.py.
#if SPARRING_BOX
// One thread per row.
extern "C" __global__ void __launch_bounds__(256)
    loss(const f32* heads, const f32* values, int value_stride, const f32* head_bias,
         const f32* value_bias, i64 bias_stride, const i32* picked, const u64*, const f32* action,
         const f32* old_log_prob, const f32* old_value, const f32* advantage, const i32* counts,
         int number, int parts, int room, const Knobs* knobs, const Aim* aims, int rows_per_block,
         Num* heads_grad, Num* values_grad, Losses* partials) {
  const int member = static_cast<int>(blockIdx.y);
  const Knobs knob = knobs[member];
  const Aim aim = aims[member];
  const i64 rows = slice_of(counts[member], number, parts, room).rows;
  const f32 share = 1.0f / static_cast<f32>(rows ? rows : 1);
  const int mine = static_cast<int>(blockIdx.x) * rows_per_block + static_cast<int>(threadIdx.x);
  Losses sums{};
  if (mine < room) {
    const i64 row = i64{member} * room + mine;
    const i32 place = picked[row];
    f32 head_grad[kLogits]{}, value_grad = 0;
    if (place >= 0) {
      const Gaussian gaussian(heads + row * kLogits, head_bias + member * bias_stride);
      const f32* taken = action + i64{place} * kBox;
      const f32 gain = advantage[place];
      const Surrogate policy(gaussian.log_density(taken), old_log_prob[place], gain, aim,
                             knob.clip);
      const f32 pull = policy.gradient() * share;
      for (int i = 0; i < kBox; ++i) {
        const f32 off = gaussian.off(taken, i);
        head_grad[i] = pull * off * expf(-gaussian.log_spread[i]);
        if (gaussian.free[i]) head_grad[kBox + i] = pull * (off * off - 1) - knob.entropy * share;
      }
      const ValueMiss value(values[row * value_stride] + value_bias[member * bias_stride],
                            old_value[place], gain, aim, knob);
      value_grad = knob.value_weight * value.gradient() * share;
      sums = policy.losses(value, gaussian.entropy(), knob.clip);
    }
    for (int i = 0; i < kLogits; ++i) heads_grad[row * kLogits + i] = rounded(head_grad[i]);
    for (int i = 0; i < value_stride; ++i)
      values_grad[row * value_stride + i] = rounded(i == 0 ? value_grad : 0.0f);
  }
  add_losses({warp_sum(sums.policy), warp_sum(sums.value), warp_sum(sums.entropy),
              warp_sum(sums.kl), warp_sum(sums.clipped)},
             partials + i64{member} * gridDim.x + blockIdx.x);
}
#else
// One warp per row.
extern "C" __global__ void __launch_bounds__(256)
    loss(const f32* logits, const f32* values, int value_stride, const f32* logit_bias,
         const f32* value_bias, i64 bias_stride, const i32* picked, const u64* legal,
         const i32* action, const f32* old_log_prob, const f32* old_value, const f32* advantage,
         const i32* counts, int number, int parts, int room, const Knobs* knobs, const Aim* aims,
         int rows_per_block, Num* logits_grad, Num* values_grad, Losses* partials) {
  const int member = static_cast<int>(blockIdx.y);
  const Knobs knob = knobs[member];
  const Aim aim = aims[member];
  const i64 rows = slice_of(counts[member], number, parts, room).rows;
  const f32 share = 1.0f / static_cast<f32>(rows ? rows : 1);
  const int first = static_cast<int>(blockIdx.x) * rows_per_block;
  Losses sums{};
  for (int r = static_cast<int>(threadIdx.x) / kWarp; r < rows_per_block; r += 8) {
    if (first + r >= room) break;
    const i64 row = i64{member} * room + first + r;
    const i32 place = picked[row];
    if (place < 0) {
      for (int a = lane(); a < kLogits; a += kWarp) logits_grad[row * kLogits + a] = rounded(0);
      if (lane() < value_stride) values_grad[row * value_stride + lane()] = rounded(0);
      continue;
    }
    const i32 taken = action[place];
    const f32 gain = advantage[place], old = old_value[place], old_log = old_log_prob[place];
    const f32 value = values[row * value_stride] + value_bias[member * bias_stride];
    const Choices choices(logits + row * kLogits, logit_bias + member * bias_stride,
                          legal + i64{place} * kWords);
    const f32 log_total = logf(choices.total) + choices.top, inverse = 1 / choices.total;
    f32 entropy = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (choices.weight[c] > 0) entropy -= choices.weight[c] * (choices.logit[c] - log_total);
    entropy = warp_sum(entropy) * inverse;
    const Surrogate policy(choices.logit_of(taken) - log_total, old_log, gain, aim, knob.clip);
    const f32 pull = policy.gradient() * share;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int a = c * kWarp + lane();
      const f32 p = choices.weight[c] * inverse;
      f32 grad = 0;
      if (choices.logit[c] != kNever)
        grad = pull * ((a == taken ? 1.0f : 0.0f) - p) +
               knob.entropy * share * p * (choices.logit[c] - log_total + entropy);
      if (a < kLogits) logits_grad[row * kLogits + a] = rounded(grad);
    }
    const ValueMiss miss(value, old, gain, aim, knob);
    if (lane() < value_stride)
      values_grad[row * value_stride + lane()] =
          rounded(lane() == 0 ? knob.value_weight * miss.gradient() * share : 0.0f);
    sums = sums + policy.losses(miss, entropy, knob.clip);
  }
  add_losses(sums, partials + i64{member} * gridDim.x + blockIdx.x);
}
#endif

// The gradient behind an activation, in place, and the sums of its columns over each block of
// rows: the gradient of the bias. kind 0: no activation, sums alone; 1: relu; 2: tanh.
// The sums of all layers lie side by side: `sums` [members, blocks, all columns].
extern "C" __global__ void __launch_bounds__(256)
    backward_activation(Num* grad, const Num* out, int columns, int rows, int rows_per_block,
                        int kind, f32* sums, int all_columns, int first_column) {
  __shared__ f32 all[8][256];
  const i64 member = blockIdx.z;
  const int part = static_cast<int>(threadIdx.x) / kWarp;
  const int column = static_cast<int>(blockIdx.x) * 256 + 8 * lane();
  f32 mine[8]{};
  if (column < columns) {
    const int first = static_cast<int>(blockIdx.y) * rows_per_block;
    const int end = least(first + rows_per_block, rows);
#pragma unroll 4
    for (int row = first + part; row < end; row += 8) {
      const i64 at = (member * rows + row) * columns + column;
      Num8 eight = *reinterpret_cast<const Num8*>(grad + at);
      f32 x[8];
      for (int i = 0; i < 8; ++i) x[i] = eight.get(i);
      if (kind) {
        const Num8 made = *reinterpret_cast<const Num8*>(out + at);
        for (int i = 0; i < 8; ++i) {
          const f32 y = made.get(i);
          x[i] = kind == 1 ? (y > 0 ? x[i] : 0.0f) : x[i] * (1 - y * y);
        }
        eight.put(x);
        *reinterpret_cast<Num8*>(grad + at) = eight;
      }
      for (int i = 0; i < 8; ++i) mine[i] += x[i];
    }
  }
  for (int i = 0; i < 8; ++i) all[part][8 * lane() + i] = mine[i];
  __syncthreads();
  const int own = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (own >= columns) return;
  f32 sum = 0;
  for (int p = 0; p < 8; ++p) sum += all[p][threadIdx.x];
  sums[(member * gridDim.y + blockIdx.y) * all_columns + first_column + own] = sum;
}

// Adds the blocks up, 32 columns per block of threads; `to` says where a column's bias lies.
extern "C" __global__ void __launch_bounds__(256)
    sum_columns(const f32* sums, int blocks, int columns, const i32* to, f32* grad, i64 stride) {
  __shared__ f32 all[8][kWarp];
  const i64 member = blockIdx.y;
  const int part = static_cast<int>(threadIdx.x) / kWarp;
  const int column = static_cast<int>(blockIdx.x) * kWarp + lane();
  f32 sum = 0;
  if (column < columns)
    for (int b = part; b < blocks; b += 8) sum += sums[(member * blocks + b) * columns + column];
  all[part][lane()] = sum;
  __syncthreads();
  if (part || column >= columns) return;
  for (int p = 1; p < 8; ++p) sum += all[p][lane()];
  grad[member * stride + to[column]] = sum;
}

// Squares of the gradient, summed per block. `scale` turns the gradient of a weight as it is
// computed with into that of the weight as it is stored.
extern "C" __global__ void __launch_bounds__(256)
    square(const f32* grad, const f32* scale, int count, f32* partials) {
  const f32* mine = grad + i64{blockIdx.y} * count;
  f32 sum = 0;
  for (i64 i = global_thread(); i < count; i += i64{gridDim.x} * blockDim.x) {
    const f32 g = mine[i] * scale[i];
    sum += g * g;
  }
  __shared__ f32 all[8];
  sum = warp_sum(sum);
  if (lane() == 0) all[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  f32 total = 0;
  for (f32 part : all) total += part;
  partials[blockIdx.y * gridDim.x + blockIdx.x] = total;
}

// What the optimiser does in this step.
struct Plan {
  f32 active, shrink, rate, spread;
};

// One block per member. A loss or a gradient that is not finite is never stepped on: the member
// is marked as diverged and its weights stay.
extern "C" __global__ void __launch_bounds__(256)
    plan_step(const f32* squares, int square_blocks, const Losses* losses, int loss_blocks,
              const i32* counts, int number, int parts, int room, const Knobs* knobs, f32 beta1,
              f32 beta2, i32* steps, u8* stopped, u8* diverged, Losses* means, Tally* tallies,
              Plan* plans) {
  __shared__ Losses all[8];
  __shared__ f32 all_squares[8];
  const int member = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / kWarp;
  f32 norm = 0;
  Losses sum{};
  for (int i = static_cast<int>(threadIdx.x); i < square_blocks; i += 256)
    norm += squares[member * square_blocks + i];
  for (int i = static_cast<int>(threadIdx.x); i < loss_blocks; i += 256)
    sum = sum + losses[i64{member} * loss_blocks + i];
  norm = warp_sum(norm);
  sum = {warp_sum(sum.policy), warp_sum(sum.value), warp_sum(sum.entropy), warp_sum(sum.kl),
         warp_sum(sum.clipped)};
  if (lane() == 0) {
    all[warp] = sum;
    all_squares[warp] = norm;
  }
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < 8; ++w) {
    sum = sum + all[w];
    norm += all_squares[w];
  }
  norm = sqrtf(norm);
  const Knobs knob = knobs[member];
  const i64 rows = slice_of(counts[member], number, parts, room).rows;
  const f32 share = 1.0f / static_cast<f32>(rows ? rows : 1);
  const Losses mean{sum.policy * share, sum.value * share, sum.entropy * share, sum.kl * share,
                    sum.clipped * share};
  means[member] = mean;
  if (!is_finite(norm + mean.policy + mean.value + mean.entropy)) diverged[member] = 1;
  if (stopped[member] || diverged[member]) {
    plans[member] = {};
    return;
  }
  const f32 step = static_cast<f32>(++steps[member]);
  plans[member] = {1, fminf(knob.max_grad_norm / (norm + 1e-6f), 1.0f),
                   knob.lr / (1 - powf(beta1, step)), 1 / sqrtf(1 - powf(beta2, step))};
  Tally& tally = tallies[member];
  tally = {tally.policy + mean.policy,
           tally.value + mean.value,
           tally.entropy + mean.entropy,
           tally.kl + mean.kl,
           tally.clipped + mean.clipped,
           tally.norm + norm,
           tally.steps + 1};
}

// Adam on the float32 weights, which are then rounded to those that are computed with.
extern "C" __global__ void adam(f32* weight, Num* compute, f32* first, f32* second, const f32* grad,
                                const f32* scale, int count, f32 beta1, f32 beta2, f32 epsilon,
                                const Plan* plans) {
  const Plan plan = plans[blockIdx.y];
  const int i = static_cast<int>(global_thread());
  if (plan.active == 0 || i >= count) return;
  const i64 at = i64{blockIdx.y} * count + i;
  const f32 g = grad[at] * scale[i] * plan.shrink;
  const f32 m = first[at] + (1 - beta1) * (g - first[at]);
  const f32 v = beta2 * second[at] + (1 - beta2) * g * g;
  first[at] = m;
  second[at] = v;
  weight[at] -= plan.rate * m / (sqrtf(v) * plan.spread + epsilon);
  compute[at] = rounded(weight[at] * scale[i]);
}

// Ends an update early for members whose policy moved far enough in this epoch.
extern "C" __global__ void end_epoch(const Losses* means, int members, int parts,
                                     const Knobs* knobs, u8* stopped) {
  const int member = static_cast<int>(threadIdx.x);
  f32 kl = 0;
  for (int p = 0; p < parts; ++p) kl += means[p * members + member].kl;
  const f32 limit = knobs[member].target_kl;
  if (limit > 0 && kl / static_cast<f32>(parts) > limit) stopped[member] = 1;
}

// Moves the rows of decisions that are still open to the front, one warp each.
extern "C" __global__ void carry(const Open* open, int carried, u8* obs, u64* legal, u32* action,
                                 f32* log_prob, f32* value) {
  const i64 to = global_warp();
  if (to >= carried || open[to].row < 0 || open[to].row == to) return;
  const i64 from = open[to].row;
  const Sixteen* row = reinterpret_cast<const Sixteen*>(obs + from * kObsBytes);
  Sixteen* kept = reinterpret_cast<Sixteen*>(obs + to * kObsBytes);
  for (int i = lane(); i < kObsBytes / 16; i += kWarp) kept[i] = row[i];
  for (int i = lane(); i < kWords; i += kWarp) legal[to * kWords + i] = legal[from * kWords + i];
  constexpr int kParts = most(kBox, 1);
  for (int i = lane(); i < kParts; i += kWarp) action[to * kParts + i] = action[from * kParts + i];
  if (lane() != 0) return;
  log_prob[to] = log_prob[from];
  value[to] = value[from];
}

}  // namespace sparring
