// A pool on the GPU: one thread plays one game, one warp up to 32 of them, through the same headers
// as the CPU.
//
// NVRTC compiles this file after a game's header, with the name of its type (SPARRING_GAME) and the
// sizes of its configuration: SPARRING_SEATS, SPARRING_ACTIONS, SPARRING_OBS_BYTES,
// SPARRING_MEMORY_BYTES, SPARRING_EXTRA_BYTES, SPARRING_ZERO_SUM, and SPARRING_STAGE_BYTES of
// shared memory at most. src/sparring/pools/cuda launches the kernels.
#pragma once

#include "cuda/stage.cuh"

namespace sparring {

// Rules that are linked to the kernels use fewer roles than their type has room for.
template <class Game>
inline constexpr int kRolesInUse = Game::kRoles;
template <class Game>
  requires requires { Game::kInUse; }
inline constexpr int kRolesInUse<Game> = Game::kInUse.roles;
inline constexpr int kRewards = kSeats * kRolesInUse<G>;
inline constexpr bool kZeroSum = SPARRING_ZERO_SUM;  // the rewards of the two seats sum to 0

// The games: `each` consecutive ones share a setting and are numbered from 0.
struct GamesView {
  Env<G>* envs;
  const SettingStorage<G>* settings;
  int games, each;
  int per_warp;  // games of a warp, at most 32; with fewer, fewer wait for a slow bot
  u8* extra;
  u8* memory;   // [games, seats, kMemoryBytes]
  i64* counts;  // [members, replicas, counters] of the learner; null: not counted
  int replicas;

  // Blocks add to different replicas, so that their atomics rarely collide.
  __device__ Counting counting(int game) const {
    if (kCounterCount<G> == 0 || !counts) return {};
    const i64 replica = i64{game / each} * replicas + static_cast<int>(blockIdx.x) % replicas;
    return {counts + replica * kCounterCount<G>, 0};
  }
  SPARRING_FN u8* extra_of(int game) const { return extra + i64{game} * SPARRING_EXTRA_BYTES; }
  SPARRING_FN u8* memory_of(int game) const { return memory + i64{game} * kSeats * kMemoryBytes; }
};

// Loads the setting of a warp's games into shared memory.
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

// The games of this warp; `game` is this thread's, if `has_game`. A warp plays games of one member.
struct WarpGames {
  int first, count, game;
  bool has_game;

  __device__ explicit WarpGames(const GamesView& games) {
    const int warps = (games.each + games.per_warp - 1) / games.per_warp;
    const int member = static_cast<int>(blockIdx.x) / warps;
    const int at = static_cast<int>(blockIdx.x) % warps * games.per_warp;
    first = member * games.each + at;
    count = min(games.each - at, games.per_warp);
    game = first + Stage::lane();
    has_game = Stage::lane() < count;
  }
};

SPARRING_FN inline int thread_index() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// Writes the row of a seat: its observation, then its memory; zeros if no seat is to act. `memory`
// is that of seat 0.
SPARRING_FN inline void observe_into(u8* row, const Env<G>& env, const Setting<G>& setting,
                                     int seat, const u8* extra, const u8* memory) {
  if (seat < 0) {
    zero_bytes(row, kRowBytes);
    return;
  }
  call_observe(env.game, setting.config, seat, row, extra);
  if constexpr (kMemoryBytes > 0) {
    const Word* from = reinterpret_cast<const Word*>(memory + seat * kMemoryBytes);
    Word* to = reinterpret_cast<Word*>(row + kObsBytes);
    for (int i = 0; i < kMemoryBytes / kWordBytes; ++i) to[i] = from[i];
  }
}

// One game with its memory, for the thread that plays it.
struct GameContext {
  const Stage& stage;
  const Setting<G>& setting;
  int game;
  u8* extra;
  u8* memory;
};

// Rows that need an action; `obs` may be null.
struct RowsView {
  u8* obs;  // [rows, kRowBytes]
  Legal<G>* legal;
  i8* seat;
  i8* role;
  i16* policy;

