// One decision searched inside a module over worlds: the playouts of csrc/search, in games whose
// seats hide something from each other.
#pragma once

#include <vector>

#include "search/worlds.hpp"
#include "wasm/search.hpp"

namespace sparring {

// Games whose module plays worlds; the others grow trees.
template <class G>
inline constexpr bool kPlaysWorlds = kHasWorlds<G> && (G::kMaxSeats > 1);

template <Game G>
class ModuleWorlds final : public ModuleSearch<G> {
  using Base = ModuleSearch<G>;
  using Base::answer, Base::at, Base::heads_, Base::network_, Base::policy_, Base::q_,
      Base::setting_, Base::values_, Base::visits_;

 public:
  using OneNetwork = typename Base::OneNetwork;

  ModuleWorlds(const State<G>& state, OneNetwork& network, const SearchWish& wish)
      : Base(state, network), search_(setting_.config, options_of(wish), 1, wish.seed, 1) {
    const std::vector<u8> extra = state.extra();
    this->make_room(G::kRows, setting_.shape.actions);
    search_.begin({{.setting = &setting_,
                    .env = state.env(),
                    .extra = extra.data(),
                    .game = state.number(),
                    .row = wish.row,
                    .simulations = wish.simulations}},
                  false);
    const i64 rows = search_.select();  // that of the decision
    if (wish.belief && believes()) search_.believe(network_.belief(search_.obs.data()));
    settle(rows);
  }

  // Makes `count` playouts, or those that are left; returns how many are left then.
  int run(int count) {
    const int stop = max(search_.left(0) - count, 0);
    while (search_.left(0) > stop) evaluate();
    return search_.left(0);
  }

  int simulations() const { return search_.settled(0); }
  int nodes() const { return search_.nodes(0); }

  const f32* action() {
    value();
    return &action_;
  }

  // Expected return of the improved policy; fills the arrays.
  f32 value() {
    f32 value = 0;
    i32 chosen = 0;
    search_.results(policy_.data(), visits_.data(), q_.data(), &value, &chosen, nullptr);
    action_ = static_cast<f32>(chosen);
    return value;
  }

  // The most probable action alone: no world is the one that is played.
  int line(i32* out, int most) const {
    if (most > 0) out[0] = search_.line(0)[0];
    return min(most, 1);
  }

 private:
  static WorldsOptions options_of(const SearchWish& wish) {
    WorldsOptions options;
    options.playouts = wish.simulations;
    options.considered = wish.considered;
    options.least = wish.least;
    options.horizon = wish.horizon;
    options.eta = wish.eta;
    options.alpha = wish.alpha;
    options.caution = wish.caution;
    options.gamma = wish.gamma;
    std::copy_n(wish.into, kMaxRoles, options.into);
    options.noise = wish.noise != 0;
    return options;
  }

  // Whether the network tells what is hidden in the way in which the game draws it.
  bool believes() const {
    const int numbers = belief_size<G>(setting_.config);
    return numbers > 0 && network_.believed() == numbers;
  }

  // Plays on to the next decision that needs the network.
  void evaluate() { settle(search_.select()); }

  void settle(i64 rows) {
    answer(search_.obs.data(), rows);
    search_.expand(heads_.data(), values_.data());
  }

  WorldsSearch<G> search_;
  f32 action_ = 0;
};

}  // namespace sparring
