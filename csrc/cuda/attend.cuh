// Tokens that look at each other, a few dozen to a row: attention, and norms of tokens.
//
// Libraries cut attention into tiles of 64 or 128 tokens. A row of a game has 15, so that nearly
// all of a tile is thrown away. Here a thread has one token of one head for itself: what it looks
// at are a handful of lines that its neighbours read at the same time. NVRTC compiles this file
// with SPARRING_BF16, the numbers of a head (SPARRING_EACH) and those of a token (SPARRING_TOKEN).
#pragma once

#include "cuda/number.cuh"

namespace sparring {

inline constexpr int kEach = SPARRING_EACH, kToken = SPARRING_TOKEN;
static_assert(kEach % 8 == 0 && kToken % 8 == 0);

// One head of one token, as numbers.
struct Head {
  f32 x[kEach];

  SPARRING_FN void read(const Num* from) {
#pragma unroll
    for (int i = 0; i < kEach / 8; ++i) {
      const Num8 eight = reinterpret_cast<const Num8*>(from)[i];
#pragma unroll
      for (int j = 0; j < 8; ++j) x[8 * i + j] = eight.get(j);
    }
  }
  SPARRING_FN void write(Num* to, f32 by) const {
#pragma unroll
    for (int i = 0; i < kEach / 8; ++i) {
      f32 scaled[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) scaled[j] = x[8 * i + j] * by;
      Num8 eight;
      eight.put(scaled);
      reinterpret_cast<Num8*>(to)[i] = eight;
    }
  }
  SPARRING_FN f32 times(const Head& other) const {
    f32 sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += x[i] * other.x[i];
    return sum;
  }
  SPARRING_FN void add(f32 by, const Head& other) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) x[i] += by * other.x[i];
  }
};

// Queries [rows, asked, ...], keys and values [rows, tokens, ...]; heads of a token lie side by
// side, a stride leads from one token to the next.
struct AttendView {
  const Num* query;
  const Num* key;
  const Num* value;
  const u8* there;  // [rows, tokens]: 0 for a token that nobody looks at; null: all are there
  i64 query_stride, key_stride;
  Num* out;      // [rows, asked, heads, kEach]
  f32* log_sum;  // [rows, heads, asked]: of what queries and keys give
  int rows, asked, tokens, heads;
  f32 scale;
};

// The gradients of all three; strides as those of what they belong to.
struct AttendBackView {
  const Num* grad;  // of the output
  f32* own;         // [rows, heads, asked]: output times its gradient
  Num* query;
  Num* key;
  Num* value;
  i64 query_stride, key_stride;
};

// Which token of which head of which row a thread has.
struct Spot {
  i64 row;
  int head, token;

  SPARRING_FN Spot(i64 at, int heads, int tokens)
      : row(at / (i64{heads} * tokens)),
        head(static_cast<int>(at / tokens % heads)),
        token(static_cast<int>(at % tokens)) {}
};

SPARRING_FN inline void attend_one(const AttendView& v, i64 at) {
  if (at >= i64{v.rows} * v.heads * v.asked) return;
  const Spot me(at, v.heads, v.asked);
  const int first = me.head * kEach;
  Head query, sum{};
  query.read(v.query + (me.row * v.asked + me.token) * v.query_stride + first);
  f32 largest = -3e38f, total = 0;
  for (int j = 0; j < v.tokens; ++j) {
    const i64 token = me.row * v.tokens + j;
    if (v.there && !v.there[token]) continue;
    Head other;
    other.read(v.key + token * v.key_stride + first);
    const f32 fit = query.times(other) * v.scale;
    other.read(v.value + token * v.key_stride + first);
    if (fit > largest) {
      const f32 shrink = expf(largest - fit);
      total *= shrink;
#pragma unroll
      for (int i = 0; i < kEach; ++i) sum.x[i] *= shrink;
      largest = fit;
    }
    const f32 share = expf(fit - largest);
    total += share;
    sum.add(share, other);
  }
  sum.write(v.out + ((me.row * v.asked + me.token) * v.heads + me.head) * kEach, 1 / total);
  if (v.log_sum) v.log_sum[at] = largest + logf(total);
}

// A thread per query: its own gradient, and what keys need to know of it.
SPARRING_FN inline void attend_back_query(const AttendView& v, const AttendBackView& back, i64 at) {
  if (at >= i64{v.rows} * v.heads * v.asked) return;
  const Spot me(at, v.heads, v.asked);
  const int first = me.head * kEach;
  const i64 place = me.row * v.asked + me.token;
  Head query, grad, sum{}, other;
  query.read(v.query + place * v.query_stride + first);
  grad.read(back.grad + (place * v.heads + me.head) * kEach);
  other.read(v.out + (place * v.heads + me.head) * kEach);
  const f32 own = grad.times(other), log_sum = v.log_sum[at];
  for (int j = 0; j < v.tokens; ++j) {
    const i64 token = me.row * v.tokens + j;
    if (v.there && !v.there[token]) continue;
    other.read(v.value + token * v.key_stride + first);
    const f32 wanted = grad.times(other);
    other.read(v.key + token * v.key_stride + first);
    const f32 share = expf(query.times(other) * v.scale - log_sum);
    sum.add(share * (wanted - own), other);
  }
  sum.write(back.query + place * back.query_stride + first, v.scale);
  back.own[at] = own;
}

