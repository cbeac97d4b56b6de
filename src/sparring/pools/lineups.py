"""Who sits at a table: line-ups of policies and bots, and how a foreign game draws one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError, nearest
from sparring.games.given import inside, of_kind, whole
from sparring.games.rules import Rules

LEARNER = 0
"""The policy id of the learner in a line-up."""
NOBODY = -1
"""The `policy` of a row whose action is ignored."""
FIRST_BOT = -2
"""The player id of a game's first bot; the others count down from it."""
MAX_POLICIES = int(np.iinfo(np.int16).max)

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
        return FIRST_BOT - rules.bot(player)
    return inside("policy id", player, MAX_POLICIES + 1)


def player_name(rules: Rules, player: int) -> str:
    """Return the bot's name, or "policy K"."""
    number = whole("player", player, FIRST_BOT - len(rules.bots) + 1, MAX_POLICIES)
    if number == NOBODY:
        raise ConfigError(f"player={number} is nobody: bots are below it, policies above")
    return f"policy {number}" if number >= 0 else rules.bots[FIRST_BOT - number]


Pots = Mapping[str, Mapping[Any, float]]
"""Who is in every pot, by its name: weights by player (`PlayerId`)."""


class FilledPots:
    """Pots with numbers of their own, in the order in which line-ups name them, and who is in."""

    def __init__(
        self,
        lineups: Sequence[Lineup],
        more: Sequence[str] = (),
        before: FilledPots | None = None,
    ) -> None:
        """Make the pots that line-ups draw from.

        more: others, which may be filled although nobody draws from them now.
        before: whose contents stay, by name.
        """
        for lineup in lineups:
            of_kind("line-ups", lineup, Lineup, "Lineup")
        seats = (player for lineup in lineups for player in lineup.players)
        drawn = dict.fromkeys(pot.name for pot in seats if isinstance(pot, Pot))
        self.drawn = len(drawn)
        """How many of them line-ups draw from, the first ones."""
        self.names = list(drawn | dict.fromkeys(more))
        if len(self.names) > _native.MAX_POTS:
            raise ConfigError(
                f"line-ups draw from {len(self.names)} pots ({', '.join(self.names)}); at most "
                f"{_native.MAX_POTS} can be told apart"
            )
        kept = dict(zip(before.names, before.players, strict=True)) if before else {}
        self.players: list[dict[int, float]] = [kept.get(name, {}) for name in self.names]
        """Weights by player id, pot by pot."""

    def number(self, pot: Pot) -> int:
        """Return what stands for a pot in a line-up."""
        return _native.FIRST_POT + self.names.index(pot.name)

    def fill(self, rules: Rules, pots: Pots) -> None:
        """Put players into pots; those that are not named stay as they are."""
        new = list(self.players)
        of_kind("pots", pots, Mapping, "weights by pot")
        for name, weights in pots.items():
            of_kind(f"pot {name!r}", weights, Mapping, "weight by player")
            if name not in self.names:
                raise ConfigError(
                    f"no line-up draws from a pot {name!r}{nearest(name, self.names)}"
                )
            if len(weights) > _native.MAX_POT_PLAYERS:
                raise ConfigError(
                    f"pot {name!r} has {len(weights)} players; it holds {_native.MAX_POT_PLAYERS}"
                )
            for player, weight in weights.items():
                if not (np.isfinite(weight) and weight > 0):
                    raise ConfigError(
                        f"pot {name!r}: weight {weight} of {player!r} must be above 0 and finite"
                    )
            ids = {player_id(rules, player): float(w) for player, w in weights.items()}
            new[self.names.index(name)] = ids
        self.players = new

    @property
    def policies(self) -> set[int]:
        """The ids of policies that may be drawn; the learner's from an empty pot."""
        drawn = self.players[: self.drawn]
        found = {player for pot in drawn for player in pot if player >= 0}
        return found | ({LEARNER} if not all(drawn) else set())


def numbered(
    rules: Rules, lineups: Sequence[Lineup], most: int, pots: FilledPots | None = None
) -> list[list[int]]:
    """Return the ids of all players, line-up by line-up; what cannot be seated is refused."""
    filled = pots or FilledPots(lineups)
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
    return [
        [filled.number(p) if isinstance(p, Pot) else player_id(rules, p) for p in lineup.players]
        for lineup in lineups
    ]


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

    def __init__(
        self,
        rules: Rules,
        lineups: Sequence[Lineup],
        seed: int,
        pots: FilledPots | None = None,
    ) -> None:
        self.pots = pots or FilledPots(lineups)
        self.ids = np.array(numbered(rules, lineups, MAX_POLICIES, self.pots), np.int16)
        weights = np.array([lineup.weight for lineup in lineups])
        self.up_to = np.cumsum(weights / weights.sum())
        self.shuffle = [lineup.shuffle for lineup in lineups]
        self.seed = seed
        alike = len(np.unique(self.ids)) == 1 or not any(self.shuffle)
        self._certain = len(lineups) == 1 and alike and bool((self.ids >= 0).all())

    def seats(self, game: int, episode: int) -> npt.NDArray[np.int16]:
        """Return the policy id of every seat of an episode."""
        if self._certain:  # as in most runs; a generator costs more than a quick game's step
            seats: npt.NDArray[np.int16] = self.ids[0]
            return seats
        key = np.array([self.seed % 2**64, game], np.uint64)
        counter = np.array([0, episode, 0, 0], np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key, counter=counter))
        chosen = min(int(np.searchsorted(self.up_to, rng.random(), "right")), len(self.ids) - 1)
        seats = self.ids[chosen].copy()
        for seat in np.flatnonzero(seats < _native.FIRST_POT + _native.MAX_POTS):
            inside = self.pots.players[seats[seat] - _native.FIRST_POT]
            shares = np.array(list(inside.values())) if inside else np.ones(1)
            players = list(inside) or [LEARNER]
            seats[seat] = players[rng.choice(len(players), p=shares / shares.sum())]
        return rng.permutation(seats) if self.shuffle[chosen] else seats

    @property
    def policies(self) -> frozenset[int]:
        """The ids that sit at tables."""
        return frozenset({int(p) for p in self.ids.flat if p >= 0} | self.pots.policies)
