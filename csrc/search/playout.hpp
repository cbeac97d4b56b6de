// Search in games whose seats hide something from each other: a decision is tried in worlds that
// the seat thinks possible, and every seat plays on by its own policy from what it sees.
// docs/guides/search.md explains the rules; tests/reference/worlds.py is the same in plain Python.
//
// A playout is one candidate action in one world. Below its first action nothing is chosen by what
// the world shows: a seat that could see the cards would plan with them.
#pragma once

#include "search/node.hpp"

namespace sparring {

inline constexpr int kMaxRoles = 8;

// Games whose decisions can be tried in worlds.
template <class G>
inline constexpr bool kHasWorlds = kDiscrete<G> && kResamples<G> && G::kRoles <= kMaxRoles;

// Settings of a search over worlds.
struct WorldsOptions {
  i32 playouts = 64;    // of a decision
  i32 considered = 16;  // most actions that are tried: the most probable ones
  i32 least = 1;        // worlds in which each is tried; where playouts do not suffice, fewer are
  i32 horizon = 0;      // own decisions after which the network's value counts; 0: the end
  f32 eta = 1;          // step size, per unit of reward
  f32 alpha = 0;        // pull toward the magnet, the uniform policy
  f32 caution = 0;      // how much steps shrink by the standard error of the returns
  f32 gamma = 1;        // discount of forced and last decisions
  f32 into[kMaxRoles] = {1, 1, 1, 1, 1, 1, 1, 1};  // of the step into a decision, by its role
  u8 noise = 0;                                    // actions are drawn from the improved policy
};

// The decision that is searched.
template <class G>
struct WorldRoot {
  Env<G> env;
  u32 game;            // global number, for random numbers
  i32 row, seat;       // that decide
  i32 simulations;     // playouts to make
  i32 actions;         // legal ones
  i32 candidates;      // of them that are tried; 0: not evaluated yet, or nothing to choose
  i32 worlds;          // in which they are
  i32 started, ended;  // playouts
  i32 ended_in_order;  // those before the first one that still runs
  f32 value;           // by the network
  u8 evaluated;
};

enum class Asks : u8 { kNothing, kActions, kValue };

// A game that is played on from the decision.
template <class G>
struct Playout {
  Env<G> env;
  Legal<G> legal[G::kRows];
  i32 number;           // world * candidates + candidate
  i32 action;           // the candidate
  i32 decisions, role;  // of the deciding seat: how many it has made, and the role of the last
  u32 drawn;            // random numbers
  f64 total, weight;    // return so far, and discount of what follows
  Asks asks;            // of the network
  u8 running;
};

// A playout with what it depends on.
template <class G>
struct Player {
  using Action = typename G::Action;
  const WorldsOptions& options;
  const Setting<G>& setting;
  const WorldRoot<G>& root;
  Playout<G>& at;
  u8* extra;

  // Begins in a world: `at.env` and the extra state are set.
  SPARRING_FN void begin(int number, int action) const {
    at.number = number;
    at.action = action;
    at.decisions = 0;
    at.role = root.env.game.role(root.row);
    at.drawn = 0;
    at.total = 0;
    at.weight = 1;
    at.running = 1;
    at.asks = G::kRows > 1 ? Asks::kActions : Asks::kNothing;
    find_turn(at.env, setting, extra, at.legal);
    if (at.asks == Asks::kActions && rows() == 0) at.asks = Asks::kNothing;
    if (at.asks == Asks::kNothing) play(nullptr, 0);
  }

  // Rows that the network evaluates next.
  SPARRING_FN int rows() const {
    int count = at.asks == Asks::kValue;
    if (at.asks == Asks::kActions)
      for (int r = 0; r < G::kRows; ++r) count += is_asked(r);
    return count;
  }

  SPARRING_FN void observe(u8* to) const {
    const auto write = [&](int seat) {
      call_observe(at.env.game, setting.config, seat, to, extra);
      to += setting.shape.obs_bytes;
    };
    if (at.asks == Asks::kValue) return write(root.seat);
    for (int r = 0; r < G::kRows; ++r)
      if (is_asked(r)) write(at.env.game.seat(r));
  }

  // Takes the outputs for these rows.
  SPARRING_FN void settle(const f32* policy, int head_width, const f32* value) const {
    if (at.asks == Asks::kValue) return end(at.weight * value[0]);
    play(policy, head_width);
  }

 private:
  // Whether the policy of a row decides; the first action of the searched row is the candidate.
  SPARRING_FN bool is_asked(int r) const {
    return at.env.game.seat(r) >= 0 && !(at.decisions == 0 && r == root.row);
  }

  SPARRING_FN void end(f64 rest) const {
    at.total += rest;
    at.running = 0;
  }

  // The random numbers of a world are the same for all candidates.
  SPARRING_FN Rng draws() const {
    return Rng(setting.seed, root.game, at.env.episode, Stream::kSearch, at.drawn);
  }

  SPARRING_FN void play(const f32* policy, int head_width) const {
    Action actions[G::kRows]{};
    Rng rng = draws();
    for (int r = 0; r < G::kRows; ++r) {
      if (at.decisions == 0 && r == root.row) {
        actions[r] = at.action;
      } else if (is_asked(r)) {
        actions[r] = draw_action<G>(policy, at.legal[r], rng);
        policy += head_width;
      }
    }
    at.drawn = rng.drawn();
    if (at.decisions == 0) at.decisions = 1;
    f32 reward[G::kMaxSeats * G::kRoles]{};
    u16 skipped[G::kMaxSeats]{};
    const Result result =
        apply_actions(at.env, setting, root.game, extra, at.legal, actions, reward, skipped);
    at.total += at.weight * reward[root.seat * counts_of<G>(setting.config).roles + at.role];
    for (int i = 0; i < skipped[root.seat]; ++i) at.weight *= options.gamma;
    at.asks = Asks::kActions;
    if (result.terminated) return end(0);
    if (result.truncated || result.stuck) {
      at.weight *= options.gamma;
      at.asks = Asks::kValue;
      return;
    }
    for (int r = 0; r < G::kRows; ++r)
      if (at.env.game.seat(r) == root.seat) return decide_again(at.env.game.role(r));
  }

  // The seat decides once more. Its value is asked here and nowhere else: by its own observation,
  // as another seat's value would not know its cards, and where it decides, as values are trained.
  SPARRING_FN void decide_again(int role) const {
    at.weight *= options.into[role];
    at.role = role;
    if (at.weight == 0) return end(0);
    if (at.decisions == options.horizon)
      at.asks = Asks::kValue;
    else
      ++at.decisions;
  }
};

}  // namespace sparring
