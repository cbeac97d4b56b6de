// One decision searched inside a module: a tree of csrc/search, and the network of the same module
// that answers for its leaves, one after the other.
#pragma once

#include <cstring>
#include <vector>

#include "core/state.hpp"
#include "search/options.hpp"
#include "wasm/network.hpp"

namespace sparring {

// What a page asks for, as it lies in memory; app/engine/search.js writes it.
struct SearchWish {
  i32 row, simulations, rule, noise, rescale, considered, width, samples;
  f32 c_visit, c_scale, c_puct, gamma;
  u64 seed;
};
static_assert(sizeof(SearchWish) == 56);

template <Game G>
class ModuleSearch {
 public:
  using Action = typename G::Action;
  using OneNetwork = Network<kDiscrete<G>>;

  ModuleSearch(const State<G>& state, OneNetwork& network, const SearchWish& wish)
      : network_(network),
        setting_(*static_cast<const Setting<G>*>(state.setting())),
        extra_(state.extra()),
        leaf_extra_(extra_) {
    const SearchOptions options = complete_options<G>(setting_.config, options_of(network, wish));
    setting_.seed = wish.seed ^ kSearchSeed;
    std::memcpy(static_cast<void*>(&root_), state.env(), sizeof root_);
    make_tree(options);
    tree().begin(state.number(), wish.row, wish.simulations);
    rows_.resize(size(options.row_count * setting_.shape.obs_bytes));
    heads_.resize(size(options.row_count * network.width()));
    values_.resize(size(options.row_count));
    choices_ = kDiscrete<G> ? setting_.shape.actions : options.samples;
    visits_.resize(size(choices_));
    q_.resize(size(choices_));
    policy_.resize(size(choices_));
    improved_.resize(size(options.root_width));
    simulate();  // the root's own evaluation is no simulation
  }

  // Makes `count` simulations, or those that are left; returns how many are left then.
  int run(int count) {
    for (; count > 0 && !tree().finished(); --count) simulate();
    return tree().head().simulations - simulations();
  }

  int simulations() const { return max(tree().head().settled, 0); }
  int nodes() const { return tree().head().nodes; }
  int choices() const { return choices_; }

  // The number of an action, or the numbers of a box.
  const f32* action() {
    const int edge = tree().decide();
    if constexpr (kDiscrete<G>) {
      action_[0] = static_cast<f32>(tree().edges(0)[edge].action());
      return action_;
    } else {
      return tree().joint_of(0, edge)[tree().head().row].value;
    }
  }

  // Expected return of the seat to move; fills the arrays of the next three.
  f32 value() {
    const Edge* edges = tree().edges(0);
    const f64 value = tree().improved(improved_.data());
    for (int i = 0; i < tree().node(0).edges; ++i) {
      const size_t to = size(edges[i].action());
      policy_[to] = improved_[size(i)];
      visits_[to] = static_cast<i32>(edges[i].visits);
      q_[to] = edges[i].mean;
    }
    return static_cast<f32>(value);
  }
  const f32* policy() const { return policy_.data(); }
  const i32* visits() const { return visits_.data(); }
  const f32* q() const { return q_.data(); }

  // Writes at most so many actions that are expected to follow; returns how many.
  int line(i32* out, int most) const {
    const std::vector<int> actions = main_line(tree());
    const int count = min(static_cast<int>(actions.size()), most);
    std::copy(actions.begin(), actions.begin() + count, out);
    return count;
  }

 private:
  static size_t size(i64 count) { return static_cast<size_t>(count); }

  static SearchOptions options_of(const OneNetwork& network, const SearchWish& wish) {
    SearchOptions options;
    options.rule = wish.rule;
    options.nodes = wish.simulations + 1;
    options.considered = wish.considered;
    options.width = wish.width;
    options.samples = wish.samples;
    options.c_visit = wish.c_visit;
    options.c_scale = wish.c_scale;
    options.c_puct = wish.c_puct;
    options.gamma = wish.gamma;
    options.noise = wish.noise != 0;
    options.rescale = wish.rescale != 0;
    options.squash = network.squash();
    options.resample = kResamples<G>;
    return options;
  }

  void make_tree(const SearchOptions& options) {
    const i64 nodes = options.nodes, edges = options.root_width + (nodes - 1) * options.width;
    node_.resize(size(nodes));
    edge_.resize(size(edges));
    state_.resize(options.replay ? 0 : size(nodes));
    joint_.resize(kJointActions<G> ? size(edges * G::kRows) : 0);
    logit_.resize(size(options.root_width));
    gumbel_.resize(size(options.root_width));
    view_ = {.options = options,
             .setting = &setting_,
             .head = &head_,
             .root = &root_,
             .extra = extra_.data(),
             .node = node_.data(),
             .edge = edge_.data(),
             .state = state_.data(),
             .joint = joint_.data(),
             .logit = logit_.data(),
             .gumbel = gumbel_.data()};
  }

  Tree<G> tree() const { return {view_, 0}; }

  void simulate() {
    if (!tree().select_leaf(leaf_, leaf_extra_.data()) || !leaf_.evaluate) return;
    const int width = network_.width(), bytes = setting_.shape.obs_bytes;
    tree().observe(leaf_, leaf_extra_.data(), rows_.data());
    for (int r = 0; r < view_.options.row_count; ++r) {
      const f32* answer = network_.answer(&rows_[size(i64{r} * bytes)], nullptr);
      std::copy(answer, answer + width, &heads_[size(i64{r} * width)]);
      values_[size(r)] = answer[width];
    }
    tree().settle(leaf_, heads_.data(), width, values_.data());
  }

  OneNetwork& network_;
  Setting<G> setting_;
  TreeHead head_{};
  Env<G> root_;
  std::vector<u8> extra_, leaf_extra_, rows_;
  std::vector<Node<G>> node_;
  std::vector<Edge> edge_;
  std::vector<G> state_;
  std::vector<Action> joint_;
  std::vector<f32> logit_, gumbel_;
  TreesView<G> view_{};
  Leaf<G> leaf_;
  std::vector<f32> heads_, values_, q_, policy_, improved_;
  std::vector<i32> visits_;
  int choices_ = 0;
  f32 action_[1];
};

}  // namespace sparring
