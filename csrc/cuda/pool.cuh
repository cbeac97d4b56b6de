// A pool on the GPU: one thread plays one game, one warp up to 32 of them, through the very headers
// that the CPU uses.
//
// NVRTC compiles this file behind a game's header, with the name of its type (SPARRING_GAME) and
// the sizes that its configuration gives: SPARRING_SEATS, SPARRING_ACTIONS, SPARRING_OBS_BYTES,
// SPARRING_MEMORY_BYTES, SPARRING_EXTRA_BYTES, SPARRING_ZERO_SUM, and SPARRING_STAGE_BYTES of
// shared memory at most. src/sparring/pools/cuda launches the kernels.
#pragma once

#include "cuda/stage.cuh"

namespace sparring {

inline constexpr int kPaid = kSeats * G::kRoles;
inline constexpr bool kZeroSum =
    SPARRING_ZERO_SUM;  // what one of two seats is paid, the other loses

// The games: `each` neighbors have one setting and count from 0 within it.
struct GamesView {
  Table<G>* tables;
  const SettingStorage<G>* settings;
  int games, each;
  int per_warp;  // games that a warp plays, at most 32; the fewer, the fewer wait for a slow bot
  u8* extra;
  u8* memory;   // [games, seats, kMemoryBytes]
  i64* counts;  // [members, replicas, counters], the learner's; null: nobody counts
  int replicas;

  // Blocks add to different replicas, so that they seldom wait for each other.
  __device__ Counting counting(int game) const {
    if (kCounterCount<G> == 0 || !counts) return {};
    const i64 replica = i64{game / each} * replicas + static_cast<int>(blockIdx.x) % replicas;
    return {counts + replica * kCounterCount<G>, 0};
  }
  SPARRING_FN u8* extra_of(int game) const { return extra + i64{game} * SPARRING_EXTRA_BYTES; }
  SPARRING_FN u8* memory_of(int game) const { return memory + i64{game} * kSeats * kMemoryBytes; }
};

// What the games of a warp share, brought close; `each` is a multiple of a warp, or all games.
__device__ inline void load_setting(Setting<G>& to, const GamesView& games, int first) {
  const SettingStorage<G>& from = games.settings[first / games.each];
  const Setting<G>& plain = from;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < static_cast<int>(sizeof(to) / 4);
       i += kWarp)
    reinterpret_cast<u32*>(&to)[i] = reinterpret_cast<const u32*>(&plain)[i];
  __syncwarp();
  if (threadIdx.x % kWarp == 0) {
    to.lineup = from.lineup_storage;
    to.mix = from.mix_storage;
  }
  __syncwarp();
}

SPARRING_FN inline void clear_memory(u8* memory) {
  for (int i = 0; i < kSeats * kMemoryBytes / kWordBytes; ++i)
    reinterpret_cast<Word*>(memory)[i] = 0;
}

// The games of this warp: `game` is the thread's own, if it has one.
struct Share {
  int first, count, game;
  bool mine;

  // The games of a member are shared out among warps of its own.
  __device__ explicit Share(const GamesView& games) {
    const int warps = (games.each + games.per_warp - 1) / games.per_warp;
    const int member = static_cast<int>(blockIdx.x) / warps;
    const int at = static_cast<int>(blockIdx.x) % warps * games.per_warp;
    first = member * games.each + at;
    count = least(games.each - at, games.per_warp);
    game = first + Stage::lane();
    mine = Stage::lane() < count;
  }
};

SPARRING_FN inline int thread_index() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// Writes what a seat is shown, its memory behind the observation; zeros where nobody is to act.
// `memory` is that of seat 0.
SPARRING_FN inline void observe_into(u8* row, const Table<G>& table, const Setting<G>& setting,
                                     int seat, const u8* extra, const u8* memory) {
  if (seat < 0) {
    zero_bytes(row, kRowBytes);
    return;
  }
  call_observe(table.game, setting.config, seat, row, extra);
  if constexpr (kMemoryBytes > 0) {
    const Word* from = reinterpret_cast<const Word*>(memory + seat * kMemoryBytes);
    Word* to = reinterpret_cast<Word*>(row + kObsBytes);
    for (int i = 0; i < kMemoryBytes / kWordBytes; ++i) to[i] = from[i];
  }
}

