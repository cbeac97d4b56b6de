// What searches inside a module share: the wish of a page, the network of the same module that
// answers for rows, one after the other, and the arrays that a page reads.
#pragma once

#include <algorithm>
#include <vector>

#include "core/state.hpp"
#include "search/playout.hpp"
#include "wasm/network.hpp"

namespace sparring {

// What a page asks for, as it lies in memory; app/engine/search.js writes it.
struct SearchWish {
  u64 seed;
  i32 row, simulations, noise, considered;
  i32 rule, rescale, width, samples;  // of trees
  i32 least, horizon, belief;         // of worlds
  f32 gamma;
  f32 c_visit, c_scale, c_puct;  // of trees
  f32 eta, alpha, caution;       // of worlds
  f32 into[kMaxRoles];
};
static_assert(sizeof(SearchWish) == 112);

template <Game G>
class ModuleSearch {
 public:
  using OneNetwork = Network<kDiscrete<G>>;

  int choices() const { return static_cast<int>(policy_.size()); }

  // By choice; `value` of the search fills them.
  const f32* policy() const { return policy_.data(); }
  const i32* visits() const { return visits_.data(); }
  const f32* q() const { return q_.data(); }

 protected:
  ModuleSearch(const State<G>& state, OneNetwork& network)
      : network_(network), setting_(*static_cast<const Setting<G>*>(state.setting())) {}

  void make_room(i64 most_rows, int choices) {
    heads_.resize(at(most_rows * network_.width()));
    values_.resize(at(most_rows));
    policy_.resize(at(choices));
    visits_.resize(at(choices));
    q_.resize(at(choices));
  }

  static size_t at(i64 i) { return static_cast<size_t>(i); }

  // Fills `heads_` and `values_` for rows that follow each other.
  void answer(const u8* rows, i64 count) {
    const int width = network_.width();
    for (i64 r = 0; r < count; ++r) {
      const f32* outputs = network_.answer(rows + r * setting_.shape.obs_bytes, nullptr);
      std::copy(outputs, outputs + width, &heads_[at(r * width)]);
      values_[at(r)] = outputs[width];
    }
  }

  OneNetwork& network_;
  Setting<G> setting_;
  std::vector<f32> heads_, values_, policy_, q_;
  std::vector<i32> visits_;
};

}  // namespace sparring
