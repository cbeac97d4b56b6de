// What keeps games from being made or played, in words for the user. Host only.
#pragma once

#include <stdexcept>

#include "core/fn.hpp"

namespace sparring {

// Python sees it as ConfigError.
class Trouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sparring
