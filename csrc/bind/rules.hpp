// What several files of the bindings share.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "core/registry.hpp"

namespace sparring {

// A game together with a configuration.
struct Rules {
  const AnyGame* game;
  std::vector<u8> config;

  Shape shape() const { return game->shape(config.data()); }
  // How many weights rewards have: one for every part and role.
  size_t weights() const { return game->default_weights(config.data()).size(); }
};

// Numbers of a belief about what is hidden; 0: the game takes none.
inline int belief_size(const Rules& rules) { return rules.game->belief_size(rules.config.data()); }

// The goals of a game with a configuration; `rules` must have some.
struct Goals {
  explicit Goals(const Rules& rules)
      : of(rules.game->goals()),
        config(rules.config),
        shape(rules.shape()),
        weights(rules.weights()),
        roles(rules.game->roles()) {}

  const AnyGoals* of;
  std::vector<u8> config;
  Shape shape;
  size_t weights;
  int roles;
};

inline const char* type_name(Type type) {
  switch (type) {
    case Type::kU8:
      return "uint8";
    case Type::kI8:
      return "int8";
    case Type::kU16:
      return "uint16";
    case Type::kI16:
      return "int16";
    case Type::kU32:
      return "uint32";
    case Type::kI32:
      return "int32";
    case Type::kU64:
      return "uint64";
    case Type::kI64:
      return "int64";
    case Type::kF64:
      return "float64";
    default:
      return "float32";
  }
}

// The same game, and nothing differs but what may change while it runs.
inline void check_same(const Call& call, const Rules& rules, const Rules& other) {
  call.demand(rules.game == other.game, "these are the rules of another game");
  for (const Field& field : rules.game->config_fields()) {
    const size_t at = static_cast<size_t>(field.offset);
    const size_t bytes = static_cast<size_t>(size_of(field.type) * field.count);
    if (!field.live && std::memcmp(&rules.config[at], &other.config[at], bytes) != 0)
      call.refuse(std::string(field.name) + " is another, and cannot change in a running game");
  }
}

inline void check_weights(const Call& call, const std::vector<f32>& weights, size_t needed) {
  if (weights.size() != needed)
    call.refuse("rewards have " + std::to_string(needed) +
                " weights, one for every part and role, " + "not " +
                std::to_string(weights.size()));
}

}  // namespace sparring
