// Actions that an environment rejects, reward weights, and the error of a stuck environment. Host
// only.
#pragma once

#include <string>
#include <vector>

#include "core/env.hpp"
#include "core/error.hpp"

namespace sparring {

// The first action that cannot be played, in game order.
struct RejectedAction {
  i64 game = -1;
  i64 row = -1;
  int seat = -1;
  i64 action = -1;     // discrete
  int component = -1;  // box
  f32 value = 0;
  std::vector<int> legal;
};

template <class G>
RejectedAction rejected_action(i64 game, i64 row, int seat, const Legal<G>& legal,
                               const typename G::Action& action) {
  RejectedAction rejected;
  rejected.game = game;
  rejected.row = row;
  rejected.seat = seat;
  if constexpr (kDiscrete<G>) {
    rejected.action = action;
    legal.each([&](int a) { rejected.legal.push_back(a); });
  } else {
    int i = 0;
    while (is_finite(action.value[i])) ++i;
    rejected.component = i;
    rejected.value = action.value[i];
  }
  return rejected;
}

// Sets the reward weights [parts][roles]; any other number of them is an error.
template <class G>
void set_weights(Setting<G>& setting, const std::vector<f32>& weights) {
  const Counts counts = counts_of<G>(setting.config);
  const size_t roles = static_cast<size_t>(counts.roles);
  const size_t needed = static_cast<size_t>(counts.parts) * roles;
  if (weights.size() != needed)
    raise(ConfigError(std::to_string(weights.size()) + " reward weights; there are " +
                      std::to_string(needed) + ", one for each part and role"));
  setting.active_parts = 0;
  for (size_t i = 0; i < needed; ++i) {
    setting.weight[i] = weights[i];
    if (weights[i] != 0) setting.active_parts |= 1u << (i / roles);
  }
}

// The error of an environment in which no policy decides any more.
template <class G>
ConfigError stuck_error(const typename G::Config& config, u32 game, bool skip_forced) {
  return ConfigError(G::spec(config).name + " game " + std::to_string(game) +
                     ": no policy was asked in " + std::to_string(kMaxUnasked) +
                     " decisions, all of them " +
                     (skip_forced ? "forced or made by bots; leave out skip_forced or change"
                                  : "made by bots; change") +
                     " the line-up or the flags so that a policy has a choice");
}

}  // namespace sparring
