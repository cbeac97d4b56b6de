// Random actions in place of a network's: who takes one, and which. On the CPU and on the GPU.
#pragma once

#include <cmath>

#include "core/rng.hpp"

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

// One number of a random continuous action, strictly within -1..1, as it would have been drawn.
SPARRING_FN inline f32 explored_number(bool squash, Rng& rng) {
  const f32 number =
      (static_cast<f32>(rng.next() >> 9) + 0.5f) * (1.0f / 4194304.0f) - 1.0f;  // 2^-22
  return squash ? atanhf(number) : number;
}

}  // namespace sparring
