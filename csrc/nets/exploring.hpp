// Random actions in place of a network's: who takes one, and which. On the CPU and on the GPU.
#pragma once

#include "core/rng.hpp"

#if SPARRING_HOST
#include <cmath>
#endif

namespace sparring {

// Random numbers of a row's turn: one decides whether, the others what. A rejected number takes one
// more of the next turn's, which no turn can notice.
SPARRING_FN constexpr u32 exploring_draws(int numbers) {
  return (static_cast<u32>(numbers ? numbers : 1) + 1 + 3) / 4 * 4;
}

// The numbers of a row in a step.
SPARRING_FN inline Rng exploring_rng(u64 seed, u32 row, u32 rollout, u32 step, int numbers) {
  return Rng(seed, row, rollout, Stream::kExploring, step * exploring_draws(numbers));
}

// Whether a row takes a random action.
SPARRING_FN inline bool explores(f32 epsilon, Rng& rng) { return rng.uniform() < epsilon; }

// Any legal action, each as likely as the others; 0 if there is none. `legal` are bits.
SPARRING_FN inline i32 any_legal(const u64* legal, int words, Rng& rng) {
  int count = 0;
  for (int w = 0; w < words; ++w) count += popcount(legal[w]);
  if (!count) return 0;
  int left = rng.below(count);
  for (int w = 0; w < words; ++w) {
    u64 bits = legal[w];
    const int here = popcount(bits);
    if (left >= here) {
      left -= here;
      continue;
    }
    for (; left; --left) bits &= bits - 1;
    return 64 * w + lowest_bit(bits);
  }
  return 0;
}

// One number of a random continuous action, strictly within -1..1, as it would have been drawn.
SPARRING_FN inline f32 explored_number(bool squash, Rng& rng) {
  const f32 number =
      (static_cast<f32>(rng.next() >> 9) + 0.5f) * (1.0f / 4194304.0f) - 1.0f;  // 2^-22
  return squash ? atanhf(number) : number;
}

}  // namespace sparring
