// Laser hockey with continuous actions. The match itself is in laser_hockey/match.hpp.
#pragma once

#include "games/laser_hockey/match.hpp"

namespace sparring::laser_hockey {
using Game = Match<Continuous>;
}
