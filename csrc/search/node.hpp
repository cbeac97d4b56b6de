// What search trees are made of, and the numbers that their rules compute from a node.
//
// Everything is computed in f64 in a fixed order, and without library functions: equal on all
// devices.
#pragma once

#include "core/env.hpp"
#include "core/power.hpp"
#include "core/resample.hpp"
#include "core/sincos.hpp"
#include "nets/gaussian.hpp"

namespace sparring {

enum SearchRule : i32 { kGumbel, kPuct };

inline constexpr int kMaxConsidered = 64;  // root actions that sequential halving begins with
inline constexpr int kMaxWidth = 64;       // edges of a node that is not the root
inline constexpr f32 kMinPrior = 1e-30f;
inline constexpr int kActionBits = 12;
inline constexpr int kMaxNodes = 1 << (32 - kActionBits);
inline constexpr u64 kSearchSeed = 0x5EA2C4B175EED5ull;

// Games whose edges hold more than the number of an action: a continuous action, or the actions of
// all rows that move at the same time.
template <class G>
inline constexpr bool kJointActions = !kDiscrete<G> || G::kRows > 1;

// A game with extra state can be searched from stored positions if it can repeat what a step from a
// position writes there.
template <class G>
inline constexpr bool kStoresPositions =
    !HasExtraState<G> || requires(const G& game, const typename G::Config& config, u8* extra) {
      game.leave(config, extra);
    };

// The most actions that are legal in a position.
template <class G>
inline constexpr int kMaxLegalOf = G::kActions;
template <class G>
  requires requires { G::kMaxLegal; }
inline constexpr int kMaxLegalOf<G> = G::kMaxLegal;

// Aligned, so that a GPU reads it at once.
struct alignas(16) Edge {
  f32 prior;
  f32 mean;  // return of the node's mover
  u32 visits;
  u32 link;  // child << kActionBits | action; child 0: none yet

  SPARRING_FN static int action_of(u32 link) {
    return static_cast<int>(link & ((1u << kActionBits) - 1));
  }
  SPARRING_FN static int child_of(u32 link) { return static_cast<int>(link >> kActionBits); }
  SPARRING_FN int action() const { return action_of(link); }
  SPARRING_FN int child() const { return child_of(link); }
};
static_assert(sizeof(Edge) == 16);

// A game that pays a win through one part of its rewards, 1 to the winner and -1 to the loser, at
// the end: where no other part counts, a win is the most that a seat can gain.
template <class G>
inline constexpr bool kPaysWins = G::kRows == 1 && G::kMaxSeats == 2 && requires { G::kWinPart; };

// What is known of a node's position. The values of the last two are exact.
enum class Status : u8 { kOpen, kTruncated, kTerminated, kProven };

template <class G>
struct alignas(16) Node {
  i32 parent;
  u16 parent_edge;
  u16 edges;      // 0: not expanded
  i8 seat;        // the mover, or the seat of the searched row
  Status status;  // in games whose positions are stored
  u8 role;
  f32 value;  // of the mover: by the network, or exact
  u32 visits;
  f32 reward[G::kMaxSeats];  // of the step that led here
};

// Settings of a search.
struct SearchOptions {
  i32 rule = kGumbel;
  i32 nodes = 2;        // per tree
  i32 considered = 16;  // root actions that sequential halving begins with
  i32 width = 32;       // edges of a node that is not the root; the most probable are kept
  i32 samples = 16;     // sampled continuous actions per node
  f32 c_visit = 50, c_scale = 1, c_puct = 1.25f;
  f32 gamma = 1;    // discount between two decisions of a seat
  u8 rescale = 0;   // values of a node are rescaled to 0..1
  u8 noise = 0;     // Gumbel noise at the root
  u8 squash = 0;    // continuous actions pass through tanh
  u8 replay = 0;    // positions are not stored: every simulation plays from the root
  u8 resample = 0;  // hidden parts of the root are drawn anew in every simulation
  u8 prove = 1;     // positions are proven won, drawn or lost where the game allows it
  i32 row_count;    // evaluated rows of a leaf: 1, or one per seat
  i32 root_width;   // edges of the root
};

// One tree's counters.
struct TreeHead {
  u32 game;         // global number, for random numbers
  i32 row;          // the searched row
  i32 simulations;  // to make
  i32 started, settled;
  i32 nodes;
  i32 phases, active, rounds, next;  // of sequential halving
  u16 considered[kMaxConsidered];    // root edges; the first `active` are left
};

// An unfinished simulation, as far as it is needed when the network has answered.
template <class G>
struct OpenLeaf {
  Legal<G> legal[G::kRows];
  i32 node, simulation;
  i8 seat[G::kRows];  // that moves in each row; -1: none
  u8 evaluate, expand;
};

// An unfinished simulation with its position.
template <class G>
struct Leaf : OpenLeaf<G> {
  Env<G> env;
};

// All trees, in plain arrays.
template <class G>
struct TreesView {
  SearchOptions options;
  const Setting<G>* setting;
  TreeHead* head;             // [trees]
  Env<G>* root;               // [trees]
  u8* extra;                  // [trees, extra bytes], of the root
  Node<G>* node;              // [trees, nodes]
  Edge* edge;                 // [trees, root_width + (nodes - 1) * width]
  G* state;                   // [trees, nodes]; null if every simulation plays from the root
  typename G::Action* joint;  // [edges, rows] if kJointActions
  f32* logit;                 // [trees, root_width]
  f32* gumbel;                // [trees, root_width]

