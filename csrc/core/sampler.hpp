// Draws actions from masked logits: the fast twin of the masked categorical distribution in
// src/sparring/nets/distribution.py. Host only.
#pragma once

#include <cmath>

#include "core/rng.hpp"

namespace sparring {

struct Drawn {
  i32 action;
  f32 log_probability;
};

// Softmax over the legal actions alone. With `greedy` the most probable one, ties to the lowest.
inline Drawn draw_masked(const f32* logits, const u8* mask, int actions, bool greedy, Rng& rng) {
  int best = -1;
  for (int a = 0; a < actions; ++a)
    if (mask[a] && (best < 0 || logits[a] > logits[best])) best = a;
  if (best < 0) return {0, 0};
  f64 total = 0;
  for (int a = 0; a < actions; ++a)
    if (mask[a]) total += std::exp(static_cast<f64>(logits[a] - logits[best]));
  int chosen = best;
  if (!greedy) {
    const f64 at = static_cast<f64>(rng.next()) * (1.0 / 4294967296.0) * total;
    f64 up_to = 0;
    for (int a = 0; a < actions; ++a) {
      if (!mask[a]) continue;
      up_to += std::exp(static_cast<f64>(logits[a] - logits[best]));
      chosen = a;
      if (up_to > at) break;
    }
  }
  const f64 log_probability = static_cast<f64>(logits[chosen] - logits[best]) - std::log(total);
  return {chosen, static_cast<f32>(log_probability)};
}

}  // namespace sparring
