// Phantom tic-tac-toe: three in a row against stones that are not seen. See phantom/board.hpp.
#pragma once

#include "games/phantom/board.hpp"

namespace sparring::phantom_tic_tac_toe {

inline constexpr u16 kLines[8] = {0007, 0070, 0700, 0111, 0222, 0444, 0124, 0421};

struct Goal {
  struct Config {
    i32 abrupt = 0;
  };
  static constexpr const char* kName = "phantom_tic_tac_toe";
  static constexpr const char* kTitle = "Phantom tic-tac-toe: the other's stones are not seen";
  static constexpr const char* kWonBy = "three in a row";
  static constexpr size_t kSlant = 0;

  SPARRING_FN static bool won(int, u16 stones) {
    for (const u16 line : kLines)
      if ((stones & line) == line) return true;
    return false;
  }
};

using Game = phantom::Board<Goal>;

}  // namespace sparring::phantom_tic_tac_toe