  SPARRING_FN int edges_each() const {
    return options.root_width + (options.nodes - 1) * options.width;
  }
};

// Numbers of one node that every rule needs; see `completed` in the reference.
struct NodeValues {
  f64 mix, low, high, best, sigma;
  bool rescale;

  SPARRING_FN f64 scaled(f64 q) const { return rescale ? (q - low) / max(high - low, 1e-8) : q; }
  SPARRING_FN f64 completed(const Edge& edge) const { return edge.visits ? edge.mean : mix; }
  // What is added to a logit.
  SPARRING_FN f64 bonus(const Edge& edge) const { return sigma * scaled(completed(edge)); }
  // The prior times the exponential of the bonus, at most the prior.
  SPARRING_FN f64 weight(const Edge& edge) const;
};

// Copies extra state, whose size is a multiple of 4. A GPU would copy it byte by byte.
SPARRING_FN inline void copy_extra_state(u8* to, const u8* from, int bytes) {
#if defined(__CUDA_ARCH__)
  if (bytes % 8 == 0) {
    SPARRING_FOR (int i = 0; i < bytes / 8; ++i)
      reinterpret_cast<u64*>(to)[i] = reinterpret_cast<const u64*>(from)[i];
  } else {
    SPARRING_FOR (int i = 0; i < bytes / 4; ++i)
      reinterpret_cast<u32*>(to)[i] = reinterpret_cast<const u32*>(from)[i];
  }
#else
  copy_bytes(to, from, bytes);
#endif
}

// 0 also for what is no number: an evaluator may be broken, the tree may not.
SPARRING_FN inline f64 exp_of(f64 x) {
  return x >= -600 ? exp2_of(min(x, 600.0) * 1.4426950408889634) : 0.0;
}
SPARRING_FN inline f64 ln_of(f64 x) { return log2_of(x) * 0.6931471805599453; }

// Draws an action by the probabilities of a policy.
template <class G>
SPARRING_FN inline i32 draw_action(const f32* logit, const Legal<G>& legal, Rng& draws) {
  f64 top = -3.4e38;
  legal.each([&](int action) { top = max(top, static_cast<f64>(logit[action])); });
  f64 total = 0, sum = 0;
  legal.each([&](int action) { total += exp_of(logit[action] - top); });
  const f64 point = static_cast<f64>(draws.next()) * (1.0 / 4294967296.0) * total;
  int drawn = -1, last = 0;
  legal.each([&](int action) {
    last = action;
    sum += exp_of(logit[action] - top);
    if (drawn < 0 && sum > point) drawn = action;
  });
  return drawn < 0 ? last : drawn;
}

SPARRING_FN inline f64 NodeValues::weight(const Edge& edge) const {
  return static_cast<f64>(edge.prior) * exp_of(bonus(edge) - sigma * scaled(best));
}

}  // namespace sparring
