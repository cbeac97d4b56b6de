// Powers computed by additions, multiplications and divisions alone, so that CPU and GPU (without
// fused multiply-add) give the same bits.
#pragma once

#include "core/fn.hpp"

namespace sparring {

// Base-2 logarithm of a normal number above 0, within 1e-11.

SPARRING_FN inline f64 log2_of(f64 x) {
  u64 bits;
  copy_bytes(&bits, &x, 8);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
  f64 part;  // 1..2
  copy_bytes(&part, &bits, 8);
  if (part > 1.4142135623730951) {
    part *= 0.5;
    ++exponent;
  }
  const f64 s = (part - 1) / (part + 1), square = s * s;
  f64 sum = square * (1.0 / 13) + 1.0 / 11;
  sum = sum * square + 1.0 / 9;
  sum = sum * square + 1.0 / 7;
  sum = sum * square + 1.0 / 5;
  sum = sum * square + 1.0 / 3;
  sum = sum * square + 1.0;
  return exponent + 2.8853900817779268 * (s * sum);
}

// 2 to the power of x, for x in -1000..1000; relative error below 1e-11.
SPARRING_FN inline f64 exp2_of(f64 x) {
  const int whole = static_cast<int>(x < 0 ? x - 0.5 : x + 0.5);
  const f64 rest = (x - whole) * 0.6931471805599453;
  f64 sum = rest * (1.0 / 3628800) + 1.0 / 362880;
  sum = sum * rest + 1.0 / 40320;
  sum = sum * rest + 1.0 / 5040;
  sum = sum * rest + 1.0 / 720;
  sum = sum * rest + 1.0 / 120;
  sum = sum * rest + 1.0 / 24;
  sum = sum * rest + 1.0 / 6;
  sum = sum * rest + 0.5;
  sum = sum * rest + 1.0;
  sum = sum * rest + 1.0;
  const u64 bits = static_cast<u64>(whole + 1023) << 52;
  f64 scale;
  copy_bytes(&scale, &bits, 8);
  return sum * scale;
}

// base to the power of exponent, for base >= 0 and exponent in 0..1.
SPARRING_FN inline f64 power_of(f64 base, f64 exponent) {
  if (exponent == 0) return 1;
  if (base == 0) return 0;
  return exp2_of(exponent * log2_of(base));
}

}  // namespace sparring
