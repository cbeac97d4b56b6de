// Many trees searched together on CPU threads: leaves are selected, a network evaluates them in one
// batch, and their values are backed up. Host only.
#pragma once

#include <vector>

#include "search/batch.hpp"
#include "search/keep.hpp"
#include "search/options.hpp"

namespace sparring {

// Bytes of one tree.
template <class G>
i64 tree_bytes(const typename G::Config& config, const SearchOptions& options) {
  const i64 edges = options.root_width + i64{options.nodes - 1} * options.width;
  i64 bytes = i64{sizeof(TreeHead)} + i64{sizeof(Env<G>)} + extra_bytes<G>(config) +
              options.nodes * i64{sizeof(Node<G>)} + edges * i64{sizeof(Edge)} +
              options.root_width * i64{8};
  if (!options.replay) bytes += options.nodes * i64{sizeof(G)};
  if constexpr (kJointActions<G>) bytes += edges * G::kRows * i64{sizeof(typename G::Action)};
  return bytes;
}

template <Game G>
class Search final : public ThreadedSearch {
 public:
  using Config = typename G::Config;
  using Action = typename G::Action;

  Search(const Config& config, SearchOptions options, i64 trees, u64 seed, int threads)
      : ThreadedSearch(trees, threads), seed_(seed ^ kSearchSeed) {
    options = complete_options<G>(config, options);
    const Shape shape = G::shape(config);
    row_bytes = shape.obs_bytes;
    head_width = kDiscrete<G> ? shape.actions : 2 * box_size();
    choices = kDiscrete<G> ? shape.actions : options.samples;
    slots_ = options.rule == kGumbel ? clamp(kBatch / trees, 1, options.considered) : 1;
    max_rows = trees * slots_ * options.row_count;
    obs = Array<u8>(max_rows * row_bytes);

    const i64 nodes = trees * options.nodes;
    const i64 edges = trees * (options.root_width + i64{options.nodes - 1} * options.width);
    const i64 root_edges = trees * options.root_width;
    extra_bytes_ = extra_bytes<G>(config);
    head_ = Array<TreeHead>(trees);
    root_ = Array<Env<G>>(trees);
    extra_ = Array<u8>(trees * extra_bytes_);
    node_ = Array<Node<G>>(nodes);
    edge_ = Array<Edge>(edges);
    state_ = Array<G>(options.replay ? 0 : nodes);
    joint_ = Array<Action>(kJointActions<G> ? edges * G::kRows : 0);
    logit_ = Array<f32>(root_edges);
    gumbel_ = Array<f32>(root_edges);
    leaf_ = Array<Leaf<G>>(trees * slots_);
    leaf_extra_ = Array<u8>(trees * slots_ * extra_bytes_);
    view_ = {.options = options,
             .setting = &setting_,
             .head = head_.data(),
             .root = root_.data(),
             .extra = extra_.data(),
             .node = node_.data(),
             .edge = edge_.data(),
             .state = state_.data(),
             .joint = joint_.data(),
             .logit = logit_.data(),
             .gumbel = gumbel_.data()};
  }

  void begin(const std::vector<SearchRoot>& given, bool keep) override {
    kept_.clear();
    if (keep && roots == 1 && can_keep<G>(view_.options)) keep_below(given[0]);
    const int kept_nodes = kept_.empty() ? 1 : head_[0].nodes;
    roots = static_cast<i64>(given.size());
    for (i64 t = 0; t < roots; ++t) {
      const SearchRoot& from = given[size_t(t)];
      if (t == 0) {
        setting_ = *static_cast<const Setting<G>*>(from.setting);
        setting_.seed = seed_;
        setting_.starts.count = 0;
      }
      std::memcpy(static_cast<void*>(&root_[t]), from.env, sizeof(Env<G>));
      std::memcpy(extra_.data() + t * extra_bytes_, from.extra, static_cast<size_t>(extra_bytes_));
      tree(t).begin(from.game, from.row, from.simulations);
    }
    if (kept_.empty()) return;
    int visits = 0;
    for (const Edge& edge : kept_) visits += static_cast<int>(edge.visits);
    head_[0].nodes = kept_nodes;
    head_[0].simulations =
        max(min(given[0].simulations - visits, view_.options.nodes - kept_nodes), 0);
  }