// One game as its thread sees it.
struct Seen {
  const Stage& stage;
  const Setting<G>& setting;
  int game;
  u8* extra;
  u8* memory;
};

// Where the rows that ask for a decision are written; `obs` may be null.
struct RowsView {
  u8* obs;  // [rows, kRowBytes]
  Legal<G>* legal;
  i8* seat;
  i8* role;
  i16* policy;

  // Called by all threads of a warp; `mine` says whether this one has a game.
  __device__ void write(const Seen& seen, bool mine, const Legal<G>* now) const {
    const Stage& stage = seen.stage;
    const Table<G>& table = seen.stage.table();
    for (int r = 0; r < G::kRows; ++r) {
      const i64 row = i64{seen.game} * G::kRows + r;
      if (mine) {
        const int s = table.game.seat(r);
        legal[row] = now[r];
        seat[row] = static_cast<i8>(s);
        role[row] = static_cast<i8>(s < 0 ? 0 : table.game.role(r));
        policy[row] = s < 0 || table.player[s] < 0 ? static_cast<i16>(kNoPlayer) : table.player[s];
        if (obs)
          observe_into(stage.row(obs + row * kRowBytes), table, seen.setting, s, seen.extra,
                       seen.memory);
      }
      if (!obs) continue;
      const i64 first = i64{seen.game - Stage::lane()} * G::kRows + r;
      stage.put_rows(obs + first * kRowBytes, G::kRows * kRowBytes);
    }
  }
};

// What the last step brought, by game.
struct OutcomeView {
  f32* reward;
  u16* skipped;
  u8* terminated;
  u8* truncated;
  u32* record;  // [games, seats], what came of goals; may be null

  SPARRING_FN u32* records_of(int game) const {
    return record ? record + i64{game} * kSeats : nullptr;
  }

  SPARRING_FN void clear(int game) const {
    for (int i = 0; i < kPaid; ++i) reward[i64{game} * kPaid + i] = 0;
    for (int i = 0; i < kSeats; ++i) skipped[i64{game} * kSeats + i] = 0;
    terminated[game] = truncated[game] = 0;
    clear_records(game);
  }

  SPARRING_FN void clear_records(int game) const {
    for (int i = 0; record && i < kSeats; ++i) record[i64{game} * kSeats + i] = 0;
  }

  SPARRING_FN void write(int game, const f32* paid, const u16* forced, const Result& result) const {
    for (int i = 0; i < kPaid; ++i) reward[i64{game} * kPaid + i] = paid[i];
    for (int i = 0; i < kSeats; ++i) skipped[i64{game} * kSeats + i] = forced[i];
    terminated[game] = result.terminated;
    truncated[game] = result.truncated;
  }
};

// Games that ended, by game; the caller picks those whose end the step reported. Without `length`
// nothing is kept but rows, without `obs` no rows, without `legal` no masks.
struct FinalsView {
  u8* obs;          // [games, seats, kRowBytes]
  Legal<G>* legal;  // [games, seats], where a seat was still to act
  f32* score;       // [games, seats]
  i16* policy;      // [games, seats]
  i32* length;
  u8* reason;

  __device__ void keep(const Seen& seen, const Result& result) const {
    const Table<G>& table = seen.stage.table();
    const i64 first = i64{seen.game} * kSeats;
    if (length) {
      length[seen.game] = static_cast<i32>(table.length);
      reason[seen.game] = result.reason;
      SPARRING_FOR (int s = 0; s < kSeats; ++s) {
        score[first + s] = table.game.score(seen.setting.config, s);
        policy[first + s] = table.player[s];
      }
    }
    SPARRING_FOR (int s = 0; obs && s < kSeats; ++s) {
      u8* out = obs + (first + s) * kRowBytes;
      observe_into(seen.stage.row(out), table, seen.setting, s, seen.extra, seen.memory);
      seen.stage.put_row(out);
    }
    if (!legal) return;
    SPARRING_FOR (int s = 0; s < kSeats; ++s) legal[first + s] = Legal<G>::none();
    if (!result.truncated) return;
    SPARRING_FOR (int r = 0; r < G::kRows; ++r)
      if (const int s = table.game.seat(r); s >= 0)
        call_legal(table.game, seen.setting.config, r, legal[first + s], seen.extra);
  }
};

// Sums over the games that ended in one place of the pool; seats and score are the learner's.
struct Earned {
  f32 games, length, seats, score;
};

