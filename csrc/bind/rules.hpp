// What several files of the bindings share.
#pragma once

#include <vector>

#include "core/registry.hpp"

namespace sparring {

// A game together with a configuration.
struct Rules {
  const AnyGame* game;
  std::vector<u8> config;
};

// The goals of a game with a configuration; `rules` must have some.
struct Goals {
  explicit Goals(const Rules& rules) : of(rules.game->goals()), config(rules.config) {}

  const AnyGoals* of;
  std::vector<u8> config;
};

}  // namespace sparring
