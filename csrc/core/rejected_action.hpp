// What a table refuses, and what is said of one that nobody can play on. Host only.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/table.hpp"

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
  RejectedAction refused;
  refused.game = game;
  refused.row = row;
  refused.seat = seat;
  if constexpr (kDiscrete<G>) {
    refused.action = action;
    legal.each([&](int a) { refused.legal.push_back(a); });
  } else {
    int i = 0;
    while (is_finite(action.value[i])) ++i;
    refused.component = i;
    refused.value = action.value[i];
  }
  return refused;
}

// Takes the weights of rewards, one for each part and role; refuses any other number of them.
template <class G>
void set_weights(Setting<G>& setting, const std::vector<f32>& weights) {
  constexpr size_t needed = size_t{kPartCount<G>} * G::kRoles;
  if (weights.size() != needed)
    raise(ConfigError(std::to_string(weights.size()) + " weights of rewards; there are " +
                      std::to_string(needed) + ", one for each part and role"));
  setting.wanted = 0;
  for (size_t i = 0; i < needed; ++i) {
    setting.weight[i] = weights[i];
    if (weights[i] != 0) setting.wanted |= 1u << (i / G::kRoles);
  }
}

// What to say of a table that was given up.
template <class G>
ConfigError stuck_error(const typename G::Config& config, u32 game, bool skip_forced) {
  return ConfigError(G::spec(config).name + " game " + std::to_string(game) +
                     ": no policy was asked in " + std::to_string(kMaxUnasked) +
                     " decisions, all of them " +
                     (skip_forced ? "forced or made by bots; leave out skip_forced or change"
                                  : "made by bots; change") +
                     " the line-up or the flags so that somebody has a choice");
}

}  // namespace sparring
