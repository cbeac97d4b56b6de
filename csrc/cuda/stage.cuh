// Staging of a warp's games in shared memory, where they fit.
#pragma once

#include "core/env.hpp"
#include "cuda/view.cuh"

namespace sparring {

using G = SPARRING_GAME;
static_assert(Game<G>);

inline constexpr int kSeats = SPARRING_SEATS, kObsBytes = SPARRING_OBS_BYTES;
inline constexpr int kMemoryBytes = SPARRING_MEMORY_BYTES, kRowBytes = kObsBytes + kMemoryBytes;

// One warp plays up to 32 games. Their bytes and the rows they write are staged in shared memory,
// where access to single bytes is cheap, and move between there and global memory in full lines.
// Strides are odd multiples of the Env's alignment, so that the same byte of 32 games is in 32
// different banks (16 with an alignment of 8). Games that exceed SPARRING_STAGE_BYTES per warp are
// played in global memory.
struct alignas(16) Vector16 {
  u64 half[2];
};
inline constexpr int kWarp = 32;
// A game may declare fewer games per warp: faster where some moves take much longer than others.
template <class Game>
inline constexpr int kPerWarpOf = kWarp;
template <class Game>
  requires requires { Game::kPerWarp; }
inline constexpr int kPerWarpOf<Game> = Game::kPerWarp;
using Word = u32;
inline constexpr int kWordBytes = static_cast<int>(sizeof(Word));
inline constexpr int kAlign = static_cast<int>(alignof(Env<G>));
// The largest piece in which a game's bytes can be moved.
template <int Align>
struct UnitOf {
  using Type = u32;
};
template <>
struct UnitOf<8> {
  using Type = u64;
};
using Unit = UnitOf<kAlign>::Type;
inline constexpr int kEnvUnits = static_cast<int>(sizeof(Env<G>) / sizeof(Unit));
inline constexpr int kEnvStride = (static_cast<int>(sizeof(Env<G>)) / kAlign | 1) * kAlign;
inline constexpr int kRowWords = kRowBytes / kWordBytes, kRowStride = (kRowWords | 1) * kWordBytes;
inline constexpr int kStageBytes = kEnvStride + kRowStride;  // of one game
inline constexpr bool kStaged = kWarp * kStageBytes <= SPARRING_STAGE_BYTES;
extern __shared__ Vector16 stage_bytes[];
static_assert(kAlign == sizeof(Unit) && kRowBytes % 16 == 0);

// Moves the same number of words of every game between two strides, all lanes together.
template <int Words, class Unit>
__device__ inline void move_games(Unit* to, int to_stride, const Unit* from, int from_stride,
                                  int games) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll 4
  for (int game = 0; game < games; ++game)
#pragma unroll
    for (int word = lane; word < Words; word += kWarp)
      to[game * to_stride + word] = from[game * from_stride + word];
}

// Loads Envs by asynchronous copies of all words at once: with few warps per processor, loads of a
// few words at a time would make a step take half as long again.
__device__ inline void fetch_envs(Unit* to, const Unit* from, int games) {
#if __CUDA_ARCH__ >= 800
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const u32 base = static_cast<u32>(__cvta_generic_to_shared(to));
  for (int game = 0; game < games; ++game)
#pragma unroll
    for (int unit = lane; unit < kEnvUnits; unit += kWarp)
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(
                       base + static_cast<u32>(game * kEnvStride + unit * kAlign)),
                   "l"(from + i64{game} * kEnvUnits + unit), "n"(kAlign)
                   : "memory");
#else
  move_games<kEnvUnits>(to, kEnvStride / kAlign, from, kEnvUnits, games);
#endif
}

// Waits for the asynchronous copies of this thread.
__device__ inline void await_envs() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Working memory of this thread's game and its rows.
class Stage {
 public:
  // All threads of the warp load together; the first `count` of them have a game.
  __device__ Stage(Env<G>* envs, int count) : envs_(envs), count_(count) {
    if constexpr (kStaged) {
      fetch_envs(reinterpret_cast<Unit*>(staged_envs()), reinterpret_cast<const Unit*>(envs),
                 count);
      u8* staged_row = staged_rows() + lane() * kRowStride;
      for (int i = kObsBytes - 16; lane() < count && i < kObsBytes; ++i)
        staged_row[i] = 0;  // padding stays 0
      await_envs();
      __syncwarp();
    }
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

  __device__ Env<G>& env() const {
    if constexpr (kStaged)
      return *reinterpret_cast<Env<G>*>(staged_envs() + lane() * kEnvStride);
    else
      return envs_[lane()];
  }

  // Where to write the row for `out`.
  __device__ u8* row(u8* out) const { return kStaged ? staged_rows() + lane() * kRowStride : out; }

  // Copies this thread's row to `out`.
  __device__ void put_row(u8* out) const {
    if constexpr (kStaged) {
      const Word* from = reinterpret_cast<const Word*>(row(out));
#pragma unroll 4
      for (int i = 0; i < kRowWords; ++i) reinterpret_cast<Word*>(out)[i] = from[i];
    }
  }

  // Copies the rows of all games of the warp, `stride` bytes apart.

  __device__ void put_rows(u8* out, int stride) const {
    if constexpr (kStaged) {
      __syncwarp();
      move_games<kRowWords>(reinterpret_cast<Word*>(out), stride / kWordBytes,
                            reinterpret_cast<const Word*>(staged_rows()), kRowStride / kWordBytes,
                            count_);
      __syncwarp();
    }
  }

  __device__ void put_envs() const {
    if constexpr (kStaged) {
      __syncwarp();
      move_games<kEnvUnits>(reinterpret_cast<Unit*>(envs_), kEnvUnits,
                            reinterpret_cast<const Unit*>(staged_envs()), kEnvStride / kAlign,
                            count_);
    }
  }

 private:
  __device__ static u8* staged_envs() { return reinterpret_cast<u8*>(stage_bytes); }
  __device__ u8* staged_rows() const { return staged_envs() + count_ * kEnvStride; }

  Env<G>* envs_;
  int count_;
};

}  // namespace sparring
