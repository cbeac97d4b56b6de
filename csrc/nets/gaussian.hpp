// What the samplers of continuous actions have in common, on the CPU and on the GPU.
#pragma once

#include "core/fn.hpp"

namespace sparring {

// Smallest and largest logarithm of a spread. Actions reach from -1 to 1.
inline constexpr f32 kMinLogStd = -5, kMaxLogStd = 1;
inline constexpr f64 kHalfLogTau = 0.9189385332046727;  // log sqrt(2 pi)

// Random numbers that an action takes: a pair for every two of its numbers.
SPARRING_FN constexpr u32 gaussian_draws(int numbers) {
  return static_cast<u32>(numbers + 1) / 2 * 2;
}

}  // namespace sparring