// How the learner did against everybody it met: by score, each of its seats against each other one.
struct MetView {
  u32* met;      // [members, players, won drawn lost]; null: nobody counts
  int policies;  // of the players; bots come behind them
  int players, each;

  // Sums of whole numbers: no order of threads matters.
  __device__ void count(const Table<G>& table, const Setting<G>& setting, int game,
                        int learner) const {
    f32 score[kSeats];
    SPARRING_FOR (int s = 0; s < kSeats; ++s) score[s] = table.game.score(setting.config, s);
    SPARRING_FOR (int s = 0; s < kSeats; ++s) {
      const int player = table.player[s];
      if (player == learner || player == kNoPlayer) continue;
      const int at = player >= 0 ? player : policies + kRandomBot - player;
      if (at >= players) continue;
      u32 found[3] = {0, 0, 0};
      SPARRING_FOR (int mine = 0; mine < kSeats; ++mine)
        if (table.player[mine] == learner)
          ++found[score[mine] > score[s] ? 0 : score[mine] == score[s] ? 1 : 2];
      u32* to = met + (i64{game / each} * players + at) * 3;
      SPARRING_FOR (int i = 0; i < 3; ++i)
        if (found[i]) atomicAdd(to + i, found[i]);
    }
  }
};

// What a learner keeps of games that ended: sums for its statistics, and the rows from which the
// worth of a cut game is estimated. Without `earned` it keeps nothing.
struct EndsView {
  Earned* earned;  // [games]
  u8* cut_obs;     // [layers, games * rows, kRowBytes]; a game's first cut is in layer 0
  i32* cut_at;     // [layers, games * rows]: ((step * games + game) * seats + seat) * 2, and 1 more
                   // if the other seat of a zero-sum game loses what this one wins; -1: nobody's
  i32* cut_count;  // [games], those that found no room included
  f32* score;      // [games, seats], of the games that end in this step; null: nobody asks
  int layers, step;
  int learner;  // its policy id
  MetView met;

  __device__ void keep(const Seen& seen, const Result& result, int games) const {
    if (!earned) return;
    const Table<G>& table = seen.stage.table();
    Earned& mine = earned[seen.game];
    mine.games += 1;
    mine.length += static_cast<f32>(table.length);
    SPARRING_FOR (int s = 0; s < kSeats; ++s) {
      if (table.player[s] != learner) continue;
      mine.seats += 1;
      mine.score += table.game.score(seen.setting.config, s);
    }
    SPARRING_FOR (int s = 0; score && s < kSeats; ++s)
      score[i64{seen.game} * kSeats + s] = table.game.score(seen.setting.config, s);
    if (met.met) met.count(table, seen.setting, seen.game, learner);
    if (!result.truncated) return;
    const int layer = cut_count[seen.game]++;
    if (layer >= layers) return;  // without an estimate the decision is dropped, not guessed
    int movers = 0;
    SPARRING_FOR (int r = 0; r < G::kRows; ++r) movers += table.game.seat(r) >= 0;
    SPARRING_FOR (int r = 0; r < G::kRows; ++r) {
      const i64 at = (i64{layer} * games + seen.game) * G::kRows + r;
      const int s = table.game.seat(r);
      cut_at[at] = -1;
      if (s < 0) continue;
      cut_at[at] = ((step * games + seen.game) * kSeats + s) * 2 + (kZeroSum && movers == 1);
      u8* out = cut_obs + at * kRowBytes;
      observe_into(seen.stage.row(out), table, seen.setting, s, seen.extra, seen.memory);
      seen.stage.put_row(out);
    }
  }
};

// Freezes a table that asked nobody for so long that it never will; other numbers name a row.
inline constexpr u8 kStuck = 255;
inline constexpr u32 kEndless = 1u << 24;  // decisions of an episode that only a stuck one has
static_assert(G::kRows < kStuck);

// The answers to the rows that came out last. One that cannot be played freezes its game: it stands
// still, row and all, until the caller looks. The action is kept for the error.
struct ActionsView {
  const Legal<G>* legal;
  const G::Action* action;
  u8* frozen;  // by game, 1 + the row whose action was refused, or kStuck
  G::Action* refused;

