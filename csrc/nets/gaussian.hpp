// Constants of the samplers of continuous actions, on CPU and GPU.
#pragma once

#include "core/fn.hpp"

namespace sparring {

// Smallest and largest log standard deviation. Actions are in -1..1.
inline constexpr f32 kMinLogStd = -5, kMaxLogStd = 1;
inline constexpr f64 kHalfLogTau = 0.9189385332046727;  // log sqrt(2 pi)

// Number of random draws of an action: a pair for every two components.
SPARRING_FN constexpr u32 gaussian_draws(int numbers) {
  return static_cast<u32>(numbers + 1) / 2 * 2;
}

}  // namespace sparring
