// Laser hockey with discrete actions. The match itself is in laser_hockey/match.hpp.
#pragma once

#include "games/laser_hockey/match.hpp"

namespace sparring::laser_hockey_discrete {
using Game = laser_hockey::Match<laser_hockey::Discrete>;
}
