// What a module says about itself, as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/state.hpp"

namespace sparring {

inline const char* type_name(Type type) {
  static constexpr const char* kNames[] = {"uint8",  "int8",  "uint16", "int16",
                                           "uint32", "int32", "uint64", "float32"};
  return kNames[static_cast<int>(type)];
}

template <class G>
std::string action_name_of(const typename G::Config& config, int action) {
  if constexpr (requires { G::action_name(config, action); })
    return G::action_name(config, action);
  else
    return std::to_string(action);
}

// Names are those of members in our sources: nothing in them needs to be escaped.
template <Game G>
std::string describe_module() {
  std::string fields;
  if constexpr (requires { G::state_fields(); }) {
    for (const Field& field : G::state_fields()) {
      if (!fields.empty()) fields += ",";
      fields += std::string("{\"name\":\"") + field.name + "\",\"type\":\"" +
                type_name(field.type) + "\",\"offset\":" + std::to_string(field.offset) +
                ",\"count\":" + std::to_string(field.count) + "}";
    }
  }
  int box = 0;
  if constexpr (!kDiscrete<G>) box = static_cast<int>(sizeof(typename G::Action) / sizeof(f32));
  return "{\"rows\":" + std::to_string(G::kRows) + ",\"roles\":" + std::to_string(G::kRoles) +
         ",\"box\":" + std::to_string(box) +
         ",\"config_bytes\":" + std::to_string(sizeof(typename G::Config)) + ",\"fields\":[" +
         fields + "]}";
}

}  // namespace sparring