  void results(f32* policy, i32* visits, f32* q, f32* value, i32* chosen,
               f32* numbers) const override {
    if constexpr (requires { G::check_failure(setting_.config); })
      G::check_failure(setting_.config);
    std::vector<f32> improved(static_cast<size_t>(view_.options.root_width));
    for (i64 t = 0; t < roots; ++t) {
      const Tree<G> at = tree(t);
      const Edge* e = at.edges(0);
      value[t] = static_cast<f32>(at.improved(improved.data()));
      const int best = at.decide();
      chosen[t] = e[best].action();
      for (int i = 0; i < at.node(0).edges; ++i) {
        const i64 to = t * choices + e[i].action();
        policy[to] = improved[size_t(i)];
        visits[to] = static_cast<i32>(e[i].visits);
        q[to] = e[i].mean;
        if constexpr (!kDiscrete<G>)
          std::memcpy(numbers + to * box_size(), &at.joint_of(0, i)[at.head().row], sizeof(Action));
      }
    }
  }

  std::vector<int> line(i64 t) const override { return main_line(tree(t)); }

  std::vector<EdgeReport> edges(i64 t, int node) const override {
    const Tree<G> at = tree(t);
    std::vector<EdgeReport> found;
    for (int i = 0; i < at.node(node).edges; ++i) {
      const Edge& e = at.edges(node)[i];
      found.push_back({e.action(), e.prior, e.visits, e.mean, e.child()});
    }
    return found;
  }

  int nodes(i64 t) const override { return head_[t].nodes; }
  int settled(i64 t) const override { return max(head_[t].settled, 0); }

 private:
  static constexpr i64 kBatch = 4096;  // leaves that are evaluated together, as far as trees allow

  static constexpr int box_size() {
    return kDiscrete<G> ? 0 : static_cast<int>(sizeof(Action) / sizeof(f32));
  }
  static int clamp(i64 x, i64 low, i64 high) { return static_cast<int>(max(low, min(x, high))); }

  Tree<G> tree(i64 t) const { return {view_, t}; }
  Leaf<G>& leaf(i64 t, int slot) const { return leaf_[t * slots_ + slot]; }
  u8* leaf_extra(i64 t, int slot) const {
    return leaf_extra_.data() + (t * slots_ + slot) * extra_bytes_;
  }
  // Keeps the part of the first tree below a position that it holds.
  void keep_below(const SearchRoot& from) {
    G game;
    std::memcpy(static_cast<void*>(&game), from.env, sizeof game);  // an Env begins with its game
    const int at = find_position(tree(0), game, from.extra, leaf_extra(0, 0));
    if (at >= 0) kept_ = move_to_root(tree(0), at);
  }

  i64 select_in(i64 t) override {
    int slot = 0;
    while (slot < slots_ && tree(t).select_leaf(leaf(t, slot), leaf_extra(t, slot)))
      slot += leaf(t, slot).evaluate;
    return i64{slot} * view_.options.row_count;
  }

  void observe_in(i64 t, i64 rows, u8* to) override {
    const i64 each = i64{view_.options.row_count} * row_bytes;
    for (int slot = 0; slot < rows / view_.options.row_count; ++slot)
      tree(t).observe(leaf(t, slot), leaf_extra(t, slot), to + slot * each);
  }

  void settle_in(i64 t, i64 rows, const f32* policy, const f32* value) override {
    const int each = view_.options.row_count;
    for (int slot = 0; slot < rows / each; ++slot)
      tree(t).settle(leaf(t, slot), policy + i64{slot} * each * head_width, head_width,
                     value + i64{slot} * each);
    if (!kept_.empty() && leaf(t, 0).simulation == 0) take_edges(tree(t), kept_);
  }

  u64 seed_;
  Setting<G> setting_{};
  TreesView<G> view_{};
  int slots_ = 1, extra_bytes_ = 0;
  Array<TreeHead> head_;
  Array<Env<G>> root_;
  Array<u8> extra_, leaf_extra_;
  Array<Node<G>> node_;
  Array<Edge> edge_;
  Array<G> state_;
  Array<Action> joint_;
  Array<f32> logit_, gumbel_;
  Array<Leaf<G>> leaf_;
  std::vector<Edge> kept_;  // of the root, by the last search
};

}  // namespace sparring