  SPARRING_FN bool refuses(const Table<G>& table, const Legal<G>* now, const G::Action* given,
                           int game) const {
    if (frozen[game]) return true;
    for (int r = 0; r < G::kRows; ++r) {
      const int s = table.game.seat(r);
      if (s < 0 || table.player[s] < 0 || is_playable<G>(now[r], given[r], SPARRING_ACTIONS))
        continue;
      frozen[game] = static_cast<u8>(r + 1);
      refused[i64{game} * G::kRows + r] = given[r];
      return true;
    }
    return false;
  }
};

// Plays on until a policy has to decide, through the end of the episode if it comes to that:
// `answer` and `begin` as one loop. The rules stand here once, so that the compiler can inline all
// of them, and games that end keep step with their neighbors. `given` answers the rows that came
// out last; without it a new episode begins. `at_end` is told how the first episode ended. False:
// no policy will ever be asked, and the table is given up. That is told by counts that lie in
// memory, because a counter of the loop would cost a register in all the rules.
template <class AtEnd>
__device__ inline bool advance(Table<G>& table, const Setting<G>& setting, u32 game, u8* extra,
                               Legal<G>* legal, const G::Action* given, f32* paid,
                               Counting counting, u32* records, AtEnd at_end) {
  __shared__ u32 unasked[kWarp];  // episodes in a row that ended without a question
  bool playing = given != nullptr, forced = false, own_episode = playing;
  Result result = result_into(own_episode ? paid : table.pending, setting, table.player, counting);
  if (own_episode) result.recorder.records = records;
  for (;;) {
    if (playing) play(table, setting, game, extra, legal, given, forced, result);
    if (!playing || result.over()) {
      u32& count = unasked[Stage::lane()];
      count = own_episode || !playing ? 0 : count + 1;
      if (count == kMaxUnasked) return false;
      if (own_episode) at_end(result);
      own_episode = false;
      deal_episode(table, setting, game, extra);
      result = result_into(table.pending, setting, table.player, counting);
    }
    playing = true;
    const Turn turn = look(table, setting, extra, legal);
    if (turn == Turn::kPolicies) return true;
    if (table.length >= kEndless) return false;
    forced = turn == Turn::kForced;
    given = nullptr;
  }
}

// The two kernels that hold all rules take long to compile and may be compiled side by side: as
// unit 0 of a program all but `step`, as unit 1 that alone.
#if !defined(SPARRING_UNIT) || SPARRING_UNIT == 1
extern "C" __global__ void __launch_bounds__(kWarp)
    step(SPARRING_VIEW GamesView games, SPARRING_VIEW ActionsView actions,
         SPARRING_VIEW RowsView rows, SPARRING_VIEW OutcomeView outcome,
         SPARRING_VIEW FinalsView finals, SPARRING_VIEW EndsView ends) {
  const Share share(games);
  const int game = share.game, first = share.first;
  const Stage stage(games.tables + first, share.count);
  __shared__ Setting<G> setting;
  load_setting(setting, games, first);
  const Seen seen{stage, setting, game, games.extra_of(game), games.memory_of(game)};
  const u32 global = setting.first_game + static_cast<u32>(game % games.each);
  Legal<G> now[G::kRows];
  if (share.mine) {
    Table<G>& table = stage.table();
    G::Action given[G::kRows];
    for (int r = 0; r < G::kRows; ++r) {
      now[r] = actions.legal[i64{game} * G::kRows + r];
      given[r] = actions.action[i64{game} * G::kRows + r];
    }
    if (actions.refuses(table, now, given, game)) {
      outcome.clear(game);
    } else {
      f32 paid[kPaid];
      collect_pending(table, setting, paid);
      bool over = false;
      const auto at_end = [&](const Result& result) {
        over = true;
        outcome.write(game, paid, table.skipped, result);
        finals.keep(seen, result);
        ends.keep(seen, result, games.games);
      };
      outcome.clear_records(game);
      if (!advance(table, setting, global, seen.extra, now, given, paid, games.counting(first),
                   outcome.records_of(game), at_end))
        actions.frozen[game] = kStuck;
      if (!over) outcome.write(game, paid, table.skipped, Result{});
      if constexpr (kMemoryBytes > 0)
        if (over) clear_memory(seen.memory);
    }
  }
  rows.write(seen, share.mine, now);
  stage.put_tables();
}

#endif

