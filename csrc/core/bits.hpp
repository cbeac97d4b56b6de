// A set of small integers as bits (legal actions, cards), and its expansion to one byte per
// integer.
#pragma once

#include "core/fn.hpp"

#if defined(__ARM_NEON) && !defined(__CUDACC__)
#include <arm_neon.h>
#endif

namespace sparring {

// Number of set bits in a fixed number of words.
template <int Words>
SPARRING_FN inline int count_bits(const u64* words) {
  int n = 0, w = 0;
#if defined(__ARM_NEON) && !defined(__CUDACC__)
  if constexpr (Words >= 4 &&
                Words <= 60) {  // a byte of the sum holds the counts of 31 pairs of words
    uint8x16_t sum = vdupq_n_u8(0);
    for (; w + 2 <= Words; w += 2)
      sum = vaddq_u8(sum, vcntq_u8(vreinterpretq_u8_u64(
                              vcombine_u64(vcreate_u64(words[w]), vcreate_u64(words[w + 1])))));
    n = vaddlvq_u8(sum);
  }
#endif
  for (; w < Words; ++w) n += popcount(words[w]);
  return n;
}

template <int N>
struct Bits {
  static constexpr int kWords = (N + 63) / 64;
  u64 word[kWords];

  SPARRING_FN static constexpr Bits none() { return Bits{}; }

  SPARRING_FN constexpr bool test(int i) const { return (word[i >> 6] >> (i & 63)) & 1; }
  SPARRING_FN constexpr void set(int i) { word[i >> 6] |= u64{1} << (i & 63); }
  SPARRING_FN constexpr void clear(int i) { word[i >> 6] &= ~(u64{1} << (i & 63)); }

  SPARRING_FN int count() const { return count_bits<kWords>(word); }

  SPARRING_FN constexpr bool any() const {
    u64 all = 0;
    for (int w = 0; w < kWords; ++w) all |= word[w];
    return all != 0;
  }

  // The smallest member; the set must not be empty.
  SPARRING_FN int lowest() const {
    for (int w = 0; w < kWords; ++w)
      if (word[w]) return w * 64 + lowest_bit(word[w]);
    return -1;
  }

  // The k-th smallest member, counting from 0; -1 when there are not that many.
  SPARRING_FN int select(int k) const {
    SPARRING_FOR (int w = 0; w < kWords; ++w) {
      u64 rest = word[w];
      const int members = popcount(rest);
      if (k >= members) {
        k -= members;
        continue;
      }
      SPARRING_FOR (; k > 0; --k) rest &= rest - 1;
      return w * 64 + lowest_bit(rest);
    }
    return -1;
  }

  // Calls f(member) in ascending order.
  template <class F>
  SPARRING_FN void each(F&& f) const {
    SPARRING_FOR (int w = 0; w < kWords; ++w)
      SPARRING_FOR (u64 rest = word[w]; rest; rest &= rest - 1) f(w * 64 + lowest_bit(rest));
  }

  SPARRING_FN friend constexpr Bits operator&(Bits a, const Bits& b) {
    for (int w = 0; w < kWords; ++w) a.word[w] &= b.word[w];
    return a;
  }
  SPARRING_FN friend constexpr Bits operator|(Bits a, const Bits& b) {
    for (int w = 0; w < kWords; ++w) a.word[w] |= b.word[w];
    return a;
  }
  // Members of a that are not in b.
  SPARRING_FN friend constexpr Bits operator-(Bits a, const Bits& b) {
    for (int w = 0; w < kWords; ++w) a.word[w] &= ~b.word[w];
    return a;
  }
  SPARRING_FN friend constexpr bool operator==(const Bits& a, const Bits& b) {
    u64 differ = 0;
    for (int w = 0; w < kWords; ++w) differ |= a.word[w] ^ b.word[w];
    return differ == 0;
  }
};

// Bit i of `bits` becomes byte i of the result, 0 or 1.
SPARRING_FN inline u64 spread8(u32 bits) {
  const u64 picked = ((bits & 0xff) * 0x0101010101010101ull) & 0x8040201008040201ull;
  return ((picked + 0x7f7f7f7f7f7f7f7full) >> 7) & 0x0101010101010101ull;
}

#if defined(__ARM_NEON) && !defined(__CUDACC__)
// Bits 16 * part .. 16 * part + 15 of a word as 16 bytes.
template <int Part>
inline uint8x16_t spread16(uint8x16_t word) {
  const uint8x16_t pick = vcombine_u8(vdup_n_u8(2 * Part), vdup_n_u8(2 * Part + 1));
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
  return vshrq_n_u8(vtstq_u8(vqtbl1q_u8(word, pick), bit), 7);
}
#endif

// Writes byte i = whether i is in the set, and up to 15 bytes beyond the end: for rows that are
// filled from front to back, where full-width stores are faster than exact ones.
template <int Count>
SPARRING_FN inline void expand_bits_over(const Bits<Count>& set, u8* out) {
#if defined(__ARM_NEON) && !defined(__CUDACC__)
  for (int w = 0; w < set.kWords; ++w, out += 64) {
    const uint8x16_t word = vreinterpretq_u8_u64(vdupq_n_u64(set.word[w]));
    const int left = Count - 64 * w;
    vst1q_u8(out, spread16<0>(word));
    if (left > 16) vst1q_u8(out + 16, spread16<1>(word));
    if (left > 32) vst1q_u8(out + 32, spread16<2>(word));
    if (left > 48) vst1q_u8(out + 48, spread16<3>(word));
  }
#else
  SPARRING_FOR (int i = 0; i < Count; i += 8) {
    store8(out + i, spread8(static_cast<u32>(set.word[i >> 6] >> (i & 63))));
  }
#endif
}

// Writes exactly `count` bytes, byte i = whether i is in the set.
template <int N>
SPARRING_FN inline void expand_bits(const Bits<N>& set, int count, u8* out) {
  const u64* words = set.word;
  int i = 0;
#if defined(__ARM_NEON) && !defined(__CUDACC__)
  for (; i + 64 <= count; i += 64) {
    const uint8x16_t word = vreinterpretq_u8_u64(vdupq_n_u64(words[i >> 6]));
    vst1q_u8(out + i, spread16<0>(word));
    vst1q_u8(out + i + 16, spread16<1>(word));
    vst1q_u8(out + i + 32, spread16<2>(word));
    vst1q_u8(out + i + 48, spread16<3>(word));
  }
#endif
  SPARRING_FOR (; i + 8 <= count; i += 8) {
    store8(out + i, spread8(static_cast<u32>(words[i >> 6] >> (i & 63))));
  }
  if constexpr (Bits<N>::kWords > 1) {
    if (i < count && count > 64) {  // the last eight, ending exactly at the end
      i = count - 8;
      u64 window = words[i >> 6] >> (i & 63);
      if ((i & 63) > 56) window |= words[(i >> 6) + 1] << (64 - (i & 63));
      store8(out + i, spread8(static_cast<u32>(window)));
      return;
    }
  }
  SPARRING_FOR (; i < count; ++i) out[i] = static_cast<u8>(words[i >> 6] >> (i & 63) & 1);
}

}  // namespace sparring
