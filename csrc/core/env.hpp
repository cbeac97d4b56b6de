// One environment: a game with its players, bots and forced moves played between the decisions of
// policies. The pool, the single state and the GPU kernels all play through these functions.
#pragma once

#include "core/game.hpp"

namespace sparring {

// Player ids of a line-up: 0 and above are policies that the caller evaluates, below are bots.
inline constexpr int kNoPlayer = -1;
inline constexpr int kRandomBot = -2;  // uniform over the legal actions; every game has it
SPARRING_FN constexpr int bot_player(int bot) { return kRandomBot - 1 - bot; }
SPARRING_FN constexpr int bot_of(int player) { return kRandomBot - 1 - player; }

inline constexpr int kMaxLineups = 256;

// The lowest player ids are mixes: the player of such a seat is drawn at the start of an episode.
inline constexpr int kMaxMixes = 8, kMaxMixPlayers = 256;
inline constexpr int kFirstMix = -32768;
SPARRING_FN constexpr bool is_mix(int player) { return player < kFirstMix + kMaxMixes; }

// An environment that plays so many forced and bot decisions in a row is stuck: no policy will ever
// have a decision.
inline constexpr u32 kMaxUnasked = 1u << 20;

template <class G>
struct Lineup {
  f64 cumulative_weight;
  i16 player[G::kMaxSeats];
  bool shuffle;
};

// Players that may be drawn into a seat, with weights. An empty mix stands for the learner.
struct Mix {
  f64 cumulative_weight[kMaxMixPlayers];
  i16 player[kMaxMixPlayers];
  i32 players;
};

// Positions in which episodes begin, besides or instead of the game's initial position.
template <class G>
struct Starts {
  const f64* cumulative_weight;  // [count + 1], the initial position's first
  const G* game;                 // [count]
  const i32* extra_index;        // [count], the row of `extra` of each start
  const u8* extra;
  i64 count;  // 0: every episode begins in the initial position, and nothing is drawn
};

// Draws one of `count` by weight; `cumulative(i)` is the cumulative weight.
template <class Cumulative>
SPARRING_FN inline int draw_weighted(int count, Cumulative cumulative, Rng& rng) {
  const f64 point = static_cast<f64>(rng.next()) * (1.0 / 4294967296.0) * cumulative(count - 1);
  int chosen = 0;
  SPARRING_FOR (; chosen + 1 < count && cumulative(chosen) <= point;) ++chosen;
  return chosen;
}

// Settings that all games of a pool share.
template <class G>
struct Setting {
  typename G::Config config;
  Shape shape;
  u64 seed;
  u32 first_game;
  bool skip_forced;
  bool every_game;    // stop before the first decision of every episode, so that none is skipped
  u32 opening_plies;  // random decisions of all players at the start of an episode
  u32 active_parts;   // see Result
  f32 weight[kPartCount<G> * G::kRoles];
  int lineups;
  const Lineup<G>* lineup;
  const Mix* mix;
  Starts<G> starts;
};

// A setting with the storage of the line-ups and mixes that it points to.
template <class G>
struct SettingStorage : Setting<G> {
  Lineup<G> lineup_storage[kMaxLineups];
  Mix mix_storage[kMaxMixes];
};

// One game and all that is needed to continue it. Copying the bytes clones it.
template <class G>
struct Env {
  G game;
  u32 episode;
  u32 chance_draws;  // random numbers drawn so far in this episode, by stream
  u32 bot_draws;
  u32 sample_draws;
  u32 length;                                    // decisions of this episode, forced ones included
  u32 policy_seats;                              // seats held by policies
  f32 pending_reward[G::kMaxSeats * G::kRoles];  // earned before the episode's first policy row
  u16 skipped[G::kMaxSeats];                     // forced decisions since the last policy row
  i16 player[G::kMaxSeats];
};

// Counter sums of one player's seats; null: not counted.
struct Counting {
  i64* sums = nullptr;
  i16 player = 0;
};

template <class G>
SPARRING_FN inline Result result_into(f32* reward, const Setting<G>& setting,
                                      const i16* player = nullptr, Counting counting = {}) {
  Result result{.reward = reward,
                .weight = setting.weight,
                .roles = counts_of<G>(setting.config).roles,
                .active_parts = setting.active_parts};
  if constexpr (kCounterCount<G> > 0) {
    result.recorder.counts = counting.sums;
    result.recorder.player = player;
    result.recorder.counted_player = counting.player;
  }
  return result;
}

// The player of a line-up's seat; one that is drawn if the line-up names a mix.
SPARRING_FN inline i16 draw_player(i16 player, const Mix* mixes, Rng& rng) {
  if (!is_mix(player)) return player;
  const Mix& mix = mixes[player - kFirstMix];
  if (mix.players == 0) return 0;
  return mix
      .player[draw_weighted(mix.players, [&](int i) { return mix.cumulative_weight[i]; }, rng)];
}

// Draws the line-up of a new episode and the players of its mixes, and shuffles the seats.
template <class G>
SPARRING_FN inline void assign_seats(Env<G>& env, const Setting<G>& setting, u32 game) {
  Rng rng(setting.seed, game, env.episode, Stream::kLineups);
  int chosen = 0;
  if (setting.lineups > 1)
    chosen = draw_weighted(
        setting.lineups, [&](int i) { return setting.lineup[i].cumulative_weight; }, rng);
  const Lineup<G>& lineup = setting.lineup[chosen];
  const int seats = setting.shape.seats;
  SPARRING_FOR (int seat = 0; seat < G::kMaxSeats; ++seat)
    env.player[seat] = seat < seats ? draw_player(lineup.player[seat], setting.mix, rng)
                                    : static_cast<i16>(kNoPlayer);
  if (lineup.shuffle) {
    SPARRING_FOR (int seat = seats - 1; seat > 0; --seat) {
      const int other = rng.below(seat + 1);
      const i16 swapped = env.player[seat];
      env.player[seat] = env.player[other];
      env.player[other] = swapped;
    }
  }
  env.policy_seats = 0;
  SPARRING_FOR (int seat = 0; seat < seats; ++seat) env.policy_seats += env.player[seat] >= 0;
}

template <class G>
SPARRING_FN inline typename G::Action sample_action(const Legal<G>& legal, Rng& rng) {
  if constexpr (kDiscrete<G>) {
    return legal.select(rng.below(legal.count()));
  } else {
    typename G::Action action;
    for (f32& value : action.value) value = rng.uniform() * 2.0f - 1.0f;
    return action;
  }
}

// Whether an action can be played: legal, or for continuous actions finite.
template <class G>
SPARRING_FN inline bool is_playable(const Legal<G>& legal, const typename G::Action& action,
                                    int actions) {
  if constexpr (kDiscrete<G>) {
    return action >= 0 && action < actions && legal.test(action);
  } else {
    for (f32 value : action.value)
      if (!is_finite(value)) return false;
    return true;
  }
}

template <class G>
SPARRING_FN inline typename G::Action clipped(typename G::Action action) {
  if constexpr (!kDiscrete<G>)
    for (f32& value : action.value) value = min(max(value, -1.0f), 1.0f);
  return action;
}

template <class G>
SPARRING_FN inline typename G::Action bot_action(const Env<G>& env, const Setting<G>& setting,
                                                 int row, int player, const Legal<G>& legal,
                                                 Rng& rng, const u8* extra) {
  if constexpr (requires { G::kBots; }) {
    if (player < kRandomBot)
      return with_extra<G>(extra, [&](auto... bytes) {
        return env.game.act(bot_of(player), setting.config, row, legal, rng, bytes...);
      });
  }
  return sample_action<G>(legal, rng);
}

// Applies the actions of all rows by the rules.
template <class G>
SPARRING_FN inline void step_rules(Env<G>& env, const Setting<G>& setting, u32 game, u8* extra,
                                   const typename G::Action* actions, Result& result) {
#if SPARRING_HOST
  for (int row = 0; row < G::kRows; ++row)
    if (env.game.seat(row) >= 0)
      result.recorder.hash_action(u64{env.length} * G::kRows + u64(row), actions[row]);
#endif
  Rng chance(setting.seed, game, env.episode, Stream::kChance, env.chance_draws);
  with_extra<G>(extra, [&](auto... bytes) {
    env.game.step(setting.config, actions, chance, result, bytes...);
  });
  env.chance_draws = chance.drawn();
  ++env.length;
}

// One step of the rules: `given` holds the policies' actions; bots and forced moves add the others.
template <class G>
SPARRING_FN inline void play_step(Env<G>& env, const Setting<G>& setting, u32 game, u8* extra,
                                  const Legal<G>* legal, const typename G::Action* given,
                                  bool forced, Result& result) {
  typename G::Action actions[G::kRows]{};
  Rng bots(setting.seed, game, env.episode, Stream::kBots, env.bot_draws);
  for (int row = 0; row < G::kRows; ++row) {
    const int seat = env.game.seat(row);
    if (seat < 0) continue;
    const int player = env.player[seat];
    if (forced) {
      if constexpr (kDiscrete<G>) actions[row] = legal[row].lowest();
      ++env.skipped[seat];
    } else if (player >= 0) {
      actions[row] = clipped<G>(given[row]);
    } else {
      actions[row] = clipped<G>(bot_action(env, setting, row, player, legal[row], bots, extra));
    }
  }
  env.bot_draws = bots.drawn();
  step_rules(env, setting, game, extra, actions, result);
}

// Who decides next.
enum class Turn { kPolicies, kBots, kForced };

// Writes the legal actions of the rows and returns who decides next. An environment without
// policies returns after every decision of a bot.
template <class G>
SPARRING_FN inline Turn find_turn(const Env<G>& env, const Setting<G>& setting, const u8* extra,
                                  Legal<G>* legal) {
  bool policy_decides = env.policy_seats == 0;
  bool forced = setting.skip_forced && kDiscrete<G>;
  for (int row = 0; row < G::kRows; ++row) {
    legal[row] = Legal<G>::none();
    const int seat = env.game.seat(row);
    if (seat < 0) continue;
    policy_decides |= env.player[seat] >= 0;
    call_legal(env.game, setting.config, row, legal[row], extra);
    if (forced) forced = legal[row].count() == 1;
  }
  return forced ? Turn::kForced : policy_decides ? Turn::kPolicies : Turn::kBots;
}

// Plays bots and forced moves until a policy decides or the game is over. Leaves the legal actions
// of the rows in `legal`. The environment is stuck when `decisions_left` reaches 0.
template <class G>
SPARRING_FN inline void play_until_policy(Env<G>& env, const Setting<G>& setting, u32 game,
                                          u8* extra, Legal<G>* legal, Result& result,
                                          u32& decisions_left) {
  while (!result.over()) {
    const Turn turn = find_turn(env, setting, extra, legal);
    if (turn == Turn::kPolicies) return;
    if (decisions_left == 0) {
      result.stuck = true;
      return;
    }
    --decisions_left;
    play_step(env, setting, game, extra, legal, static_cast<const typename G::Action*>(nullptr),
              turn == Turn::kForced, result);
  }
}

// Draws the start of an episode: 0 is the initial position, then the given starts.
template <class G>
SPARRING_FN inline i64 draw_start(const Setting<G>& setting, u32 game, u32 episode) {
  const Starts<G>& starts = setting.starts;
  Rng rng(setting.seed, game, episode, Stream::kStarts);
  const f64 point =
      static_cast<f64>(rng.next()) * (1.0 / 4294967296.0) * starts.cumulative_weight[starts.count];
  i64 low = 0, high = starts.count;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (starts.cumulative_weight[middle] <= point)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Begins an episode in one of the starts; false if the initial position was drawn. Not inlined:
// few pools have starts, and the others should not spend registers on them.
template <class G>
SPARRING_APART SPARRING_FN inline bool begin_from_start(Env<G>& env, const Setting<G>& setting,
                                                        u32 game, u8* extra) {
  const i64 drawn = draw_start(setting, game, env.episode);
  if (drawn == 0) return false;
  const Starts<G>& starts = setting.starts;
  Rng chance(setting.seed, game, env.episode, Stream::kChance);
  call_begin_from(env.game, setting.config, starts.game[drawn - 1], chance);
  env.chance_draws = chance.drawn();
  if (const int bytes = extra_bytes<G>(setting.config))
    copy_bytes(extra, starts.extra + i64{starts.extra_index[drawn - 1]} * bytes, bytes);
  return true;
}

// Resets to the first position of the next episode, before any decision.
template <class G>
SPARRING_FN inline void reset_episode(Env<G>& env, const Setting<G>& setting, u32 game, u8* extra) {
  ++env.episode;
  env.chance_draws = env.bot_draws = env.sample_draws = env.length = 0;
  for (f32& value : env.pending_reward) value = 0;
  for (u16& value : env.skipped) value = 0;
  assign_seats(env, setting, game);
  if (setting.starts.count && begin_from_start(env, setting, game, extra)) return;
  Rng chance(setting.seed, game, env.episode, Stream::kChance);
  with_extra<G>(extra, [&](auto... bytes) { env.game.reset(setting.config, chance, bytes...); });
  env.chance_draws = chance.drawn();
}

// Plays the first `opening_plies` decisions at random. The draws do not depend on the players.
template <class G>
SPARRING_FN inline void play_random_opening(Env<G>& env, const Setting<G>& setting, u32 game,
                                            u8* extra, Legal<G>* legal, Result& result) {
  Rng rng(setting.seed, game, env.episode, Stream::kOpenings);
  for (u32 ply = 0; ply < setting.opening_plies && !result.over(); ++ply) {
    typename G::Action actions[G::kRows]{};
    find_turn(env, setting, extra, legal);
    for (int row = 0; row < G::kRows; ++row)
      if (env.game.seat(row) >= 0) actions[row] = sample_action<G>(legal[row], rng);
    step_rules(env, setting, game, extra, actions, result);
  }
}

// Starts the next episode and plays until a policy decides; `action_hash` becomes the hash of the
// actions so far. An episode that ends before a policy decided is followed by another one; its
// rewards belong to no decision. With `every_game` only a random opening that ends the game is
// drawn again. Random openings are not counted. False: the environment is stuck.
template <class G>
SPARRING_FN inline bool begin_episode(Env<G>& env, const Setting<G>& setting, u32 game, u8* extra,
                                      Legal<G>* legal, u64* action_hash = nullptr,
                                      Counting counting = {}) {
  for (u32 decisions_left = kMaxUnasked; decisions_left > 0;) {
    --decisions_left;
    reset_episode(env, setting, game, extra);
    Result result = result_into(env.pending_reward, setting, env.player);
    play_random_opening(env, setting, game, extra, legal, result);
    if constexpr (kCounterCount<G> > 0) {
      result.recorder.counts = counting.sums;
      result.recorder.counted_player = counting.player;
    }
    if (setting.every_game) {
      if (!result.over()) find_turn(env, setting, extra, legal);
    } else {
      play_until_policy(env, setting, game, extra, legal, result, decisions_left);
    }
    if (action_hash) *action_hash = result.recorder.action_hash;
    if (!result.over()) return !result.stuck;
  }
  return false;
}

// Moves the rewards that were earned before the episode's first policy row into `reward`.
template <class G>
SPARRING_FN inline void take_pending_rewards(Env<G>& env, const Setting<G>& setting, f32* reward) {
  SPARRING_FOR (int i = 0; i < setting.shape.seats * counts_of<G>(setting.config).roles; ++i) {
    reward[i] = env.pending_reward[i];
    env.pending_reward[i] = 0;
  }
  SPARRING_FOR (int seat = 0; seat < setting.shape.seats; ++seat) env.skipped[seat] = 0;
}

// Applies the policies' actions and plays until the next decision of a policy. Overwrites `reward`
// [seats][roles], `skipped` [seats] and, if not null, `goal_result` [seats].
template <class G>
SPARRING_FN inline Result apply_actions(Env<G>& env, const Setting<G>& setting, u32 game, u8* extra,
                                        Legal<G>* legal, const typename G::Action* given,
                                        f32* reward, u16* skipped, Counting counting = {},
                                        u32* goal_result = nullptr) {
  take_pending_rewards(env, setting, reward);
  Result result = result_into(reward, setting, env.player, counting);
  result.recorder.goal_results = goal_result;
  for (int seat = 0; goal_result && seat < setting.shape.seats; ++seat) goal_result[seat] = 0;
  play_step(env, setting, game, extra, legal, given, false, result);
  u32 decisions_left = kMaxUnasked;
  play_until_policy(env, setting, game, extra, legal, result, decisions_left);

  for (int seat = 0; seat < setting.shape.seats; ++seat) skipped[seat] = env.skipped[seat];
  return result;
}

}  // namespace sparring