// A thread per key and its value, once `own` is known of all queries.
SPARRING_FN inline void attend_back_key(const AttendView& v, const AttendBackView& back, i64 at) {
  if (at >= i64{v.rows} * v.heads * v.tokens) return;
  const Spot me(at, v.heads, v.tokens);
  const int first = me.head * kEach;
  const i64 place = me.row * v.tokens + me.token;
  Head key, value, to_key{}, to_value{};
  if (!v.there || v.there[place]) {
    key.read(v.key + place * v.key_stride + first);
    value.read(v.value + place * v.key_stride + first);
    for (int t = 0; t < v.asked; ++t) {
      const i64 asks = me.row * v.asked + t;
      const i64 said = (me.row * v.heads + me.head) * v.asked + t;
      Head query, grad;
      query.read(v.query + asks * v.query_stride + first);
      grad.read(back.grad + (asks * v.heads + me.head) * kEach);
      const f32 share = expf(query.times(key) * v.scale - v.log_sum[said]);
      to_value.add(share, grad);
      to_key.add(share * (grad.times(value) - back.own[said]), query);
    }
  }
  to_key.write(back.key + place * back.key_stride + first, v.scale);
  to_value.write(back.value + place * back.key_stride + first, 1);
}

// Tokens [count, kToken], each centred and scaled to size 1, then by gain and shift.
struct NormView {
  const Num* x;
  const f32* gain;
  const f32* shift;
  Num* out;
  i64 count;
  f32 eps;
};

// The gradient of x, and sums of those of gain and shift: [blocks, 2, kToken].
struct NormBackView {
  const Num* grad;
  Num* to_x;
  f32* sums;
};

// Eight numbers of a token, and what all of its threads together know of it.
inline constexpr int kThreadsEach = kToken / 8;

#if defined(__CUDACC__)
SPARRING_FN inline f32 token_sum(f32 x) {
#pragma unroll
  for (int by = kThreadsEach / 2; by; by /= 2) x += __shfl_xor_sync(kAll, x, by);
  return x;
}

struct Eight {
  f32 x[8], spread;  // centred and scaled; what it was divided by, inverted

  SPARRING_FN void read(const NormView& v, i64 token, int column, bool inside) {
    Num8 eight{};
    if (inside) eight = *reinterpret_cast<const Num8*>(v.x + token * kToken + column);
    f32 sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += x[i] = eight.get(i);
    const f32 mean = token_sum(sum) / kToken;
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += (x[i] -= mean) * x[i];
    spread = rsqrtf(token_sum(squares) / kToken + v.eps);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] *= spread;
  }
};

extern "C" __global__ void attend(AttendView v) { attend_one(v, global_thread()); }

extern "C" __global__ void attend_queries_back(AttendView v, AttendBackView back) {
  attend_back_query(v, back, global_thread());
}

extern "C" __global__ void attend_keys_back(AttendView v, AttendBackView back) {
  attend_back_key(v, back, global_thread());
}

extern "C" __global__ void norm_tokens(NormView v) {
  const i64 token = global_thread() / kThreadsEach;
  const int column = 8 * static_cast<int>(global_thread() % kThreadsEach);
  const bool inside = token < v.count;
  Eight eight;
  eight.read(v, token, column, inside);
  if (!inside) return;
  f32 made[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) made[i] = eight.x[i] * v.gain[column + i] + v.shift[column + i];
  Num8 out;
  out.put(made);
  *reinterpret_cast<Num8*>(v.out + token * kToken + column) = out;
}

// Blocks of 256 threads take turns; a thread has the same eight columns in all of its tokens.
extern "C" __global__ void __launch_bounds__(256) norm_tokens_back(NormView v, NormBackView back) {
  __shared__ f32 all[2][256 / kThreadsEach][kToken];
  const int column = 8 * static_cast<int>(threadIdx.x % kThreadsEach);
  const int mine = static_cast<int>(threadIdx.x) / kThreadsEach;
  constexpr int kAtOnce = 256 / kThreadsEach;
  f32 to_gain[8]{}, to_shift[8]{};
  for (i64 first = i64{blockIdx.x} * kAtOnce; first < v.count; first += i64{gridDim.x} * kAtOnce) {
    const i64 token = first + mine;
    const bool inside = token < v.count;
    Eight eight;
    eight.read(v, token, column, inside);
    Num8 given{};
    if (inside) given = *reinterpret_cast<const Num8*>(back.grad + token * kToken + column);
    f32 grad[8], sum = 0, along = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const f32 g = inside ? given.get(i) : 0.0f;
      to_gain[i] += g * eight.x[i];
      to_shift[i] += g;
      grad[i] = g * v.gain[column + i];
      sum += grad[i];
      along += grad[i] * eight.x[i];
    }
    const f32 mean = token_sum(sum) / kToken, slope = token_sum(along) / kToken;
    if (!inside) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i) grad[i] = (grad[i] - mean - eight.x[i] * slope) * eight.spread;
    Num8 out;
    out.put(grad);
    *reinterpret_cast<Num8*>(back.to_x + token * kToken + column) = out;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    all[0][mine][column + i] = to_gain[i];
    all[1][mine][column + i] = to_shift[i];
  }
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < 2 * kToken; at += 256) {
    f32 sum = 0;
    for (int one = 0; one < kAtOnce; ++one) sum += all[at / kToken][one][at % kToken];
    back.sums[i64{blockIdx.x} * 2 * kToken + at] = sum;
  }
}
#endif

}  // namespace sparring
