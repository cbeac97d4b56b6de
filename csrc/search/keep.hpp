// The part of a tree below a position, kept when that position becomes the root. Host only.
#pragma once

#include <cstring>
#include <vector>

#include "search/tree.hpp"

namespace sparring {

// Whether trees of a game can be kept: PUCT goes on with old visits, sequential halving counts its
// own, and where chance or other players move by lot a position would not come again.
template <class G>
bool can_keep(const SearchOptions& options) {
  return !kJointActions<G> && !options.replay && options.rule == kPuct;
}

// The node of a position, with the extra state that the moves to it have left; -1 if the tree does
// not hold it. `scratch` is memory for extra state.
template <class G>
int find_position(const Tree<G>& tree, const G& game, const u8* extra, u8* scratch) {
  if (tree.head().settled != tree.head().started) return -1;
  const auto extra_size = static_cast<size_t>(extra_bytes<G>(tree.setting().config));
  Leaf<G> leaf;
  for (int at = 0; at < tree.head().nodes; ++at) {
    if (tree.node(at).edges == 0 || std::memcmp(&tree.state(at), &game, sizeof game)) continue;
    tree.load(leaf, scratch, at);
    if (extra_size == 0 || !std::memcmp(scratch, extra, extra_size)) return at;
  }
  return -1;
}

// Makes a node the root: moves all nodes below it to the front of the arrays. Returns its edges,
// whose children are nodes of the new tree.
template <class G>
std::vector<Edge> move_to_root(const Tree<G>& tree, int root) {
  TreeHead& head = tree.head();
  std::vector<int> moved(static_cast<size_t>(head.nodes), -1);
  int count = 0;
  for (int at = root; at < head.nodes; ++at) {  // parents come before their children
    const int above = at == root ? 0 : moved[static_cast<size_t>(tree.node(at).parent)];
    if (above < 0) continue;
    const int to = count++;
    moved[static_cast<size_t>(at)] = to;
    tree.node(to) = tree.node(at);
    std::memmove(tree.edges(to), tree.edges(at), sizeof(Edge) * tree.node(to).edges);
    if (to == 0) continue;
    tree.state(to) = tree.state(at);
    tree.node(to).parent = above;
    Edge& edge = tree.edges(above)[tree.node(to).parent_edge];
    edge.link = static_cast<u32>(to) << kActionBits | static_cast<u32>(edge.action());
  }
  head.nodes = count;
  return {tree.edges(0), tree.edges(0) + tree.node(0).edges};
}

// Gives the edges of a root what was known of them.
template <class G>
void take_edges(const Tree<G>& tree, const std::vector<Edge>& kept) {
  Edge* const edges = tree.edges(0);
  for (const Edge& old : kept) {
    for (int i = 0; i < tree.node(0).edges; ++i) {
      if (edges[i].action() != old.action()) continue;
      edges[i].visits = old.visits;
      edges[i].mean = old.mean;
      edges[i].link = old.link;
      if (old.child()) tree.node(old.child()).parent_edge = static_cast<u16>(i);
    }
    tree.node(0).visits += old.visits;
  }
}

}  // namespace sparring
