// A pool on the GPU: one thread plays one game, one warp 32 of them, through the very headers that
// the CPU uses.
//
// NVRTC compiles this file behind a game's header, with the name of its type (SPARRING_GAME) and
// the sizes that its configuration gives: SPARRING_SEATS, SPARRING_ACTIONS, SPARRING_OBS_BYTES,
// SPARRING_SIDE_BYTES, SPARRING_ZERO_SUM, and SPARRING_STAGE_BYTES of shared memory at most.
// src/sparring/pools/cuda.py launches the kernels.
#pragma once

#include "core/table.hpp"

namespace sparring {

using G = SPARRING_GAME;
static_assert(Game<G>);

inline constexpr int kSeats = SPARRING_SEATS, kObsBytes = SPARRING_OBS_BYTES;
inline constexpr int kPaid = kSeats * G::kRoles;
inline constexpr bool kZeroSum =
    SPARRING_ZERO_SUM;  // what one of two seats is paid, the other loses

// One warp plays 32 games. Their bytes and the rows they write pass through shared memory, where
// single bytes are cheap, and travel between there and the arrays as whole lines. Strides are odd
// in the table's alignment, so that the same byte of 32 games lies in 32 banks, or in 16 where that
// is 8 bytes. Games too large for that (SPARRING_STAGE_BYTES per warp) are played where they lie.
struct alignas(16) Vector16 {
  u64 half[2];
};
inline constexpr int kWarp = 32;
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
inline constexpr int kRowWords = kObsBytes / kWordBytes, kRowStride = (kRowWords | 1) * kWordBytes;
inline constexpr int kStageBytes = kWarp * (kTableStride + kRowStride);
inline constexpr bool kStaged = kStageBytes <= SPARRING_STAGE_BYTES;
extern __shared__ Vector16 stage_bytes[];
static_assert(kAlign == sizeof(Unit) && kObsBytes % 16 == 0);

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

// What the games of a warp share, brought close. `each` neighbouring games, a multiple of a warp,
// have one setting and count from 0 within it.
__device__ inline void load_setting(Setting<G>& to, const OwnSetting<G>* settings, int first,
                                    int each) {
  const OwnSetting<G>& from = settings[first / each];
  const Setting<G>& plain = from;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < static_cast<int>(sizeof(to) / 4);
       i += kWarp)
    reinterpret_cast<u32*>(&to)[i] = reinterpret_cast<const u32*>(&plain)[i];
  __syncwarp();
  if (threadIdx.x % kWarp == 0) to.lineup = from.own_lineups;
  __syncwarp();
}

SPARRING_FN inline u8* side_of(u8* side, int game) {
  return side + i64{game} * SPARRING_SIDE_BYTES;
}

