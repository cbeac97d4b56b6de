// The contract between a game and everything that plays it. docs/add-a-game.md walks through it.
#pragma once

#include "core/bits.hpp"
#include "core/fn.hpp"
#include "core/layout.hpp"
#include "core/rng.hpp"

namespace sparring {

// A continuous action: every component lies in [-1, 1], the game gives it its unit.
template <int D>
struct Box {
  f32 value[D];
};

// The sizes that depend on the configuration.
struct Shape {
  int seats;      // places that decide and are paid
  int actions;    // discrete actions in use (0 for box games)
  int obs_bytes;  // length of one observation row, a multiple of 16
};

// What is kept of a step beside its result: counters of the game's statistics, what came of goals,
// and a fingerprint of the actions. No rule may depend on it.
struct Recorder {
  u64 moves = 0;           // the fingerprint; the host alone keeps it
  u32* records = nullptr;  // [seats] what came of goals, if somebody wants to know
  // Counters are whole numbers, added up over the seats of one player.
  i64* counts = nullptr;        // [kCounters]; null: nobody counts
  const i16* player = nullptr;  // who sits where
  i16 counted = 0;              // whose seats are counted

  // Remembers the action of a decision by its number. A sum, so that it does not matter in how many
  // steps the decisions came.
  template <class Action>
  void note(u64 number, const Action& action) {
    constexpr u64 words = sizeof(Action) / sizeof(u32);
    static_assert(sizeof(Action) == words * sizeof(u32));
    u32 word[words];
    memcpy(word, &action, sizeof action);
    for (u64 i = 0; i < words; ++i) {
      u64 value = (((number * words + i) << 32) | word[i]) + 0x9E3779B97F4A7C15ull;
      value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
      value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
      moves += value ^ (value >> 31);
    }
  }
  // What came of a seat's goal, see core/goals.hpp; not 0. The first one of a step counts.
  SPARRING_FN void record(int seat, u32 what) {
    if (records && !records[seat]) records[seat] = what;
  }
  // Adds to one of the game's kCounters. What it costs to find out should wait for `counts`.
  SPARRING_FN void count(int counter, int seat, i64 amount = 1) const {
    if (!counts || player[seat] != counted) return;
#if defined(__CUDA_ARCH__)
    if (amount) atomicAdd(reinterpret_cast<u64*>(counts) + counter, static_cast<u64>(amount));
#else
    counts[counter] += amount;
#endif
  }
};

// What a step writes: rewards by named part, and the end. Parts are weighted on the spot, so
// that a part nobody asked for costs one test.
struct Result {
  f32* reward;        // [seats][roles], added to
  const f32* weight;  // [parts][roles]
  int roles;
  u32 wanted;  // bit p: part p has a weight other than 0
  bool terminated = false;
  bool truncated = false;
  u8 reason = 0;       // index into the game's kEnds
  bool stuck = false;  // the table asked nobody for so long that it never will
  Recorder recorder = {};

  SPARRING_FN bool wants(int part) const { return (wanted >> part) & 1; }
  SPARRING_FN bool over() const { return terminated || truncated; }

  SPARRING_FN void pay(int part, int seat, f32 amount) {
    if (!wants(part)) return;
    SPARRING_FOR (int role = 0; role < roles; ++role)
      reward[seat * roles + role] += weight[part * roles + role] * amount;
  }
  // The rules ended the game.
  SPARRING_FN void terminate(int why = 0) {
    terminated = true;
    reason = static_cast<u8>(why);
  }
  // The game was cut; a learner estimates what was still to come.
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

// Legal actions of one row. Box games have none to list.
template <class G>
using Legal = Bits<(G::kActions > 0 ? G::kActions : 1)>;

// A game that keeps bytes outside its struct says how many; its functions then take them last.
template <class G>
concept HasExtraState = requires(const typename G::Config& config) {
  { G::extra_bytes(config) } -> Same<int>;
};

// The constants and functions every game has. Games are values: copying the bytes clones them.
template <class G>
concept Game =
    __is_trivially_copyable(G) && requires(G game, const G seen, const typename G::Config& config) {
      typename G::Action;
      { G::shape(config) } -> Same<Shape>;
      requires G::kMaxSeats >= 1 && G::kRows >= 1 && G::kRoles >= 1 && G::kActions >= 0;
      requires sizeof(G::kParts) / sizeof(G::kParts[0]) <= 32;
      { seen.seat(0) } -> Same<int>;
      { seen.role(0) } -> Same<int>;
      { seen.score(config, 0) } -> Same<f32>;
    };

template <class G>
inline constexpr int kPartCount = static_cast<int>(sizeof(G::kParts) / sizeof(G::kParts[0]));

// How many roles the signature of a game knows: a game that was given more later keeps its own.
template <class G>
inline constexpr int kSignedRolesOf = G::kRoles;
template <class G>
  requires requires { G::kSignedRoles; }
inline constexpr int kSignedRolesOf<G> = G::kSignedRoles;

// A game may have counters, by name, that its statistics are made of.
template <class G>
inline constexpr int kCounterCount = 0;
template <class G>
  requires requires { G::kCounters; }
inline constexpr int kCounterCount<G> =
    static_cast<int>(sizeof(G::kCounters) / sizeof(G::kCounters[0]));

// Why a game may end; one that does not tell has one reason.
template <class G>
inline constexpr int kEndCount = 1;
template <class G>
  requires requires { G::kEnds; }
inline constexpr int kEndCount<G> = static_cast<int>(sizeof(G::kEnds) / sizeof(G::kEnds[0]));

// The core hands every game its extra, which is empty where the game keeps none: `call` is given
// the bytes as its last argument, or nothing.
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

// A game goes on from a given position; it may leave some of it to chance, or keep what goes on
// from the episode before.
template <class G>
SPARRING_FN inline void call_begin_from(G& game, const typename G::Config& config, const G& start,
                                        Rng& chance) {
  if constexpr (requires { game.begin_from(config, start, chance); })
    game.begin_from(config, start, chance);
  else
    game = start;
}

}  // namespace sparring