#if !defined(SPARRING_UNIT) || SPARRING_UNIT == 0
extern "C" __global__ void sizes(i32* out) {
  out[0] = sizeof(Table<G>);
  out[1] = sizeof(SettingStorage<G>);
  out[2] = sizeof(Legal<G>);
  out[3] = kStaged ? kStageBytes : 0;
  out[4] = kPerWarpOf<G>;
}

// Begins a new episode in every game (`restart`), or writes the rows of the games as they stand,
// after their bytes were replaced.
extern "C" __global__ void __launch_bounds__(kWarp)
    open_rows(SPARRING_VIEW GamesView games, int restart, u8* frozen, SPARRING_VIEW RowsView rows,
              SPARRING_VIEW OutcomeView outcome) {
  const Share share(games);
  const int game = share.game, first = share.first;
  const Stage stage(games.tables + first, share.count);
  __shared__ Setting<G> setting;
  load_setting(setting, games, first);
  const Seen seen{stage, setting, game, games.extra_of(game), games.memory_of(game)};
  const u32 global = setting.first_game + static_cast<u32>(game % games.each);
  Legal<G> now[G::kRows];
  if (share.mine) {
    Table<G>& table = stage.table();
    frozen[game] = 0;
    outcome.clear(game);
    if (restart) {
      const auto at_end = [](const Result&) {};
      if (!advance(table, setting, global, seen.extra, now, nullptr, nullptr, games.counting(first),
                   nullptr, at_end))
        frozen[game] = kStuck;
      if constexpr (kMemoryBytes > 0) clear_memory(seen.memory);
    } else {
      for (int r = 0; r < G::kRows; ++r) {
        now[r] = Legal<G>::none();
        if (table.game.seat(r) >= 0) call_legal(table.game, setting.config, r, now[r], seen.extra);
      }
    }
  }
  rows.write(seen, share.mine, now);
  stage.put_tables();
}

// Adds up the seats that policies below `policies` hold in running games [members, policies].
extern "C" __global__ void count_seats(SPARRING_VIEW GamesView games, int policies, i32* seated) {
  const int game = thread_index();
  if (game >= games.games) return;
  for (int s = 0; s < kSeats; ++s)
    if (const int player = games.tables[game].player[s]; player >= 0 && player < policies)
      atomicAdd(seated + i64{game / games.each} * policies + player, 1);
}

// Uniform legal actions from each game's sampling stream.
extern "C" __global__ void sample_actions(SPARRING_VIEW GamesView games, const Legal<G>* legal,
                                          const i16* policy, G::Action* out) {
  const int game = thread_index();
  if (game >= games.games) return;
  const Setting<G>& setting = games.settings[game / games.each];
  Table<G>& table = games.tables[game];
  Rng rng(setting.seed, setting.first_game + static_cast<u32>(game % games.each), table.episode,
          Stream::kSampling, table.sampled);
  for (int r = 0; r < G::kRows; ++r) {
    const i64 row = i64{game} * G::kRows + r;
    out[row] = policy[row] >= 0 ? sample_action<G>(legal[row], rng) : G::Action{};
  }
  table.sampled = rng.drawn();
}

// One byte per action, kMaskBytes by a thread.
inline constexpr int kMaskBytes = 16;
extern "C" __global__ void expand_masks(const Legal<G>* legal, i64 bytes, u8* mask) {
  constexpr int kActions = most(SPARRING_ACTIONS, 1);
  const i64 at = (i64{blockIdx.x} * blockDim.x + threadIdx.x) * kMaskBytes;
  if (at >= bytes) return;
  i64 row = at / kActions;
  int action = static_cast<int>(at % kActions);
  u64 some[2] = {};
  const int count = static_cast<int>(least<i64>(bytes - at, kMaskBytes));
#pragma unroll
  for (int i = 0; i < kMaskBytes; ++i) {
    if (i < count && legal[row].test(action)) some[i / 8] |= u64{1} << (8 * (i % 8));
    if (++action == kActions) {
      action = 0;
      ++row;
    }
  }
  if (count == kMaskBytes)
    *reinterpret_cast<Vector16*>(mask + at) = {{some[0], some[1]}};
  else
#pragma unroll
    for (int i = 0; i < kMaskBytes; ++i)
      if (i < count) mask[at + i] = static_cast<u8>(some[i / 8] >> (8 * (i % 8)));
}
#endif

}  // namespace sparring
