// A game at its table: who sits where, whose turn it is, bots and forced moves played in between.
// The pool, the single state and the GPU kernels all play through these functions.
#pragma once

#include "core/game.hpp"

namespace sparring {

// Players of a line-up: 0 and above are policies that the caller evaluates; below are ours.
inline constexpr int kNoPlayer = -1;
inline constexpr int kRandomBot = -2;  // uniform over the legal actions; every game has it
SPARRING_FN constexpr int bot_player(int bot) { return kRandomBot - 1 - bot; }
SPARRING_FN constexpr int bot_of(int player) { return kRandomBot - 1 - player; }

inline constexpr int kMaxLineups = 256;

// A seat of a line-up may be drawn, too: from a mix, one of the lowest players that there are.
inline constexpr int kMaxMixes = 8, kMaxMixPlayers = 256;
inline constexpr int kFirstMix = -32768;
SPARRING_FN constexpr bool is_mix(int player) { return player < kFirstMix + kMaxMixes; }

// How many decisions in a row a table plays by itself, forced ones and those of bots, before it is
// given up: a game that asks no policy for so long never will.
inline constexpr u32 kMaxUnasked = 1u << 20;

template <class G>
struct Lineup {
  f64 up_to;  // cumulative weight
  i16 player[G::kMaxSeats];
  bool shuffle;
};

// Who may be drawn into a seat, and how often. The learner, as long as nobody is in it.
struct Mix {
  f64 up_to[kMaxMixPlayers];  // cumulative weights
  i16 player[kMaxMixPlayers];
  i32 players;
};

// Positions in which episodes begin, besides or instead of the usual start.
template <class G>
struct Starts {
  const f64* up_to;        // [count + 1] cumulative weights; the first is that of the usual start
  const G* game;           // [count]
  const i32* extra_index;  // [count], the line of `extra` with the bytes outside the game
  const u8* extra;
  i64 count;  // 0: every episode begins as usual, and nothing is drawn
};

// Which of `count` is drawn whose weights add up to `up_to(i)`.
template <class UpTo>
SPARRING_FN inline int drawn_one(int count, UpTo up_to, Rng& rng) {
  const f64 at = static_cast<f64>(rng.next()) * (1.0 / 4294967296.0) * up_to(count - 1);
  int chosen = 0;
  SPARRING_FOR (; chosen + 1 < count && up_to(chosen) <= at;) ++chosen;
  return chosen;
}

// Everything that all games of a pool share.
template <class G>
struct Setting {
  typename G::Config config;
  Shape shape;
  u64 seed;
  u32 first_game;
  bool skip_forced;
  bool every_game;    // an episode waits for a step before anybody moves, so that all are counted
  u32 opening_plies;  // decisions by lot at the start of an episode, whoever sits there
  u32 wanted;
  f32 weight[kPartCount<G> * G::kRoles];
  int lineups;
  const Lineup<G>* lineup;
  const Mix* mix;
  Starts<G> starts;
};

// A setting together with the line-ups and mixes that it points to.
template <class G>
struct SettingStorage : Setting<G> {
  Lineup<G> lineup_storage[kMaxLineups];
  Mix mix_storage[kMaxMixes];
};

// One game with all that is needed to continue it. Copying the bytes clones it.
template <class G>
struct Table {
  G game;
  u32 episode;
  u32 chance_drawn;
  u32 bots_drawn;
  u32 sampled;
  u32 length;                             // decisions of this episode, forced ones included
  u32 policies;                           // seats held by policies
  f32 pending[G::kMaxSeats * G::kRoles];  // earned before the episode's first row came out
  u16 skipped[G::kMaxSeats];              // forced decisions since the last row came out
  i16 player[G::kMaxSeats];
};

// Whose seats are counted, and where the sums of the counters are; without sums nobody's.
struct Counting {
  i64* sums = nullptr;
  i16 player = 0;
};

template <class G>
SPARRING_FN inline Result result_into(f32* reward, const Setting<G>& setting,
                                      const i16* player = nullptr, Counting counting = {}) {
  Result result{
      .reward = reward, .weight = setting.weight, .roles = G::kRoles, .wanted = setting.wanted};
  if constexpr (kCounterCount<G> > 0) {
    result.recorder.counts = counting.sums;
    result.recorder.player = player;
    result.recorder.counted = counting.player;
  }
  return result;
}

// Who sits in a seat of a line-up: the one it names, or one that is drawn from its mix.
SPARRING_FN inline i16 player_for(i16 named, const Mix* mixes, Rng& rng) {
  if (!is_mix(named)) return named;
  const Mix& mix = mixes[named - kFirstMix];
  if (mix.players == 0) return 0;
  return mix.player[drawn_one(mix.players, [&](int i) { return mix.up_to[i]; }, rng)];
}

// Draws the line-up of a new episode and who comes from its mixes, and shuffles the seats.
template <class G>
SPARRING_FN inline void take_seats(Table<G>& table, const Setting<G>& setting, u32 game) {
  Rng rng(setting.seed, game, table.episode, Stream::kLineups);
  int chosen = 0;
  if (setting.lineups > 1)
    chosen = drawn_one(setting.lineups, [&](int i) { return setting.lineup[i].up_to; }, rng);
  const Lineup<G>& lineup = setting.lineup[chosen];
  const int seats = setting.shape.seats;
  SPARRING_FOR (int seat = 0; seat < G::kMaxSeats; ++seat)
    table.player[seat] = seat < seats ? player_for(lineup.player[seat], setting.mix, rng)
                                      : static_cast<i16>(kNoPlayer);
  if (lineup.shuffle) {
    SPARRING_FOR (int seat = seats - 1; seat > 0; --seat) {
      const int other = rng.below(seat + 1);
      const i16 kept = table.player[seat];
      table.player[seat] = table.player[other];
      table.player[other] = kept;
    }
  }
  table.policies = 0;
  SPARRING_FOR (int seat = 0; seat < seats; ++seat) table.policies += table.player[seat] >= 0;
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

// Whether a policy's answer can be played: a legal action, or finite numbers.
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
    for (f32& value : action.value) value = least(most(value, -1.0f), 1.0f);
  return action;
}

template <class G>
SPARRING_FN inline typename G::Action bot_action(const Table<G>& table, const Setting<G>& setting,
                                                 int row, int player, const Legal<G>& legal,
                                                 Rng& rng, const u8* extra) {
  if constexpr (requires { G::kBots; }) {
    if (player < kRandomBot)
      return with_extra<G>(extra, [&](auto... bytes) {
        return table.game.act(bot_of(player), setting.config, row, legal, rng, bytes...);
      });
  }
  return sample_action<G>(legal, rng);
}

// Takes all rows' actions through the rules.
template <class G>
SPARRING_FN inline void take_step(Table<G>& table, const Setting<G>& setting, u32 game, u8* extra,
                                  const typename G::Action* actions, Result& result) {
#if SPARRING_HOST
  for (int row = 0; row < G::kRows; ++row)
    if (table.game.seat(row) >= 0)
      result.recorder.note(u64{table.length} * G::kRows + u64(row), actions[row]);
#endif
  Rng chance(setting.seed, game, table.episode, Stream::kChance, table.chance_drawn);
  with_extra<G>(extra, [&](auto... bytes) {
    table.game.step(setting.config, actions, chance, result, bytes...);
  });
  table.chance_drawn = chance.drawn();
  ++table.length;
}

// One step of the rules. `given` has the policies' actions; bots and forced moves fill the rest.
template <class G>
SPARRING_FN inline void play(Table<G>& table, const Setting<G>& setting, u32 game, u8* extra,
                             const Legal<G>* legal, const typename G::Action* given, bool forced,
                             Result& result) {
  typename G::Action actions[G::kRows]{};
  Rng bots(setting.seed, game, table.episode, Stream::kBots, table.bots_drawn);
  for (int row = 0; row < G::kRows; ++row) {
    const int seat = table.game.seat(row);
    if (seat < 0) continue;
    const int player = table.player[seat];
    if (forced) {
      if constexpr (kDiscrete<G>) actions[row] = legal[row].lowest();
      ++table.skipped[seat];
    } else if (player >= 0) {
      actions[row] = clipped<G>(given[row]);
    } else {
      actions[row] = clipped<G>(bot_action(table, setting, row, player, legal[row], bots, extra));
    }
  }
  table.bots_drawn = bots.drawn();
  take_step(table, setting, game, extra, actions, result);
}

// Whose decisions the rows of a table ask for.
enum class Turn { kPolicies, kBots, kForced };

// Writes the legal actions of the rows and says who is to decide. A table of bots alone makes one
// decision per call of `play`.
template <class G>
SPARRING_FN inline Turn look(const Table<G>& table, const Setting<G>& setting, const u8* extra,
                             Legal<G>* legal) {
  bool awaited = table.policies == 0;
  bool forced = setting.skip_forced && kDiscrete<G>;
  for (int row = 0; row < G::kRows; ++row) {
    legal[row] = Legal<G>::none();
    const int seat = table.game.seat(row);
    if (seat < 0) continue;
    awaited |= table.player[seat] >= 0;
    call_legal(table.game, setting.config, row, legal[row], extra);
    if (forced) forced = legal[row].count() == 1;
  }
  return forced ? Turn::kForced : awaited ? Turn::kPolicies : Turn::kBots;
}

// Plays on until a policy has to decide or the game is over. Leaves the legal actions of the
// rows in `legal`. When `patience` runs out, the table is given up.
template <class G>
SPARRING_FN inline void settle(Table<G>& table, const Setting<G>& setting, u32 game, u8* extra,
                               Legal<G>* legal, Result& result, u32& patience) {
  while (!result.over()) {
    const Turn turn = look(table, setting, extra, legal);
    if (turn == Turn::kPolicies) return;
    if (patience == 0) {
      result.stuck = true;
      return;
    }
    --patience;
    play(table, setting, game, extra, legal, static_cast<const typename G::Action*>(nullptr),
         turn == Turn::kForced, result);
  }
}

// Which start is drawn for an episode: 0 is the usual one, then those that were given.
template <class G>
SPARRING_FN inline i64 drawn_start(const Setting<G>& setting, u32 game, u32 episode) {
  const Starts<G>& starts = setting.starts;
  Rng rng(setting.seed, game, episode, Stream::kStarts);
  const f64 at = static_cast<f64>(rng.next()) * (1.0 / 4294967296.0) * starts.up_to[starts.count];
  i64 low = 0, high = starts.count;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (starts.up_to[middle] <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Begins an episode in a position of the starts. False: the usual start was drawn. Apart, because
// few pools have starts, and the others should not pay for them in registers.
template <class G>
SPARRING_APART SPARRING_FN inline bool begin_elsewhere(Table<G>& table, const Setting<G>& setting,
                                                       u32 game, u8* extra) {
  const i64 drawn = drawn_start(setting, game, table.episode);
  if (drawn == 0) return false;
  const Starts<G>& starts = setting.starts;
  Rng chance(setting.seed, game, table.episode, Stream::kChance);
  call_begin_from(table.game, setting.config, starts.game[drawn - 1], chance);
  table.chance_drawn = chance.drawn();
  if (const int bytes = extra_bytes<G>(setting.config))
    copy_bytes(extra, starts.extra + i64{starts.extra_index[drawn - 1]} * bytes, bytes);
  return true;
}

// Deals the next episode; nobody has decided anything in it.
template <class G>
SPARRING_FN inline void deal_episode(Table<G>& table, const Setting<G>& setting, u32 game,
                                     u8* extra) {
  ++table.episode;
  table.chance_drawn = table.bots_drawn = table.sampled = table.length = 0;
  for (f32& value : table.pending) value = 0;
  for (u16& value : table.skipped) value = 0;
  take_seats(table, setting, game);
  if (setting.starts.count && begin_elsewhere(table, setting, game, extra)) return;
  Rng chance(setting.seed, game, table.episode, Stream::kChance);
  with_extra<G>(extra, [&](auto... bytes) { table.game.reset(setting.config, chance, bytes...); });
  table.chance_drawn = chance.drawn();
}

// Plays an episode's first decisions by lot. The lots do not depend on who sits where.
template <class G>
SPARRING_FN inline void open_by_lot(Table<G>& table, const Setting<G>& setting, u32 game, u8* extra,
                                    Legal<G>* legal, Result& result) {
  Rng lots(setting.seed, game, table.episode, Stream::kOpenings);
  for (u32 ply = 0; ply < setting.opening_plies && !result.over(); ++ply) {
    typename G::Action actions[G::kRows]{};
    look(table, setting, extra, legal);
    for (int row = 0; row < G::kRows; ++row)
      if (table.game.seat(row) >= 0) actions[row] = sample_action<G>(legal[row], lots);
    take_step(table, setting, game, extra, actions, result);
  }
}

// Starts the next episode; `moves` becomes the fingerprint of what was played in it. Games that end
// before any policy had a say are played out and followed by another; nothing that happened in them
// belongs to anybody's decision. With `every_game` only an opening that ends the game is drawn
// anew. False: no policy was ever asked, and the table is given up. Lots are not counted.
template <class G>
SPARRING_FN inline bool begin(Table<G>& table, const Setting<G>& setting, u32 game, u8* extra,
                              Legal<G>* legal, u64* moves = nullptr, Counting counting = {}) {
  for (u32 patience = kMaxUnasked; patience > 0;) {
    --patience;
    deal_episode(table, setting, game, extra);
    Result result = result_into(table.pending, setting, table.player);
    open_by_lot(table, setting, game, extra, legal, result);
    if constexpr (kCounterCount<G> > 0) {
      result.recorder.counts = counting.sums;
      result.recorder.counted = counting.player;
    }
    if (setting.every_game) {
      if (!result.over()) look(table, setting, extra, legal);
    } else {
      settle(table, setting, game, extra, legal, result, patience);
    }
    if (moves) *moves = result.recorder.moves;
    if (!result.over()) return !result.stuck;
  }
  return false;
}

// What was earned before the first row came out is paid with the first answer.
template <class G>
SPARRING_FN inline void collect_pending(Table<G>& table, const Setting<G>& setting, f32* reward) {
  SPARRING_FOR (int i = 0; i < setting.shape.seats * G::kRoles; ++i) {
    reward[i] = table.pending[i];
    table.pending[i] = 0;
  }
  SPARRING_FOR (int seat = 0; seat < setting.shape.seats; ++seat) table.skipped[seat] = 0;
}

// The decisions that came out last are answered: step, then play on.
// `reward` is [seats][roles] of this game and is overwritten; so are `skipped` and, where somebody
// wants them, `record` [seats].
template <class G>
SPARRING_FN inline Result answer(Table<G>& table, const Setting<G>& setting, u32 game, u8* extra,
                                 Legal<G>* legal, const typename G::Action* given, f32* reward,
                                 u16* skipped, Counting counting = {}, u32* record = nullptr) {
  collect_pending(table, setting, reward);
  Result result = result_into(reward, setting, table.player, counting);
  result.recorder.records = record;
  for (int seat = 0; record && seat < setting.shape.seats; ++seat) record[seat] = 0;
  play(table, setting, game, extra, legal, given, false, result);
  u32 patience = kMaxUnasked;
  settle(table, setting, game, extra, legal, result, patience);
  for (int seat = 0; seat < setting.shape.seats; ++seat) skipped[seat] = table.skipped[seat];
  return result;
}

}  // namespace sparring
