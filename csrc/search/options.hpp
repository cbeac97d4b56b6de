// What a search needs to know of a game, and how its result is read. On CPUs and in browsers.
#pragma once

#include <vector>

#include "core/describe.hpp"
#include "search/tree.hpp"

namespace sparring {

// Completes options by what the game is.
template <class G>
SearchOptions complete_options(const typename G::Config& config, SearchOptions options) {
  const Spec spec = G::spec(config);
  const int seats = G::shape(config).seats;
  options.root_width = kDiscrete<G> ? kMaxLegalOf<G> : options.samples;
  options.width = min(kDiscrete<G> ? options.width : options.samples, options.root_width);
  options.row_count = seats == 1 || (seats == 2 && spec.zero_sum && G::kRows == 1) ? 1 : seats;
  options.replay = spec.chance || options.resample || !kStoresPositions<G>;
  return options;
}

// The actions that are expected to follow: the chosen one, then the most visited
// or proven ones.
template <class G>
std::vector<int> main_line(const Tree<G>& tree) {
  std::vector<int> actions;
  for (int node = 0, edge = tree.decide(); edge >= 0; edge = tree.expected(node)) {
    const Edge& e = tree.edges(node)[edge];
    actions.push_back(e.action());
    node = e.child();
    if (node == 0) break;
  }
  return actions;
}

}  // namespace sparring
