// One decision searched inside a module by a tree of csrc/search.
#pragma once

#include <cstring>
#include <vector>

#include "search/options.hpp"
#include "wasm/search.hpp"

namespace sparring {

template <Game G>
class ModuleTree final : public ModuleSearch<G> {
  using Base = ModuleSearch<G>;
  using Base::answer, Base::at, Base::heads_, Base::network_, Base::policy_, Base::q_,
      Base::setting_, Base::values_, Base::visits_;

 public:
  using Action = typename G::Action;
  using OneNetwork = typename Base::OneNetwork;

  ModuleTree(const State<G>& state, OneNetwork& network, const SearchWish& wish)
      : Base(state, network), extra_(state.extra()), leaf_extra_(extra_) {
    const SearchOptions options = complete_options<G>(setting_.config, options_of(network, wish));
    setting_.seed = wish.seed ^ kSearchSeed;
    std::memcpy(static_cast<void*>(&root_), state.env(), sizeof root_);
    make_tree(options);
    tree().begin(state.number(), wish.row, wish.simulations);
    rows_.resize(at(i64{options.row_count} * setting_.shape.obs_bytes));
    improved_.resize(at(options.root_width));
    this->make_room(options.row_count, kDiscrete<G> ? setting_.shape.actions : options.samples);
    simulate();  // the root's own evaluation is no simulation
  }

  // Makes `count` simulations, or those that are left; returns how many are left then.
  int run(int count) {
    for (; count > 0 && !tree().finished(); --count) simulate();
    return tree().head().simulations - simulations();
  }

  int simulations() const { return max(tree().head().settled, 0); }
  int nodes() const { return tree().head().nodes; }

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

  // Expected return of the seat to move; fills the arrays.
  f32 value() {
    const Edge* edges = tree().edges(0);
    const f64 value = tree().improved(improved_.data());
    for (int i = 0; i < tree().node(0).edges; ++i) {
      const size_t to = at(edges[i].action());
      policy_[to] = improved_[at(i)];
      visits_[to] = static_cast<i32>(edges[i].visits);
      q_[to] = edges[i].mean;
    }
    return static_cast<f32>(value);
  }

  // Writes at most so many actions that are expected to follow; returns how many.
  int line(i32* out, int most) const {
    const std::vector<int> actions = main_line(tree());
    const int count = min(static_cast<int>(actions.size()), most);
    std::copy(actions.begin(), actions.begin() + count, out);
    return count;
  }

 private:
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
    node_.resize(at(nodes));
    edge_.resize(at(edges));
    state_.resize(options.replay ? 0 : at(nodes));
    joint_.resize(kJointActions<G> ? at(edges * G::kRows) : 0);
    logit_.resize(at(options.root_width));
    gumbel_.resize(at(options.root_width));
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
    tree().observe(leaf_, leaf_extra_.data(), rows_.data());
    answer(rows_.data(), view_.options.row_count);
    tree().settle(leaf_, heads_.data(), network_.width(), values_.data());
  }

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
  std::vector<f32> improved_;
  f32 action_[1];
};

}  // namespace sparring
