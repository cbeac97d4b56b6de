// Samples actions from a network's outputs, as the masked categorical distribution and the Gaussian
// in src/sparring/nets/distribution.py. Host only.
#pragma once

#include <cmath>

#include "core/rng.hpp"
#include "nets/exploring.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

struct Drawn {
  i32 action;
  f32 log_probability;
};

// Samples from the softmax over the legal actions; with `greedy` the most probable one, the lowest
// of equals.
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
    const f64 point = static_cast<f64>(rng.next()) * (1.0 / 4294967296.0) * total;
    f64 cumulative = 0;
    for (int a = 0; a < actions; ++a) {
      if (!mask[a]) continue;
      cumulative += std::exp(static_cast<f64>(logits[a] - logits[best]));
      chosen = a;
      if (cumulative > point) break;
    }
  }
  const f64 log_probability = static_cast<f64>(logits[chosen] - logits[best]) - std::log(total);
  return {chosen, static_cast<f32>(log_probability)};
}

// A uniformly random legal action; 0 if there is none.
inline i32 any_legal(const u8* mask, int actions, Rng& rng) {
  int legal = 0;
  for (int a = 0; a < actions; ++a) legal += mask[a] != 0;
  if (!legal) return 0;
  int left = rng.below(legal);
  for (int a = 0; a < actions; ++a)
    if (mask[a] && left-- == 0) return a;
  return 0;
}

// Samples a Gaussian; `head` holds means, then log standard deviations. Returns the log-density.
// With `greedy` the action is the means.
inline f32 draw_gaussian(const f32* head, int numbers, bool greedy, Rng& rng, f32* action) {
  constexpr f64 kTau = 6.283185307179586;
  f64 log_density = 0, radius = 0, angle = 0;
  for (int i = 0; i < numbers; ++i) {
    if (i % 2 == 0) {
      radius = std::sqrt(-2 * std::log((static_cast<f64>(rng.next()) + 1) / 4294967296.0));
      angle = kTau * static_cast<f64>(rng.next()) / 4294967296.0;
    }
    const f64 normal = greedy ? 0 : radius * (i % 2 ? std::sin(angle) : std::cos(angle));
    const f64 log_std = min(max(head[numbers + i], kMinLogStd), kMaxLogStd);
    action[i] = static_cast<f32>(head[i] + normal * std::exp(log_std));
    log_density -= 0.5 * normal * normal + log_std + kHalfLogTau;
  }
  return static_cast<f32>(log_density);
}

}  // namespace sparring
