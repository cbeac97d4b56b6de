// Tree search on the GPU: one thread has one tree, through the same header as CPU threads.
//
// NVRTC compiles this file after a game's header, with the constants of the game's pool
// (cuda/pool.cuh). src/sparring/search/cuda.py launches the kernels: `begin_search`, then
// `advance_search` before and after every evaluation of leaves by the network, then `decide_roots`.
// Every tree has one leaf at a time.
#pragma once

#include "cuda/stage.cuh"
#include "search/tree.hpp"

namespace sparring {

inline constexpr int kActionCount = max(SPARRING_ACTIONS, 1);
inline constexpr bool kRowsStaged = kWarp * kRowStride <= SPARRING_STAGE_BYTES;

// The games in whose positions trees begin: row r of game g is tree g * G::kRows + r. `each`
// consecutive games share a setting.
struct RootsView {
  const Env<G>* envs;
  const u8* extra;
  const SettingStorage<G>* settings;
  int games, each;
  const i16* policy;       // [trees], the policy that moves; null: all rows are searched
  int learner;             // the policy whose rows are searched
  const i32* simulations;  // [trees]; null: `most` in every tree
  int most;
};

// Outputs of the network for the leaves: logits with biases [trees, rows of a leaf, width], and
// values in units of the rewards [trees, rows of a leaf].
struct EvaluationView {
  const f32* policy;  // null: there are none to take
  const f32* value;
  int width;
};

// The leaves between the two halves of a simulation.
struct LeavesView {
  OpenLeaf<G>* leaf;     // [trees]
  u8* extra;             // [trees, extra bytes]
  u8* obs;               // [trees, rows of a leaf, kRowBytes]
  Setting<G>* settings;  // of each member, with the seed of searches
  int trees, each;       // `each` consecutive trees share a setting
};

// What searches found, by tree. Null members are not written.
struct FoundView {
  G::Action* action;
  f32* policy;  // [trees, actions], the improved policy
  f32* value;   // of the mover
  i32* visits;  // [trees, actions]
  f32* q;       // [trees, actions]; 0 without visits
};

SPARRING_FN inline int tree_of_thread() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// The trees as a thread sees them: with the setting of its member.
SPARRING_FN inline TreesView<G> trees_of(const TreesView<G>& trees, const Setting<G>* setting) {
  TreesView<G> mine = trees;
  mine.setting = setting;
  return mine;
}

// What the searched row plays by an edge of the root.
template <class G>
SPARRING_FN inline G::Action action_of(const Tree<G>& tree, int edge) {
  if constexpr (kJointActions<G>)
    return tree.joint_of(0, edge)[tree.head().row];
  else
    return tree.edges(0)[edge].action();
}

#if !defined(SPARRING_UNIT) || SPARRING_UNIT == 0
extern "C" __global__ void search_sizes(i32* out) {
  out[0] = sizeof(TreeHead);
  out[1] = sizeof(Node<G>);
  out[2] = sizeof(Edge);
  out[3] = sizeof(OpenLeaf<G>);
  out[4] = sizeof(Setting<G>);
  out[5] = sizeof(G);
  out[6] = kRowsStaged ? kWarp * kRowStride : 0;
  out[7] = kJointActions<G> ? sizeof(G::Action) * G::kRows : 0;
  out[8] = kStoresPositions<G>;
  out[9] = kMaxLegalOf<G>;
}

// Begins a search in the positions of the games. Rows that are not searched have finished trees.
extern "C" __global__ void begin_search(SPARRING_VIEW TreesView<G> trees,
                                        SPARRING_VIEW LeavesView leaves,
                                        SPARRING_VIEW RootsView roots) {
  const int index = tree_of_thread();
  if (index >= leaves.trees) return;
  const int game = index / G::kRows, row = index % G::kRows, member = game / roots.each;
  const Setting<G>& setting = roots.settings[member];
  if (index % leaves.each == 0) {
    leaves.settings[member] = setting;
    leaves.settings[member].seed ^= kSearchSeed;
  }
  const TreesView<G> mine = trees_of(trees, &setting);
  const Tree<G> tree{mine, index};
  tree.root() = roots.envs[game];
  if constexpr (SPARRING_EXTRA_BYTES > 0)
    copy_extra_state(trees.extra + i64{index} * SPARRING_EXTRA_BYTES,
                     roots.extra + i64{game} * SPARRING_EXTRA_BYTES, SPARRING_EXTRA_BYTES);
  const bool searched =
      tree.root().game.seat(row) >= 0 && (!roots.policy || roots.policy[index] == roots.learner);
  const int simulations = roots.simulations ? roots.simulations[index] : roots.most;
  tree.begin(setting.first_game + static_cast<u32>(game % roots.each), row,
             searched ? simulations : 0);
  leaves.leaf[index].evaluate = 0;
  if (!searched) tree.head().started = tree.head().settled = 0;
}

// Writes what the searches found.
extern "C" __global__ void decide_roots(SPARRING_VIEW TreesView<G> trees,
                                        SPARRING_VIEW LeavesView leaves,
                                        SPARRING_VIEW FoundView found) {
  const int index = tree_of_thread();
  if (index >= leaves.trees) return;
  const TreesView<G> mine = trees_of(trees, leaves.settings + index / leaves.each);
  const Tree<G> tree{mine, index};
  const i64 first = i64{index} * kActionCount;
  const int edges = tree.node(0).edges;
  SPARRING_FOR (int a = 0; found.policy && a < kActionCount; ++a) found.policy[first + a] = 0;
  SPARRING_FOR (int a = 0; found.visits && a < kActionCount; ++a) found.visits[first + a] = 0;
  SPARRING_FOR (int a = 0; found.q && a < kActionCount; ++a) found.q[first + a] = 0;
  found.action[index] = G::Action{};
  found.value[index] = 0;
  if (edges == 0) return;
  const int chosen = tree.decide();
  found.action[index] = action_of(tree, chosen);
  f32* const improved = tree.gumbels();  // the noise has done its work
  found.value[index] = static_cast<f32>(tree.improved(improved));
  SPARRING_FOR (int i = 0; i < edges; ++i) {
    const Edge& edge = tree.edges(0)[i];
    const i64 at = first + edge.action();
    if (edge.action() >= kActionCount) continue;
    if (found.policy) found.policy[at] = improved[i];
    if (found.visits) found.visits[at] = static_cast<i32>(edge.visits);
    if (found.q && edge.visits) found.q[at] = edge.mean;
  }
}
#endif

#if !defined(SPARRING_UNIT) || SPARRING_UNIT == 1
// The rows of a warp's leaves, written in shared memory where they fit.
struct LeafRows {
  static __device__ u8* row(u8* out) {
    return kRowsStaged ? reinterpret_cast<u8*>(stage_bytes) + Stage::lane() * kRowStride : out;
  }

