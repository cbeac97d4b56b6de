// Epsilon-greedy exploration: random actions instead of the network's. On CPU and GPU.
#pragma once

#include "core/rng.hpp"

#if SPARRING_HOST
#include <cmath>
#endif

namespace sparring {

// Random draws reserved for a row's step: one decides whether, the others which. A rejected draw
// uses one of the next step, which changes no distribution.
SPARRING_FN constexpr u32 exploring_draws(int numbers) {
  return (static_cast<u32>(numbers ? numbers : 1) + 1 + 3) / 4 * 4;
}

// The random stream of a row in a step.
SPARRING_FN inline Rng exploring_rng(u64 seed, u32 row, u32 rollout, u32 step, int numbers) {
  return Rng(seed, row, rollout, Stream::kExploring, step * exploring_draws(numbers));
}

// Whether a row takes a random action.
SPARRING_FN inline bool explores(f32 epsilon, Rng& rng) { return rng.uniform() < epsilon; }

// A uniformly random legal action; 0 if there is none. `legal` are bits.
SPARRING_FN inline i32 any_legal(const u64* legal, int words, Rng& rng) {
  int count = 0;
  for (int w = 0; w < words; ++w) count += popcount(legal[w]);
  if (!count) return 0;
  int left = rng.below(count);
  for (int w = 0; w < words; ++w) {
    u64 bits = legal[w];
    const int set = popcount(bits);
    if (left >= set) {
      left -= set;
      continue;
    }
    for (; left; --left) bits &= bits - 1;
    return 64 * w + lowest_bit(bits);
  }
  return 0;
}

// One component of a random continuous action, strictly within -1..1; before tanh if `squash`.
SPARRING_FN inline f32 explored_number(bool squash, Rng& rng) {
  const f32 number =
      (static_cast<f32>(rng.next() >> 9) + 0.5f) * (1.0f / 4194304.0f) - 1.0f;  // 2^-22
  return squash ? atanhf(number) : number;
}

}  // namespace sparring
