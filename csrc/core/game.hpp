// The interface of a game: what every game implements. docs/inside/add-a-game.md walks through it.
#pragma once

#include "core/bits.hpp"
#include "core/fn.hpp"
#include "core/layout.hpp"
#include "core/rng.hpp"

namespace sparring {

// A continuous action: every component is in [-1, 1]; the game scales it.
template <int D>
struct Box {
  f32 value[D];
};

// The sizes that depend on the configuration.
struct Shape {
  int seats;      // seats that act and get rewards
  int actions;    // discrete actions in use (0 for box games)
  int obs_bytes;  // length of one observation row, a multiple of 16
};

// Statistics of a step: counters, results of goals, and a hash of the actions. No rule reads them.
struct Recorder {
  u64 action_hash = 0;          // computed on the host only
  u32* goal_results = nullptr;  // [seats], see core/goals.hpp; null: not recorded
  // Counters are integers, summed over the seats of one player.
  i64* counts = nullptr;        // [kCounters]; null: not counted
  const i16* player = nullptr;  // [seats]
  i16 counted_player = 0;       // the player whose seats are counted

  // Adds the action of decision `number` to the hash. The hash is a sum, so that it does not depend
  // on how decisions are grouped into steps.
  template <class Action>
  void hash_action(u64 number, const Action& action) {
    constexpr u64 words = sizeof(Action) / sizeof(u32);
    static_assert(sizeof(Action) == words * sizeof(u32));
    u32 word[words];
    memcpy(word, &action, sizeof action);
    for (u64 i = 0; i < words; ++i) {
      u64 value = (((number * words + i) << 32) | word[i]) + 0x9E3779B97F4A7C15ull;
      value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
      value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
      action_hash += value ^ (value >> 31);
    }
  }
  // Records the result of a seat's goal, not 0; the first one of a step counts.
  SPARRING_FN void record_goal(int seat, u32 goal_result) {
    if (goal_results && !goal_results[seat]) goal_results[seat] = goal_result;
  }
  // Adds to one of the game's kCounters. Check `counts` first if the amount is costly to compute.
  SPARRING_FN void count(int counter, int seat, i64 amount = 1) const {
    if (!counts || player[seat] != counted_player) return;
#if defined(__CUDA_ARCH__)
    if (amount) atomicAdd(reinterpret_cast<u64*>(counts) + counter, static_cast<u64>(amount));
#else
    counts[counter] += amount;
#endif
  }
};

// Output of a step: rewards by named part, and whether the episode ends. A part is multiplied by
// its weight at once; a part of weight 0 costs one comparison.
struct Result {
  f32* reward;        // [seats][roles], added to
  const f32* weight;  // [parts][roles]
  int roles;
  u32 active_parts;  // bit p: part p has a nonzero weight
  bool terminated = false;
  bool truncated = false;
  u8 reason = 0;       // index into the game's kEnds
  bool stuck = false;  // no policy had a decision in kMaxUnasked decisions
  Recorder recorder = {};

  SPARRING_FN bool is_weighted(int part) const { return (active_parts >> part) & 1; }
  SPARRING_FN bool over() const { return terminated || truncated; }

