"""Openings by lot: what keeps players that never draw from playing one game over and over."""

from __future__ import annotations

from collections.abc import Sequence

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.players import Seated, draws
from sparring.pools import limits
from sparring.pools.foreign.again import is_own

USUAL_PLIES = 6
"""Decisions by lot, where a game is long enough for so many."""


def usual_plies(rules: Rules, players: Sequence[Seated | str], *, greedy: bool) -> int:
    """Return how many decisions are left to lots unless somebody says otherwise.

    None, if chance deals the cards or anybody draws, as bots do: then games differ anyway. Policies
    that take their most probable action do not, and of functions nobody knows. At most so many that
    even the shortest games by lot leave every seat one decision.
    """
    drawn = rules.chance or any(draws(player, greedy=greedy) for player in players)
    if drawn or rules.seats == 1:
        return 0
    shortest = int(limits.lengths_by_lot(rules, USUAL_PLIES + rules.seats).min())
    return max(0, min(USUAL_PLIES, shortest - rules.seats))


def check_plies(rules: Rules, plies: int, name: str = "opening_plies=") -> int:
    """Refuse openings that leave nothing to play, and those of an environment of one's own.

    name: how the user wrote it.
    """
    if plies and is_own(rules):
        raise ConfigError(
            f"{name}{plies}: {rules.name} is your own environment, its seeds decide how games "
            "open; leave it out"
        )
    return limits.check_plies(rules, plies, name)
