// A sum tree over integers, which draws a leaf with a probability proportional to its weight.
// Integers add up to the same sum in any order, so that CPU and GPU, serial or parallel, draw the
// same leaves.
//
// Weights are leaves; every node above is the sum of up to `kFan` children. After weights change,
// the nodes above are summed again level by level, the nodes of a level in any order.
#pragma once

#include "core/rng.hpp"

namespace sparring {

struct SumTree {
  int leaves;
  u32* leaf;  // [leaves]
  u64* sums;  // [tree_sums(leaves)], the root first, then level by level
};

inline constexpr int kFanBits = 4;
inline constexpr int kFan = 1 << kFanBits;

// Nodes of a level; level 0 are the leaves.
SPARRING_FN constexpr int tree_count(int leaves, int level) {
  return static_cast<int>((i64{leaves} + (i64{1} << (kFanBits * level)) - 1) >> (kFanBits * level));
}

// The level of the root.
SPARRING_FN constexpr int tree_height(int leaves) {
  int height = 1;
  while (tree_count(leaves, height) > 1) ++height;
  return height;
}

// Offset of the nodes of a level in `sums`.
SPARRING_FN constexpr int tree_first(int leaves, int level) {
  int first = 0;
  for (int above = tree_height(leaves); above > level; --above) first += tree_count(leaves, above);
  return first;
}

// Nodes of all levels above the leaves.
SPARRING_FN constexpr int tree_sums(int leaves) { return tree_first(leaves, 0); }

// A level of sums, and the one below it.
struct TreeLevel {
  int level, nodes, first;
  int below, below_first;  // number and offset of the nodes of the level below
};

SPARRING_FN inline TreeLevel tree_level(int leaves, int level) {
  return {level, tree_count(leaves, level), tree_first(leaves, level),
          tree_count(leaves, level - 1), level > 1 ? tree_first(leaves, level - 1) : 0};
}

// Sums the children of a node, which must be up to date.
SPARRING_FN inline void sum_node(const SumTree& tree, const TreeLevel& level, int node) {
  const int first = node << kFanBits;
  const int end = min(first + kFan, level.below);
  u64 sum = 0;
  if (level.level == 1) {
    for (int i = first; i < end; ++i) sum += tree.leaf[i];
  } else {
    for (int i = first; i < end; ++i) sum += tree.sums[level.below_first + i];
  }
  tree.sums[level.first + node] = sum;
}

// The node of a level above a leaf.
SPARRING_FN inline int node_above(int leaf, int level) { return leaf >> (kFanBits * level); }

SPARRING_FN inline u64 tree_total(const SumTree& tree) { return tree.sums[0]; }

// The leaf that contains `point` when the leaves are laid end to end, each as long as its weight.
SPARRING_FN inline int find_leaf(const SumTree& tree, u64 point) {
  int node = 0, first = 0;
  for (int level = tree_height(tree.leaves); level > 1; --level) {
    const int count = tree_count(tree.leaves, level - 1);
    first += tree_count(tree.leaves, level);
    int child = node << kFanBits;
    const int last = min(child + kFan, count) - 1;
    for (; child < last && point >= tree.sums[first + child]; ++child)
      point -= tree.sums[first + child];
    node = child;
  }
  int leaf = node << kFanBits;
  const int last = min(leaf + kFan, tree.leaves) - 1;
  for (; leaf < last && point >= tree.leaf[leaf]; ++leaf) point -= tree.leaf[leaf];
  return leaf;
}

// Uniform in 0..bound-1, with a bias below bound / 2^64.
SPARRING_FN inline u64 below_64(u64 bound, Rng& rng) {
  const u64 high = rng.next();
  const u64 drawn = high << 32 | rng.next();
#if defined(__CUDA_ARCH__)
  return __umul64hi(drawn, bound);
#else
  return static_cast<u64>(static_cast<unsigned __int128>(drawn) * bound >> 64);
#endif
}

// Draws a leaf by its weight; the total must not be 0.
SPARRING_FN inline int draw_leaf(const SumTree& tree, Rng& rng) {
  return find_leaf(tree, below_64(tree_total(tree), rng));
}

}  // namespace sparring
