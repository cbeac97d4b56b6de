// Philox4x32-10, a counter-based generator: a random number is a pure function of (seed, game,
// episode, stream, number of the draw).
#pragma once

#include "core/fn.hpp"

namespace sparring {

// Separate streams, so that the draws of a bot do not change the cards that are dealt.
enum class Stream : u32 {
  kChance = 0,
  kBots = 1,
  kLineups = 2,
  kSampling = 3,
  kOpenings = 4,
  kExploring = 5,
  kReplay = 6,
  kMirrors = 7,  // also in src/sparring/learn/transforms.py
  kStarts = 8,
  kHindsight = 9,
  kSearch = 10,
  kWorlds = 11,
};

struct PhiloxBlock {
  u32 word[4];
};

SPARRING_FN inline PhiloxBlock philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
  SPARRING_FOR (int round = 0; round < 10; ++round) {
    const u64 p0 = u64{0xD2511F53} * c0;
    const u64 p1 = u64{0xCD9E8D57} * c2;
    const u32 n0 = static_cast<u32>(p1 >> 32) ^ c1 ^ k0;
    const u32 n2 = static_cast<u32>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<u32>(p1);
    c3 = static_cast<u32>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// One stream of one episode of one game. To continue it later only `drawn` has to be saved.
class Rng {
 public:
  SPARRING_FN Rng(u64 seed, u32 game, u32 episode, Stream stream, u32 drawn = 0)
      : seed_(seed),
        game_(game),
        episode_(episode),
        stream_(static_cast<u32>(stream)),
        drawn_(drawn),
        block_number_(~u32{0}),
        block_{} {}

  SPARRING_FN u32 next() {
    const u32 number = drawn_ >> 2;
    if (number != block_number_) {
      block_ = philox(number, stream_, episode_, game_, static_cast<u32>(seed_),
                      static_cast<u32>(seed_ >> 32));
      block_number_ = number;
    }
    return word(drawn_++ & 3);
  }

  // Uniform in 0..m-1 without bias (Lemire: multiply, reject the short remainder).
  SPARRING_FN int below(int m) {
    const u32 bound = static_cast<u32>(m);
    u64 product = u64{next()} * bound;
    if (static_cast<u32>(product) < bound) {
      const u32 threshold = (0u - bound) % bound;
      while (static_cast<u32>(product) < threshold) product = u64{next()} * bound;
    }
    return static_cast<int>(product >> 32);
  }

  // Uniform in [0, 1) in steps of 2^-24, exact in f32.
  SPARRING_FN f32 uniform() { return static_cast<f32>(next() >> 8) * (1.0f / 16777216.0f); }

  SPARRING_FN u32 drawn() const { return drawn_; }
  // The same stream after so many draws.
  SPARRING_FN Rng at(u32 draws) const {
    Rng other = *this;
    other.drawn_ = draws;
    return other;
  }

 private:
  // Indexed by a variable, the words and with them the whole Rng would be in memory on a GPU
  // instead of registers.
  SPARRING_FN u32 word(u32 i) const {
#if defined(__CUDA_ARCH__)
    const u32 low = i & 1 ? block_.word[1] : block_.word[0];
    const u32 high = i & 1 ? block_.word[3] : block_.word[2];
    return i & 2 ? high : low;
#else
    return block_.word[i];
#endif
  }

  u64 seed_;
  u32 game_, episode_, stream_, drawn_;
  u32 block_number_;
  PhiloxBlock block_;
};

}  // namespace sparring
