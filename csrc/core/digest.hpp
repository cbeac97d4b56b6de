// A 64-bit hash of bytes, for comparing the results of two runs.
#pragma once

#include "core/fn.hpp"

namespace sparring {

class Digest {
 public:
  explicit Digest(u64 start) : value_(start * 0x9E3779B97F4A7C15ull + 0x243F6A8885A308D3ull) {}

  void bytes(const void* data, i64 count) {
    const u8* next = static_cast<const u8*>(data);
    for (; count >= 8; count -= 8, next += 8) {
      u64 word;
      std::memcpy(&word, next, 8);
      mix(word);
    }
    u64 rest = static_cast<u64>(count) << 56;
    for (int i = 0; i < count; ++i) rest |= u64{next[i]} << (8 * i);
    mix(rest);
  }

  u64 value() const { return value_ ^ (value_ >> 29); }

 private:
  void mix(u64 word) {
    value_ = (value_ ^ word) * 0xBF58476D1CE4E5B9ull;
    value_ ^= value_ >> 32;
  }
  u64 value_;
};

}  // namespace sparring