  // Called by all threads of a warp; `has_game` says whether this one has a game.
  __device__ void write(const GameContext& context, bool has_game,
                        const Legal<G>* current_legal) const {
    const Stage& stage = context.stage;
    const Env<G>& env = context.stage.env();
    for (int r = 0; r < G::kRows; ++r) {
      const i64 row = i64{context.game} * G::kRows + r;
      if (has_game) {
        const int s = env.game.seat(r);
        legal[row] = current_legal[r];
        seat[row] = static_cast<i8>(s);
        role[row] = static_cast<i8>(s < 0 ? 0 : env.game.role(r));
        policy[row] = s < 0 || env.player[s] < 0 ? static_cast<i16>(kNoPlayer) : env.player[s];
        if (obs)
          observe_into(stage.row(obs + row * kRowBytes), env, context.setting, s, context.extra,
                       context.memory);
      }
      if (!obs) continue;
      const i64 first = i64{context.game - Stage::lane()} * G::kRows + r;
      stage.put_rows(obs + first * kRowBytes, G::kRows * kRowBytes);
    }
  }
};

// Results of the last step, by game.
struct OutcomeView {
  f32* reward;
  u16* skipped;
  u8* terminated;
  u8* truncated;
  u32* goal_result;  // [games, seats], results of goals; may be null

  SPARRING_FN u32* goal_results_of(int game) const {
    return goal_result ? goal_result + i64{game} * kSeats : nullptr;
  }

  SPARRING_FN void clear(int game) const {
    for (int i = 0; i < kRewards; ++i) reward[i64{game} * kRewards + i] = 0;
    for (int i = 0; i < kSeats; ++i) skipped[i64{game} * kSeats + i] = 0;
    terminated[game] = truncated[game] = 0;
    clear_goal_results(game);
  }

  SPARRING_FN void clear_goal_results(int game) const {
    for (int i = 0; goal_result && i < kSeats; ++i) goal_result[i64{game} * kSeats + i] = 0;
  }

  SPARRING_FN void write(int game, const f32* step_reward, const u16* forced,
                         const Result& result) const {
    for (int i = 0; i < kRewards; ++i) reward[i64{game} * kRewards + i] = step_reward[i];
    for (int i = 0; i < kSeats; ++i) skipped[i64{game} * kSeats + i] = forced[i];
    terminated[game] = result.terminated;
    truncated[game] = result.truncated;
  }
};

// Final data of games that ended, by game; the caller picks those that the step reported. Null
// members are not written: `length` with scores, policies and reasons, `obs`, `legal`.
struct FinalsView {
  u8* obs;          // [games, seats, kRowBytes]
  Legal<G>* legal;  // [games, seats], of seats that were to act
  f32* score;       // [games, seats]
  i16* policy;      // [games, seats]
  i32* length;
  u8* reason;

  __device__ void keep(const GameContext& context, const Result& result) const {
    const Env<G>& env = context.stage.env();
    const i64 first = i64{context.game} * kSeats;
    if (length) {
      length[context.game] = static_cast<i32>(env.length);
      reason[context.game] = result.reason;
      SPARRING_FOR (int s = 0; s < kSeats; ++s) {
        score[first + s] = env.game.score(context.setting.config, s);
        policy[first + s] = env.player[s];
      }
    }
    SPARRING_FOR (int s = 0; obs && s < kSeats; ++s) {
      u8* out = obs + (first + s) * kRowBytes;
      observe_into(context.stage.row(out), env, context.setting, s, context.extra, context.memory);
      context.stage.put_row(out);
    }
    if (!legal) return;
    SPARRING_FOR (int s = 0; s < kSeats; ++s) legal[first + s] = Legal<G>::none();
    if (!result.truncated) return;
    SPARRING_FOR (int r = 0; r < G::kRows; ++r)
      if (const int s = env.game.seat(r); s >= 0)
        call_legal(env.game, context.setting.config, r, legal[first + s], context.extra);
  }
};

// Sums over the episodes that ended in one game of the pool; seats and score are the learner's.
struct EpisodeSums {
  f32 games, length, seats, score;
};

// Results of the learner against every other player, by score of each pair of seats.
struct ResultsView {
  u32* met;      // [members, players, (won, drawn, lost)]; null: not counted
  int policies;  // players are policies, then bots
  int players, each;