  // Copies the rows of the trees in `written`, `stride` bytes apart.
  static __device__ void put(u8* out, i64 stride, u32 written) {
    if constexpr (kRowsStaged) {
      __syncwarp();
      for (; written; written &= written - 1) {
        const int tree = __ffs(static_cast<int>(written)) - 1;
        const u8* from = reinterpret_cast<const u8*>(stage_bytes) + tree * kRowStride;
        for (int word = Stage::lane(); word < kRowWords; word += kWarp)
          reinterpret_cast<Word*>(out + tree * stride)[word] =
              reinterpret_cast<const Word*>(from)[word];
      }
      __syncwarp();
    }
  }
};

// Takes the evaluation of the leaves, and begins the next simulation of every tree, up to the leaf.
// Both in one kernel: they read the same nodes. Writes the rows of leaves that the network is to
// evaluate. select: whether to begin any.
extern "C" __global__ void __launch_bounds__(kWarp)
    advance_search(SPARRING_VIEW TreesView<G> trees, SPARRING_VIEW LeavesView leaves,
                   SPARRING_VIEW EvaluationView found, int select) {
  const int first = static_cast<int>(blockIdx.x) * kWarp, index = first + Stage::lane();
  const bool has_tree = index < leaves.trees;
  const int member = (has_tree ? index : first) / leaves.each, rows = trees.options.row_count;
  const TreesView<G> mine = trees_of(trees, leaves.settings + member);
  const Tree<G> tree{mine, index};
  if (found.policy && has_tree && leaves.leaf[index].evaluate) {
    const i64 row = i64{index} * rows;
    tree.settle(leaves.leaf[index], found.policy + row * found.width, found.width,
                found.value + row);
  }
  if (!select) return;
  u8* const extra = leaves.extra + i64{index} * SPARRING_EXTRA_BYTES;
  Leaf<G> leaf;
  const bool written = has_tree && tree.select_leaf(leaf, extra) && leaf.evaluate;
  if (written)
    leaves.leaf[index] = leaf;
  else if (has_tree)
    leaves.leaf[index].evaluate = 0;
  const u32 all = __ballot_sync(0xffffffffu, written);
  for (int r = 0; r < rows; ++r) {
    u8* const out = leaves.obs + (i64{first} * rows + r) * kRowBytes;
    if (written) {
      u8* const to = LeafRows::row(out + i64{Stage::lane()} * rows * kRowBytes);
      SPARRING_FOR (int i = kObsBytes - 16; kRowsStaged && i < kObsBytes; ++i)
        to[i] = 0;  // padding
      tree.observe_row(leaf, extra, r, to);
    }
    LeafRows::put(out, i64{rows} * kRowBytes, all);
  }
}
#endif

}  // namespace sparring
