// How a warp works on 32 games: through shared memory, where they fit.
#pragma once

#include "core/table.hpp"
#include "cuda/view.cuh"

namespace sparring {

using G = SPARRING_GAME;
static_assert(Game<G>);

inline constexpr int kSeats = SPARRING_SEATS, kObsBytes = SPARRING_OBS_BYTES;
inline constexpr int kMemoryBytes = SPARRING_MEMORY_BYTES, kRowBytes = kObsBytes + kMemoryBytes;

// One warp plays up to 32 games. Their bytes and the rows they write pass through shared memory,
// where single bytes are cheap, and travel between there and the arrays as whole lines. Strides are
// odd in the table's alignment, so that the same byte of 32 games lies in 32 banks, or in 16 where
// that is 8 bytes. Games too large for that (SPARRING_STAGE_BYTES per warp) are played where they
// lie.
struct alignas(16) Vector16 {
  u64 half[2];
};
inline constexpr int kWarp = 32;
// A game may say that fewer games to a warp are faster: where some move far longer than others.
template <class Game>
inline constexpr int kPerWarpOf = kWarp;
template <class Game>
  requires requires { Game::kPerWarp; }
inline constexpr int kPerWarpOf<Game> = Game::kPerWarp;
using Word = u32;
inline constexpr int kWordBytes = static_cast<int>(sizeof(Word));
inline constexpr int kAlign = static_cast<int>(alignof(Table<G>));
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
inline constexpr int kTableUnits = static_cast<int>(sizeof(Table<G>) / sizeof(Unit));
inline constexpr int kTableStride = (static_cast<int>(sizeof(Table<G>)) / kAlign | 1) * kAlign;
inline constexpr int kRowWords = kRowBytes / kWordBytes, kRowStride = (kRowWords | 1) * kWordBytes;
inline constexpr int kStageBytes = kTableStride + kRowStride;  // of one game
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

// Sends for tables, all words of all of them at once: the few warps that fit beside each other
// would else wait for memory a few words at a time, for half as long again as a step takes.
__device__ inline void fetch_tables(Unit* to, const Unit* from, int games) {
#if __CUDA_ARCH__ >= 800
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const u32 base = static_cast<u32>(__cvta_generic_to_shared(to));
  for (int game = 0; game < games; ++game)
#pragma unroll
    for (int unit = lane; unit < kTableUnits; unit += kWarp)
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(
                       base + static_cast<u32>(game * kTableStride + unit * kAlign)),
                   "l"(from + i64{game} * kTableUnits + unit), "n"(kAlign)
                   : "memory");
#else
  move_games<kTableUnits>(to, kTableStride / kAlign, from, kTableUnits, games);
#endif
}

// Waits for what this thread has sent for.
__device__ inline void await_tables() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Where this thread's game and its rows are worked on.
class Stage {
 public:
  // All threads of the warp load together; the first `count` of them have a game.
  __device__ Stage(Table<G>* tables, int count) : tables_(tables), count_(count) {
    if constexpr (kStaged) {
      fetch_tables(reinterpret_cast<Unit*>(staged_tables()), reinterpret_cast<const Unit*>(tables),
                   count);
      u8* mine = staged_rows() + lane() * kRowStride;
      for (int i = kObsBytes - 16; lane() < count && i < kObsBytes; ++i)
        mine[i] = 0;  // padding stays 0
      await_tables();
      __syncwarp();
    }
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

  __device__ Table<G>& table() const {
    if constexpr (kStaged)
      return *reinterpret_cast<Table<G>*>(staged_tables() + lane() * kTableStride);
    else
      return tables_[lane()];
  }

  // Where to write a row that is to lie at `out`.
  __device__ u8* row(u8* out) const { return kStaged ? staged_rows() + lane() * kRowStride : out; }

  // Brings this thread's row to `out`.
  __device__ void put_row(u8* out) const {
    if constexpr (kStaged) {
      const Word* from = reinterpret_cast<const Word*>(row(out));
#pragma unroll 4
      for (int i = 0; i < kRowWords; ++i) reinterpret_cast<Word*>(out)[i] = from[i];
    }
  }

  // Brings the rows of all games of the warp, `apart` bytes from one game's to the next's.
  __device__ void put_rows(u8* out, int apart) const {
    if constexpr (kStaged) {
      __syncwarp();
      move_games<kRowWords>(reinterpret_cast<Word*>(out), apart / kWordBytes,
                            reinterpret_cast<const Word*>(staged_rows()), kRowStride / kWordBytes,
                            count_);
      __syncwarp();
    }
  }

  __device__ void put_tables() const {
    if constexpr (kStaged) {
      __syncwarp();
      move_games<kTableUnits>(reinterpret_cast<Unit*>(tables_), kTableUnits,
                              reinterpret_cast<const Unit*>(staged_tables()), kTableStride / kAlign,
                              count_);
    }
  }

 private:
  __device__ static u8* staged_tables() { return reinterpret_cast<u8*>(stage_bytes); }
  __device__ u8* staged_rows() const { return staged_tables() + count_ * kTableStride; }

  Table<G>* tables_;
  int count_;
};

}  // namespace sparring
