"""Line-ups: which policies and bots sit in which seats, and how custom games draw one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError, suggestion
from sparring.games.arguments import check_in_range, check_int, check_type
from sparring.games.rules import Rules

LEARNER = 0
"""The policy id of the learner in a line-up."""
NO_POLICY = -1
"""The `policy` of a row whose action is ignored."""
FIRST_BOT = -2
"""The player id of a game's first bot; the others count down from it."""
MAX_POLICIES = int(np.iinfo(np.int16).max)

PlayerId = int | str
"""A policy by its number, or a bot by its name."""


@dataclass(frozen=True)
class Mix:
    """A weighted set of players; a seat draws one of them whenever a game starts.

    `set_mixes` fills it; while it is empty, the learner sits there.
    """

    name: str


@dataclass(frozen=True)
class Lineup:
    """Players of a game, one per seat: policy ids (0 is the learner), bot names or mixes."""

    players: tuple[PlayerId | Mix, ...]
    weight: float = 1.0
    shuffle: bool = True
    """Shuffle the seats in every game, so that no player keeps a good one."""


def player_id(rules: Rules, player: PlayerId) -> int:
    """Return a player's number in `policy` arrays; bots are below NO_POLICY."""
    if isinstance(player, str):
        return FIRST_BOT - rules.bot(player)
    return check_in_range("policy id", player, MAX_POLICIES + 1)


def player_name(rules: Rules, player: int) -> str:
    """Return the bot's name, or "policy K"."""
    number = check_int("player", player, FIRST_BOT - len(rules.bots) + 1, MAX_POLICIES)
    if number == NO_POLICY:
        raise ConfigError(f"player={number} means no player: bots are below it, policies above")
    return f"policy {number}" if number >= 0 else rules.bots[FIRST_BOT - number]


Mixes = Mapping[str, Mapping[Any, float]]
"""Players of every mix: weights by player (`PlayerId`), by the mix's name."""


class FilledMixes:
    """Numbered mixes in the order in which line-ups name them, with their players."""

    def __init__(
        self,
        lineups: Sequence[Lineup],
        more: Sequence[str] = (),
        before: FilledMixes | None = None,
    ) -> None:
        """Collect the mixes of line-ups.

        more: names of further mixes that can be filled, although no line-up draws from them.
        before: players of mixes that stay, by name.
        """
        for lineup in lineups:
            check_type("line-ups", lineup, Lineup, "Lineup")
        seats = (player for lineup in lineups for player in lineup.players)
        drawn = dict.fromkeys(mix.name for mix in seats if isinstance(mix, Mix))
        self.drawn = len(drawn)
        """Number of mixes that line-ups draw from; they come first."""
        self.names = list(drawn | dict.fromkeys(more))
        if len(self.names) > _native.MAX_MIXES:
            raise ConfigError(
                f"line-ups draw from {len(self.names)} mixes ({', '.join(self.names)}); at most "
                f"{_native.MAX_MIXES} are supported"
            )
        filled = dict(zip(before.names, before.players, strict=True)) if before else {}
        self.players: list[dict[int, float]] = [filled.get(name, {}) for name in self.names]
        """Weights by player id, mix by mix."""

    def number(self, mix: Mix) -> int:
        """Return a mix's number in a line-up."""
        return _native.FIRST_MIX + self.names.index(mix.name)

    def fill(self, rules: Rules, mixes: Mixes) -> None:
        """Set the players of mixes; mixes that are not given keep theirs."""
        new = list(self.players)
        check_type("mixes", mixes, Mapping, "weights by mix")
        for name, weights in mixes.items():
            check_type(f"mix {name!r}", weights, Mapping, "weight by player")
            if name not in self.names:
                raise ConfigError(
                    f"no line-up draws from a mix {name!r}{suggestion(name, self.names)}"
                )
            if len(weights) > _native.MAX_MIX_PLAYERS:
                raise ConfigError(
                    f"mix {name!r} has {len(weights)} players; it holds {_native.MAX_MIX_PLAYERS}"
                )
            for player, weight in weights.items():
                if not (np.isfinite(weight) and weight > 0):
                    raise ConfigError(
                        f"mix {name!r}: weight {weight} of {player!r} must be above 0 and finite"
                    )
            ids = {player_id(rules, player): float(w) for player, w in weights.items()}
            new[self.names.index(name)] = ids
        self.players = new

    @property
    def policies(self) -> set[int]:
        """Policy ids that may be drawn; an empty mix draws the learner."""
        drawn = self.players[: self.drawn]
        found = {player for mix in drawn for player in mix if player >= 0}
        return found | ({LEARNER} if not all(drawn) else set())


def lineup_ids(
    rules: Rules, lineups: Sequence[Lineup], most: int, mixes: FilledMixes | None = None
) -> list[list[int]]:
    """Return the player ids of all line-ups; refuses line-ups that do not fit the game."""
    filled = mixes or FilledMixes(lineups)
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
        [filled.number(p) if isinstance(p, Mix) else player_id(rules, p) for p in lineup.players]
        for lineup in lineups
    ]


def check_answered(policies: Iterable[int], answered: Iterable[int]) -> None:
    """Refuse line-ups with a policy that has no network here."""
    known = sorted(answered)
    unknown = sorted(set(policies).difference(known))
    if unknown:
        raise ConfigError(
            f"policy {unknown[0]} is in the line-ups but has no player; known are {known}"
        )


class LineupDraw:
    """Draws line-ups of games without a native core from (seed, game, episode)."""

    def __init__(
        self,
        rules: Rules,
        lineups: Sequence[Lineup],
        seed: int,
        mixes: FilledMixes | None = None,
    ) -> None:
        self.mixes = mixes or FilledMixes(lineups)
        self.ids = np.array(lineup_ids(rules, lineups, MAX_POLICIES, self.mixes), np.int16)
        weights = np.array([lineup.weight for lineup in lineups])
        self.up_to = np.cumsum(weights / weights.sum())
        self.shuffle = [lineup.shuffle for lineup in lineups]
        self.seed = seed
        alike = len(np.unique(self.ids)) == 1 or not any(self.shuffle)
        self._certain = len(lineups) == 1 and alike and bool((self.ids >= 0).all())

    def seats(self, game: int, episode: int) -> npt.NDArray[np.int16]:
        """Return the policy id of every seat of an episode."""
        if self._certain:  # as in most runs; a generator costs more than a step of a fast game
            seats: npt.NDArray[np.int16] = self.ids[0]
            return seats
        key = np.array([self.seed % 2**64, game], np.uint64)
        counter = np.array([0, episode, 0, 0], np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key, counter=counter))
        chosen = min(int(np.searchsorted(self.up_to, rng.random(), "right")), len(self.ids) - 1)
        seats = self.ids[chosen].copy()
        for seat in np.flatnonzero(seats < _native.FIRST_MIX + _native.MAX_MIXES):
            inside = self.mixes.players[seats[seat] - _native.FIRST_MIX]
            shares = np.array(list(inside.values())) if inside else np.ones(1)
            players = list(inside) or [LEARNER]
            seats[seat] = players[rng.choice(len(players), p=shares / shares.sum())]
        return rng.permutation(seats) if self.shuffle[chosen] else seats

    @property
    def policies(self) -> frozenset[int]:
        """Policy ids that may be seated."""
        return frozenset({int(p) for p in self.ids.flat if p >= 0} | self.mixes.policies)
