"""Openings by lot: what keeps players that never draw from playing one game over and over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.players import Seated, draws
from sparring.pools.foreign.again import is_own
from sparring.pools.native import Pool

USUAL_PLIES = 6
"""Decisions by lot, where a game is long enough for so many."""
MOST_PLIES = 100
TRIED = 64
"""Openings that say how many decisions a game has to give away."""


def usual_plies(rules: Rules, players: Sequence[Seated | str], *, greedy: bool) -> int:
    """Return how many decisions are left to lots unless somebody says otherwise.

    None, if chance deals the cards or anybody draws, as bots do: then games differ anyway. Policies
    that take their most probable action do not, and of functions nobody knows. At most so many that
    even the shortest games by lot leave every seat one decision.
    """
    drawn = rules.chance or any(draws(player, greedy=greedy) for player in players)
    if drawn or rules.seats == 1:
        return 0
    shortest = int(random_lengths(rules, USUAL_PLIES + rules.seats).min())
    return max(0, min(USUAL_PLIES, shortest - rules.seats))


def check_plies(rules: Rules, plies: int, name: str = "opening_plies=") -> int:
    """Refuse openings that leave nothing to play.

    name: how the user wrote it.
    """
    if not 0 <= plies <= MOST_PLIES:
        raise ConfigError(f"{name}{plies} is outside 0..{MOST_PLIES}")
    if plies and is_own(rules):
        raise ConfigError(
            f"{name}{plies}: {rules.name} is your own environment, its seeds decide how games "
            "open; leave it out"
        )
    if plies:
        lengths = random_lengths(rules, plies)
        if (lengths <= plies).all():
            most = int(lengths.max()) - 1
            raise ConfigError(
                f"{name}{plies} leaves no decision of {rules.name} to the players; "
                f"give at most {most}"
            )
    return plies


def random_lengths(rules: Rules, most: int) -> npt.NDArray[np.intp]:
    """Return how many decisions games by lot take, `most` + 1 for all that take longer."""
    pool = Pool(rules.changed({"skip_forced": 0}), TRIED, threads=1, observe=False)
    pool.reset()
    lengths = np.full(TRIED, most + 1)
    for step in range(most):
        ended = pool.step(pool.sample_actions()).final_game
        lengths[ended] = np.minimum(lengths[ended], step + 1)
    return lengths