SPARRING_FN inline int thread_index() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// Where this thread's game and its rows are worked on.
class Stage {
 public:
  // All threads of the warp load together; `count` of them have a game.
  __device__ Stage(Table<G>* tables, int count) : tables_(tables), count_(count) {
    if constexpr (kStaged) {
      move_games<kTableUnits>(reinterpret_cast<Unit*>(staged_tables()), kTableStride / kAlign,
                              reinterpret_cast<const Unit*>(tables), kTableUnits, count);
      u8* mine = staged_rows() + lane() * kRowStride;
      for (int i = kObsBytes - 16; i < kObsBytes; ++i) mine[i] = 0;  // padding stays 0
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
  __device__ static u8* staged_rows() { return staged_tables() + kWarp * kTableStride; }

  Table<G>* tables_;
  int count_;
};

SPARRING_FN inline void observe_into(u8* row, const Table<G>& table, const Setting<G>& setting,
                                     int seat, const u8* side) {
  if (seat < 0)
    zero_bytes(row, kObsBytes);
  else
    call_observe(table.game, setting.config, seat, row, side);
}

// Where the rows that ask for a decision are written; `obs` may be null.
struct Rows {
  u8* obs;
  Legal<G>* legal;
  i8* seat;
  i8* role;
  i16* policy;

  // Called by all threads of a warp; `mine` says whether this one has a game.
  __device__ void write(const Stage& stage, const Setting<G>& setting, int game, bool mine,
                        const Legal<G>* now, const u8* side) const {
    const Table<G>& table = stage.table();
    for (int r = 0; r < G::kRows; ++r) {
      const i64 row = i64{game} * G::kRows + r;
      if (mine) {
        const int s = table.game.seat(r);
        legal[row] = now[r];
        seat[row] = static_cast<i8>(s);
        role[row] = static_cast<i8>(s < 0 ? 0 : table.game.role(r));
        policy[row] = s < 0 || table.player[s] < 0 ? static_cast<i16>(kNobody) : table.player[s];
        if (obs) observe_into(stage.row(obs + row * kObsBytes), table, setting, s, side);
      }
      if (!obs) continue;
      const i64 first = i64{game - Stage::lane()} * G::kRows + r;
      stage.put_rows(obs + first * kObsBytes, G::kRows * kObsBytes);
    }
  }
};

// What the last step brought, by game.
struct Outcome {
  f32* reward;
  u16* skipped;
  u8* terminated;
  u8* truncated;

  SPARRING_FN void clear(int game) const {
    for (int i = 0; i < kPaid; ++i) reward[i64{game} * kPaid + i] = 0;
    for (int i = 0; i < kSeats; ++i) skipped[i64{game} * kSeats + i] = 0;
    terminated[game] = truncated[game] = 0;
  }

  SPARRING_FN void write(int game, const f32* paid, const u16* forced, const Result& result) const {
    for (int i = 0; i < kPaid; ++i) reward[i64{game} * kPaid + i] = paid[i];
    for (int i = 0; i < kSeats; ++i) skipped[i64{game} * kSeats + i] = forced[i];
    terminated[game] = result.terminated;
    truncated[game] = result.truncated;
  }
};

// Games that ended, by game; the caller picks those whose end the step reported. Any may be null.
struct Finals {
  u8* obs;          // [games, seats, obs_bytes]
  Legal<G>* legal;  // [games, seats], where a seat was still to act
  f32* score;       // [games, seats]
  i16* policy;      // [games, seats]
  i32* length;
  u8* reason;

  __device__ void keep(const Stage& stage, const Setting<G>& setting, int game,
                       const Result& result, const u8* side) const {
    const Table<G>& table = stage.table();
    const i64 first = i64{game} * kSeats;
    if (length) {
      length[game] = static_cast<i32>(table.length);
      reason[game] = result.reason;
      for (int s = 0; s < kSeats; ++s) {
        score[first + s] = table.game.score(setting.config, s);
        policy[first + s] = table.player[s];
      }
    }
    if (!obs) return;
    for (int s = 0; s < kSeats; ++s) {
      u8* out = obs + (first + s) * kObsBytes;
      observe_into(stage.row(out), table, setting, s, side);
      stage.put_row(out);
      legal[first + s] = Legal<G>::none();
    }
    if (!result.truncated) return;
    for (int r = 0; r < G::kRows; ++r)
      if (const int s = table.game.seat(r); s >= 0)
        call_legal(table.game, setting.config, r, legal[first + s], side);
  }
};

// What a learner keeps of games that ended: sums for its statistics, and the observations from
// which the worth of a cut game is estimated. Null pointers leave it out. `room` is per setting.
struct Ends {
  f32* earned;     // [games, 4]: games, their decisions, the learner's seats, those seats' points
  u8* cut_obs;     // [settings, room, obs_bytes]
  i32* cut_at;     // [settings, room]: ((step * games + game) * seats + seat) * 2, and 1 more if
                   // the other seat of a zero-sum game loses what this one wins
  i32* cut_count;  // [settings]
  int room, step, games, each;

  __device__ void keep(const Stage& stage, const Setting<G>& setting, int game,
                       const Result& result, const u8* side) const {
    if (!earned) return;
    const Table<G>& table = stage.table();
    f32* mine = earned + i64{game} * 4;
    mine[0] += 1;
    mine[1] += static_cast<f32>(table.length);
    for (int s = 0; s < kSeats; ++s) {
      if (table.player[s] != 0) continue;
      mine[2] += 1;
      mine[3] += table.game.score(setting.config, s);
    }
    if (!result.truncated) return;
    int movers = 0;
    for (int r = 0; r < G::kRows; ++r) movers += table.game.seat(r) >= 0;
    for (int r = 0; r < G::kRows; ++r) {
      const int s = table.game.seat(r), which = game / each;
      if (s < 0) continue;
      const int next = atomicAdd(cut_count + which, 1);
      if (next >= room) return;  // without an estimate the decision is dropped, not guessed
      const i64 at = i64{which} * room + next;
      cut_at[at] = ((step * games + game) * kSeats + s) * 2 + (kZeroSum && movers == 1);
      u8* out = cut_obs + at * kObsBytes;
      observe_into(stage.row(out), table, setting, s, side);
      stage.put_row(out);
    }
  }
};

// An action that cannot be played freezes its game: it stands still, row and all, until the
// caller looks. The action is kept for the error.
SPARRING_FN inline bool refuses(const Table<G>& table, const Legal<G>* legal,
                                const G::Action* given, int game, u8* frozen, G::Action* refused) {
  if (frozen[game]) return true;
  for (int r = 0; r < G::kRows; ++r) {
    const int s = table.game.seat(r);
    if (s < 0 || table.player[s] < 0 || is_playable<G>(legal[r], given[r], SPARRING_ACTIONS))
      continue;
    frozen[game] = static_cast<u8>(r + 1);
    refused[i64{game} * G::kRows + r] = given[r];
    return true;
  }
  return false;
}

// Plays on until a policy has to decide, through the end of the episode if it comes to that:
// `answer` and `begin` as one loop. The rules stand here once, so that the compiler can inline all
// of them, and games that end keep step with their neighbours. `given` answers the rows that came
// out last; without it a new episode begins. `at_end` is told how the first episode ended.
template <class AtEnd>
__device__ inline void advance(Table<G>& table, const Setting<G>& setting, u32 game, u8* side,
                               Legal<G>* legal, const G::Action* given, f32* paid, AtEnd at_end) {
  bool playing = given != nullptr, forced = false, own_episode = playing;
  Result result = result_into(own_episode ? paid : table.pending, setting);
  for (;;) {
    if (playing) play(table, setting, game, side, legal, given, forced, result);
    if (!playing || result.over()) {
      if (own_episode) at_end(result);
      own_episode = false;
      deal_episode(table, setting, game, side);
      result = result_into(table.pending, setting);
    }
    playing = true;
    const Turn turn = look(table, setting, side, legal);
    if (turn == Turn::kPolicies) return;
    forced = turn == Turn::kForced;
    given = nullptr;
  }
}

extern "C" __global__ void sizes(i32* out) {
  out[0] = sizeof(Table<G>);
  out[1] = sizeof(OwnSetting<G>);
  out[2] = sizeof(Legal<G>);
  out[3] = kStaged ? kStageBytes : 0;
}

extern "C" __global__ void __launch_bounds__(kWarp)
    step(Table<G>* tables, const OwnSetting<G>* settings, int games, int each, u8* side,
         const Legal<G>* legal_before, const G::Action* actions, u8* frozen, G::Action* refused,
         // rows
         u8* obs, Legal<G>* legal, i8* seat, i8* role, i16* policy,
         // outcome
         f32* reward, u16* skipped, u8* terminated, u8* truncated,
         // finals
         u8* final_obs, Legal<G>* final_legal, f32* final_score, i16* final_policy,
         i32* final_length, u8* final_reason,
         // ends
         f32* earned, u8* cut_obs, i32* cut_at, i32* cut_count, int cut_room, int step_number) {
  const int game = thread_index(), first = game - Stage::lane();
  const bool mine = game < games;
  const Stage stage(tables + first, least(games - first, kWarp));
  const Rows rows{obs, legal, seat, role, policy};
  const Outcome outcome{reward, skipped, terminated, truncated};
  __shared__ Setting<G> setting;
  load_setting(setting, settings, first, each);
  const u32 global = setting.first_game + static_cast<u32>(game % each);
  u8* aside = side_of(side, game);
  Legal<G> now[G::kRows];
  if (mine) {
    Table<G>& table = stage.table();
    G::Action given[G::kRows];
    for (int r = 0; r < G::kRows; ++r) {
      now[r] = legal_before[i64{game} * G::kRows + r];
      given[r] = actions[i64{game} * G::kRows + r];
    }
    if (refuses(table, now, given, game, frozen, refused)) {
      outcome.clear(game);
    } else {
      f32 paid[kPaid];
      collect_pending(table, setting, paid);
      bool over = false;
      advance(table, setting, global, aside, now, given, paid, [&](const Result& result) {
        over = true;
        outcome.write(game, paid, table.skipped, result);
        const Finals finals{final_obs,    final_legal,  final_score,
                            final_policy, final_length, final_reason};
        const Ends ends{earned, cut_obs, cut_at, cut_count, cut_room, step_number, games, each};
        finals.keep(stage, setting, game, result, aside);
        ends.keep(stage, setting, game, result, aside);
      });
      if (!over) outcome.write(game, paid, table.skipped, Result{});
    }
  }
  rows.write(stage, setting, game, mine, now, aside);
  stage.put_tables();
}

// Begins a new episode in every game (`restart`), or writes the rows of the games as they stand,
// after their bytes were replaced.
extern "C" __global__ void __launch_bounds__(kWarp)
    open_rows(Table<G>* tables, const OwnSetting<G>* settings, int games, int each, u8* side,
              int restart, u8* frozen, u8* obs, Legal<G>* legal, i8* seat, i8* role, i16* policy,
              f32* reward, u16* skipped, u8* terminated, u8* truncated) {
  const int game = thread_index(), first = game - Stage::lane();
  const bool mine = game < games;
  const Stage stage(tables + first, least(games - first, kWarp));
  const Rows rows{obs, legal, seat, role, policy};
  const Outcome outcome{reward, skipped, terminated, truncated};
  __shared__ Setting<G> setting;
  load_setting(setting, settings, first, each);
  const u32 global = setting.first_game + static_cast<u32>(game % each);
  u8* aside = side_of(side, game);
  Legal<G> now[G::kRows];
  if (mine) {
    Table<G>& table = stage.table();
    frozen[game] = 0;
    outcome.clear(game);
    if (restart) {
      advance(table, setting, global, aside, now, nullptr, nullptr, [](const Result&) {});
    } else {
      for (int r = 0; r < G::kRows; ++r) {
        now[r] = Legal<G>::none();
        if (table.game.seat(r) >= 0) call_legal(table.game, setting.config, r, now[r], aside);
      }
    }
  }
  rows.write(stage, setting, game, mine, now, aside);
  stage.put_tables();
}

// Uniform legal actions from each game's sampling stream.
extern "C" __global__ void sample_actions(Table<G>* tables, const OwnSetting<G>* settings,
                                          int games, int each, const Legal<G>* legal,
                                          const i16* policy, G::Action* out) {
  const int game = thread_index();
  if (game >= games) return;
  const Setting<G>& setting = settings[game / each];
  Table<G>& table = tables[game];
  Rng rng(setting.seed, setting.first_game + static_cast<u32>(game % each), table.episode,
          Stream::kSampling, table.sampled);
  for (int r = 0; r < G::kRows; ++r) {
    const i64 row = i64{game} * G::kRows + r;
    out[row] = policy[row] >= 0 ? sample_action<G>(legal[row], rng) : G::Action{};
  }
  table.sampled = rng.drawn();
}

// One byte per action, four at a time.
extern "C" __global__ void expand_masks(const Legal<G>* legal, i64 bytes, u8* mask) {
  const i64 at = (i64{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (at >= bytes) return;
  u32 four = 0;
  for (int i = 0; i < 4; ++i) {
    const i64 row = (at + i) / most(SPARRING_ACTIONS, 1);
    const int action = static_cast<int>((at + i) % most(SPARRING_ACTIONS, 1));
    if (at + i < bytes && legal[row].test(action)) four |= 1u << (8 * i);
  }
  if (at + 4 <= bytes)
    *reinterpret_cast<u32*>(mask + at) = four;
  else
    for (int i = 0; at + i < bytes; ++i) mask[at + i] = static_cast<u8>(four >> (8 * i));
}

}  // namespace sparring