  // Sums of integers do not depend on the order of threads.
  __device__ void count(const Env<G>& env, const Setting<G>& setting, int game, int learner) const {
    f32 score[kSeats];
    SPARRING_FOR (int s = 0; s < kSeats; ++s) score[s] = env.game.score(setting.config, s);
    SPARRING_FOR (int s = 0; s < kSeats; ++s) {
      const int player = env.player[s];
      if (player == learner || player == kNoPlayer) continue;
      const int at = player >= 0 ? player : policies + kRandomBot - player;
      if (at >= players) continue;
      u32 found[3] = {0, 0, 0};
      SPARRING_FOR (int mine = 0; mine < kSeats; ++mine)
        if (env.player[mine] == learner)
          ++found[score[mine] > score[s] ? 0 : score[mine] == score[s] ? 1 : 2];
      u32* to = met + (i64{game / each} * players + at) * 3;
      SPARRING_FOR (int i = 0; i < 3; ++i)
        if (found[i]) atomicAdd(to + i, found[i]);
    }
  }
};

// Ends of episodes for a learner: sums for its statistics, and the last rows of truncated games, at
// which values are bootstrapped. Without `earned` nothing is written.
struct EndsView {
  EpisodeSums* earned;  // [games]
  u8* cut_obs;     // [layers, games * rows, kRowBytes]; a game's first truncation is in layer 0
  i32* cut_at;     // [layers, games * rows]: ((step * games + game) * seats + seat) * 2, and 1 more
                   // if the negated value is that of the other seat (zero-sum games); -1: no row
  i32* cut_count;  // [games], truncations, those beyond the last layer included
  f32* score;      // [games, seats], of the games that end in this step; null: not written
  int layers, step;
  int learner;  // its policy id
  ResultsView met;

  __device__ void keep(const GameContext& context, const Result& result, int games) const {
    if (!earned) return;
    const Env<G>& env = context.stage.env();
    EpisodeSums& mine = earned[context.game];
    mine.games += 1;
    mine.length += static_cast<f32>(env.length);
    SPARRING_FOR (int s = 0; s < kSeats; ++s) {
      if (env.player[s] != learner) continue;
      mine.seats += 1;
      mine.score += env.game.score(context.setting.config, s);
    }
    SPARRING_FOR (int s = 0; score && s < kSeats; ++s)
      score[i64{context.game} * kSeats + s] = env.game.score(context.setting.config, s);
    if (met.met) met.count(env, context.setting, context.game, learner);
    if (!result.truncated) return;
    const int layer = cut_count[context.game]++;
    if (layer >= layers) return;  // without a value the decision before is dropped
    int movers = 0;
    SPARRING_FOR (int r = 0; r < G::kRows; ++r) movers += env.game.seat(r) >= 0;
    SPARRING_FOR (int r = 0; r < G::kRows; ++r) {
      const i64 at = (i64{layer} * games + context.game) * G::kRows + r;
      const int s = env.game.seat(r);
      cut_at[at] = -1;
      if (s < 0) continue;
      cut_at[at] = ((step * games + context.game) * kSeats + s) * 2 + (kZeroSum && movers == 1);
      u8* out = cut_obs + at * kRowBytes;
      observe_into(context.stage.row(out), env, context.setting, s, context.extra, context.memory);
      context.stage.put_row(out);
    }
  }
};

// Values of `frozen` for a stuck game and for one whose rules failed; other values name a row.
inline constexpr u8 kStuck = 255, kFailed = 254;
inline constexpr u32 kEndless = 1u << 24;  // an episode of so many decisions is stuck
static_assert(G::kRows < kFailed);

// Whether the rules of a game have failed; those of bundled games cannot.
template <class Game>
__device__ inline bool has_failed(const Game& game) {
  if constexpr (requires { game.failed(); })
    return game.failed();
  else
    return false;
}
template <class Game>
__device__ inline void forget_failure(Game& game) {
  if constexpr (requires { game.forget_failure(); }) game.forget_failure();
}

// Actions for the last rows. An action that cannot be played freezes its game, with its rows, until
// the caller checks `frozen`. The action is kept for the error message.
struct ActionsView {
  const Legal<G>* legal;
  const G::Action* action;
  u8* frozen;  // by game: 0, 1 + the row whose action was rejected, kStuck or kFailed
  G::Action* rejected;

