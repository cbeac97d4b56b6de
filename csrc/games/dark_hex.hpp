// Dark hex on nine cells: join two sides against stones that are not seen. See phantom/board.hpp.
#pragma once

#include "games/phantom/board.hpp"

namespace sparring::dark_hex {

struct Goal {
  struct Config {
    i32 abrupt = 1;
  };
  static constexpr const char* kName = "dark_hex";
  static constexpr const char* kTitle = "Dark hex: join your sides past stones that are not seen";
  static constexpr const char* kWonBy = "sides joined";
  static constexpr size_t kSlant = 1;

  // The first seat joins the first and the last row, the second seat the columns.
  SPARRING_FN static bool won(int seat, u16 stones) {
    u16 joined = static_cast<u16>(stones & (seat == 0 ? 0007 : 0111));
    for (int i = 0; i < phantom::kCells; ++i)
      joined = static_cast<u16>(stones & (joined | neighbors(joined)));
    return joined & (seat == 0 ? 0700 : 0444);
  }

  // A cell touches those beside it, above and below, right above and left below.
  SPARRING_FN static int neighbors(int cells) {
    constexpr int kNotLeft = 0666, kNotRight = 0333;
    const int left = cells & kNotLeft, right = cells & kNotRight;
    return left >> 1 | right << 1 | cells << 3 | cells >> 3 | right >> 2 | left << 2;
  }
};

using Game = phantom::Board<Goal>;

}  // namespace sparring::dark_hex