  SPARRING_FN void add_reward(int part, int seat, f32 amount) {
    if (!is_weighted(part)) return;
    SPARRING_FOR (int role = 0; role < roles; ++role)
      reward[seat * roles + role] += weight[part * roles + role] * amount;
  }
  // The rules ended the game.
  SPARRING_FN void terminate(int why = 0) {
    terminated = true;
    reason = static_cast<u8>(why);
  }
  // A limit ended the episode; learners bootstrap from the value of the last position.
  SPARRING_FN void truncate(int why = 0) {
    truncated = true;
    reason = static_cast<u8>(why);
  }
};

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;
template <class A, class B>
concept Same = kSame<A, B>;

template <class G>
inline constexpr bool kDiscrete = kSame<typename G::Action, i32>;

// Legal actions of one row; empty for continuous actions.
template <class G>
using Legal = Bits<(G::kActions > 0 ? G::kActions : 1)>;

// A game with bytes outside its struct declares their number; its functions take them as the last
// argument.
template <class G>
concept HasExtraState = requires(const typename G::Config& config) {
  { G::extra_bytes(config) } -> Same<int>;
};

// The constants and functions every game has. Games are values: copying the bytes clones them.
template <class G>
concept Game = __is_trivially_copyable(G) &&
               requires(G game, const G constant, const typename G::Config& config) {
                 typename G::Action;
                 { G::shape(config) } -> Same<Shape>;
                 requires G::kMaxSeats >= 1 && G::kRows >= 1 && G::kRoles >= 1 && G::kActions >= 0;
                 requires sizeof(G::kParts) / sizeof(G::kParts[0]) <= 32;
                 { constant.seat(0) } -> Same<int>;
                 { constant.role(0) } -> Same<int>;
                 { constant.score(config, 0) } -> Same<f32>;
               };

template <class G>
inline constexpr int kPartCount = static_cast<int>(sizeof(G::kParts) / sizeof(G::kParts[0]));

// Roles that are part of a game's bench signature: a game that gained roles keeps its old
// signature.
template <class G>
inline constexpr int kSignedRolesOf = G::kRoles;
template <class G>
  requires requires { G::kSignedRoles; }
inline constexpr int kSignedRolesOf<G> = G::kSignedRoles;

// Named counters from which a game's statistics are computed; optional.
template <class G>
inline constexpr int kCounterCount = 0;
template <class G>
  requires requires { G::kCounters; }
inline constexpr int kCounterCount<G> =
    static_cast<int>(sizeof(G::kCounters) / sizeof(G::kCounters[0]));

// Reasons for which an episode ends; one by default.
template <class G>
inline constexpr int kEndCount = 1;
template <class G>
  requires requires { G::kEnds; }
inline constexpr int kEndCount<G> = static_cast<int>(sizeof(G::kEnds) / sizeof(G::kEnds[0]));

template <class G>
inline constexpr int kBotCount = 0;
template <class G>
  requires requires { G::kBots; }
inline constexpr int kBotCount<G> = static_cast<int>(sizeof(G::kBots) / sizeof(G::kBots[0]));

// How many of them are in use. Rules that are loaded at run time use fewer than their type has.
struct Counts {
  int roles, parts, ends, counters, bots;
};
template <class G>
SPARRING_FN constexpr Counts counts_of(const typename G::Config& config) {
  if constexpr (requires { G::counts(config); })
    return G::counts(config);
  else
    return {G::kRoles, kPartCount<G>, kEndCount<G>, kCounterCount<G>, kBotCount<G>};
}

// Calls `call` with the extra state if the game has one, else without arguments.
template <class G, class Byte, class Call>
SPARRING_FN inline auto with_extra(Byte* extra, Call call) {
  if constexpr (HasExtraState<G>)
    return call(extra);
  else
    return call();
}

template <class G>
SPARRING_FN inline int extra_bytes(const typename G::Config& config) {
  if constexpr (HasExtraState<G>)
    return G::extra_bytes(config);
  else
    return 0;
}

template <class G>
SPARRING_FN inline void call_observe(const G& game, const typename G::Config& config, int seat,
                                     u8* out, const u8* extra) {
  with_extra<G>(extra, [&](auto... bytes) { game.observe(config, seat, out, bytes...); });
}

template <class G>
SPARRING_FN inline void call_legal(const G& game, const typename G::Config& config, int row,
                                   Legal<G>& out, const u8* extra) {
  if constexpr (kDiscrete<G>)
    with_extra<G>(extra, [&](auto... bytes) { game.legal(config, row, out, bytes...); });
  else
    out = Legal<G>::none();
}

// Begins an episode in a given position. A game may randomize parts of it, or keep what lasts from
// the episode before.
template <class G>
SPARRING_FN inline void call_begin_from(G& game, const typename G::Config& config, const G& start,
                                        Rng& chance) {
  if constexpr (requires { game.begin_from(config, start, chance); })
    game.begin_from(config, start, chance);
  else
    game = start;
}

}  // namespace sparring
