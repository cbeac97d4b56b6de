"""Who sits at a table: line-ups of policies and bots, and how a foreign game draws one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.rules import Rules

LEARNER = 0
"""The policy id of the learner in a line-up."""
NOBODY = -1
"""The `policy` of a row whose action is ignored."""
MOST_POLICIES = int(np.iinfo(np.int16).max)

PlayerId = int | str
"""A policy by its number, or a bot by its name."""


@dataclass(frozen=True)
class Pot:
    """Players of whom a seat draws one whenever a game begins, as teams are drawn from pots.

    The pool knows who is in it (`set_pots`); as long as nobody is, the learner sits there.
    """

    name: str


@dataclass(frozen=True)
class Lineup:
    """Who sits at a table: policy ids (0 is the learner), bot names or pots, one per seat."""

    players: tuple[PlayerId | Pot, ...]
    weight: float = 1.0
    shuffle: bool = True
    """Draw the seats anew for every game, so that nobody owns a good one."""


def player_id(rules: Rules, player: PlayerId) -> int:
    """Return the number that stands for a player in `policy` arrays; bots are below NOBODY."""
    if isinstance(player, str):
        return -2 - rules.bot(player)
    if not 0 <= player <= MOST_POLICIES:
        raise ConfigError(f"policy id {player} is outside 0..{MOST_POLICIES}")
    return int(player)


def player_name(rules: Rules, player: int) -> str:
    """Return the bot's name, or "policy K"."""
    return f"policy {player}" if player >= 0 else rules.bots[-2 - player]


def numbered(rules: Rules, lineups: Sequence[Lineup], most: int) -> list[list[int]]:
    """Return the ids of all players, line-up by line-up; what cannot be seated is refused."""
    if not 1 <= len(lineups) <= most:
        raise ConfigError(f"give 1..{most} line-ups, not {len(lineups)}")
    for lineup in lineups:
        if len(lineup.players) != rules.seats:
            raise ConfigError(
                f"a line-up of {rules.name} needs {rules.seats} players, "
                f"got {len(lineup.players)}: {lineup.players}"
            )
        if not (np.isfinite(lineup.weight) and lineup.weight > 0):
            raise ConfigError(f"line-up weight {lineup.weight} must be above 0 and finite")
    return [[player_id(rules, player) for player in lineup.players] for lineup in lineups]


def check_answered(policies: Iterable[int], answered: Iterable[int]) -> None:
    """Refuse to play with a policy at the tables that nobody answers."""
    known = sorted(answered)
    unknown = sorted(set(policies).difference(known))
    if unknown:
        raise ConfigError(
            f"policy {unknown[0]} sits at tables and nobody answers it; there are {known}"
        )


class Draw:
    """Draws who sits where in games that have no native core, from (seed, game, episode)."""

    def __init__(self, rules: Rules, lineups: Sequence[Lineup], seed: int) -> None:
        self.ids = np.array(numbered(rules, lineups, MOST_POLICIES), np.int16)
        weights = np.array([lineup.weight for lineup in lineups])
        self.up_to = np.cumsum(weights / weights.sum())
        self.shuffle = [lineup.shuffle for lineup in lineups]
        self.seed = seed

    def seats(self, game: int, episode: int) -> npt.NDArray[np.int16]:
        """Return the policy id of every seat of an episode."""
        key = np.array([self.seed % 2**64, game], np.uint64)
        counter = np.array([0, episode, 0, 0], np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key, counter=counter))
        chosen = min(int(np.searchsorted(self.up_to, rng.random(), "right")), len(self.ids) - 1)
        seats = self.ids[chosen]
        return rng.permutation(seats) if self.shuffle[chosen] else seats.copy()