  SPARRING_FN bool rejects(const Env<G>& env, const Legal<G>* current_legal, const G::Action* given,
                           int game) const {
    if (frozen[game]) return true;
    for (int r = 0; r < G::kRows; ++r) {
      const int s = env.game.seat(r);
      if (s < 0 || env.player[s] < 0 ||
          is_playable<G>(current_legal[r], given[r], SPARRING_ACTIONS))
        continue;
      frozen[game] = static_cast<u8>(r + 1);
      rejected[i64{game} * G::kRows + r] = given[r];
      return true;
    }
    return false;
  }
};

// Plays until a policy decides, through the end of the episode if need be: `apply_actions` and
// `begin_episode` in one loop. The rules are called in one place, so that the compiler inlines them
// once, and games that end do not diverge from the others of the warp. `given` are the actions for
// the last rows; without them a new episode begins. `at_end` is called with the result of the first
// episode. False: the game is stuck. Stuck games are found by counts in memory, because a loop
// counter would take a register in all the rules.
template <class AtEnd>
__device__ inline bool advance(Env<G>& env, const Setting<G>& setting, u32 game, u8* extra,
                               Legal<G>* legal, const G::Action* given, f32* reward,
                               Counting counting, u32* goal_results, AtEnd at_end) {
  __shared__ u32 unasked[kWarp];  // consecutive episodes without a decision of a policy
  bool playing = given != nullptr, forced = false, first_episode = playing;
  Result result =
      result_into(first_episode ? reward : env.pending_reward, setting, env.player, counting);
  if (first_episode) result.recorder.goal_results = goal_results;
  for (;;) {
    if (playing) play_step(env, setting, game, extra, legal, given, forced, result);
    if (has_failed(env.game)) return false;
    if (!playing || result.over()) {
      u32& count = unasked[Stage::lane()];
      count = first_episode || !playing ? 0 : count + 1;
      if (count == kMaxUnasked) return false;
      if (first_episode) at_end(result);
      first_episode = false;
      reset_episode(env, setting, game, extra);
      result = result_into(env.pending_reward, setting, env.player, counting);
    }
    playing = true;
    const Turn turn = find_turn(env, setting, extra, legal);
    if (turn == Turn::kPolicies) return true;
    if (env.length >= kEndless) return false;
    forced = turn == Turn::kForced;
    given = nullptr;
  }
}

// The two kernels with the rules take long to compile and may be compiled in parallel: unit 1 is
// `step`, unit 0 everything else.
#if !defined(SPARRING_UNIT) || SPARRING_UNIT == 1
extern "C" __global__ void __launch_bounds__(kWarp)
    step(SPARRING_VIEW GamesView games, SPARRING_VIEW ActionsView actions,
         SPARRING_VIEW RowsView rows, SPARRING_VIEW OutcomeView outcome,
         SPARRING_VIEW FinalsView finals, SPARRING_VIEW EndsView ends) {
  const WarpGames warp_games(games);
  const int game = warp_games.game, first = warp_games.first;
  const Stage stage(games.envs + first, warp_games.count);
  __shared__ Setting<G> setting;
  load_setting(setting, games, first);
  const GameContext context{stage, setting, game, games.extra_of(game), games.memory_of(game)};
  const u32 global = setting.first_game + static_cast<u32>(game % games.each);
  Legal<G> current_legal[G::kRows];
  if (warp_games.has_game) {
    Env<G>& env = stage.env();
    G::Action given[G::kRows];
    for (int r = 0; r < G::kRows; ++r) {
      current_legal[r] = actions.legal[i64{game} * G::kRows + r];
      given[r] = actions.action[i64{game} * G::kRows + r];
    }
    if (actions.rejects(env, current_legal, given, game)) {
      outcome.clear(game);
    } else {
      f32 reward[kRewards];
      take_pending_rewards(env, setting, reward);
      bool over = false;
      const auto at_end = [&](const Result& result) {
        over = true;
        outcome.write(game, reward, env.skipped, result);
        finals.keep(context, result);
        ends.keep(context, result, games.games);
      };
      outcome.clear_goal_results(game);
      if (!advance(env, setting, global, context.extra, current_legal, given, reward,
                   games.counting(first), outcome.goal_results_of(game), at_end))
        actions.frozen[game] = kStuck;
      if (!over) outcome.write(game, reward, env.skipped, Result{});
      if constexpr (kMemoryBytes > 0)
        if (over) clear_memory(context.memory);
    }
  }
  rows.write(context, warp_games.has_game, current_legal);
  if (warp_games.has_game && has_failed(stage.env().game)) actions.frozen[game] = kFailed;
  stage.put_envs();
}

#endif

#if !defined(SPARRING_UNIT) || SPARRING_UNIT == 0
extern "C" __global__ void sizes(i32* out) {
  out[0] = sizeof(Env<G>);
  out[1] = sizeof(SettingStorage<G>);
  out[2] = sizeof(Legal<G>);
  out[3] = kStaged ? kStageBytes : 0;
  out[4] = kPerWarpOf<G>;
}

// Begins a new episode in every game (`restart`), or writes the current rows, after the bytes of
// games were replaced.
extern "C" __global__ void __launch_bounds__(kWarp)
    open_rows(SPARRING_VIEW GamesView games, int restart, u8* frozen, SPARRING_VIEW RowsView rows,
              SPARRING_VIEW OutcomeView outcome) {
  const WarpGames warp_games(games);
  const int game = warp_games.game, first = warp_games.first;
  const Stage stage(games.envs + first, warp_games.count);
  __shared__ Setting<G> setting;
  load_setting(setting, games, first);
  const GameContext context{stage, setting, game, games.extra_of(game), games.memory_of(game)};
  const u32 global = setting.first_game + static_cast<u32>(game % games.each);
  Legal<G> current_legal[G::kRows];
  if (warp_games.has_game) {
    Env<G>& env = stage.env();
    frozen[game] = 0;
    forget_failure(env.game);
    outcome.clear(game);
    if (restart) {
      const auto at_end = [](const Result&) {};
      if (!advance(env, setting, global, context.extra, current_legal, nullptr, nullptr,
                   games.counting(first), nullptr, at_end))
        frozen[game] = kStuck;
      if constexpr (kMemoryBytes > 0) clear_memory(context.memory);
    } else {
      for (int r = 0; r < G::kRows; ++r) {
        current_legal[r] = Legal<G>::none();
        if (env.game.seat(r) >= 0)
          call_legal(env.game, setting.config, r, current_legal[r], context.extra);
      }
    }
  }
  rows.write(context, warp_games.has_game, current_legal);
  if (warp_games.has_game && has_failed(stage.env().game)) frozen[game] = kFailed;
  stage.put_envs();
}

// Counts the seats that policies hold in running games [members, policies].
extern "C" __global__ void count_seats(SPARRING_VIEW GamesView games, int policies, i32* seated) {
  const int game = thread_index();
  if (game >= games.games) return;
  for (int s = 0; s < kSeats; ++s)
    if (const int player = games.envs[game].player[s]; player >= 0 && player < policies)
      atomicAdd(seated + i64{game / games.each} * policies + player, 1);
}

// Uniform legal actions from each game's sampling stream.
extern "C" __global__ void sample_actions(SPARRING_VIEW GamesView games, const Legal<G>* legal,
                                          const i16* policy, G::Action* out) {
  const int game = thread_index();
  if (game >= games.games) return;
  const Setting<G>& setting = games.settings[game / games.each];
  Env<G>& env = games.envs[game];
  Rng rng(setting.seed, setting.first_game + static_cast<u32>(game % games.each), env.episode,
          Stream::kSampling, env.sample_draws);
  for (int r = 0; r < G::kRows; ++r) {
    const i64 row = i64{game} * G::kRows + r;
    out[row] = policy[row] >= 0 ? sample_action<G>(legal[row], rng) : G::Action{};
  }
  env.sample_draws = rng.drawn();
}

// Expands masks to one byte per action, kMaskBytes per thread.
inline constexpr int kMaskBytes = 16;
extern "C" __global__ void expand_masks(const Legal<G>* legal, i64 bytes, u8* mask) {
  constexpr int kActions = max(SPARRING_ACTIONS, 1);
  const i64 at = (i64{blockIdx.x} * blockDim.x + threadIdx.x) * kMaskBytes;
  if (at >= bytes) return;
  i64 row = at / kActions;
  int action = static_cast<int>(at % kActions);
  u64 some[2] = {};
  const int count = static_cast<int>(min<i64>(bytes - at, kMaskBytes));
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
