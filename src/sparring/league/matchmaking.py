"""Whom a learner meets: from what it has won and lost against its past to how often each is drawn.

Everything here is a plain function of numbers; the same numbers give the same answer anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, suggestion

Weights = npt.NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

PRIOR_GAMES = 4.0
"""Drawn games that everybody is taken to have played: nobody is hopeless or beaten unseen."""
HARD = 2.0
"""The exponent of `pfsp`: (1 - p) ** 2."""
NEWEST_SHARE = 0.8
"""Of the games, for the newest, where `newest` chooses."""
FORGOTTEN_FLOOR = 0.1
"""Of the games, spread evenly where `forgotten` chooses: who is never met cannot be forgotten."""
SKILL_RANGE = 200.0
"""Points of Elo around the learner within which all are met alike."""
GATE_GAMES = 256
"""Games that a gate wants to have seen."""


@dataclass(frozen=True)
class WinDrawLoss:
    """What the learner has won, drawn and lost; fractions once old games count less."""

    wins: float = 0.0
    draws: float = 0.0
    losses: float = 0.0

    def __add__(self, other: WinDrawLoss) -> WinDrawLoss:
        return WinDrawLoss(
            self.wins + other.wins, self.draws + other.draws, self.losses + other.losses
        )

    def times(self, factor: float) -> WinDrawLoss:
        return WinDrawLoss(self.wins * factor, self.draws * factor, self.losses * factor)

    @property
    def games(self) -> float:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """A win is one, a draw half of one."""
        return self.wins + self.draws / 2

    @property
    def share(self) -> float:
        """The share of the points that the learner has, with PRIOR_GAMES draws beside."""
        return (self.points + PRIOR_GAMES / 2) / (self.games + PRIOR_GAMES)


@dataclass(frozen=True)
class ArchivedPolicy:
    """What is known about an archived policy."""

    number: int
    """Later ones have higher numbers."""
    hash: str
    """Of its weights; what slots hold it by."""
    role: str = "main"
    results: WinDrawLoss = field(default_factory=WinDrawLoss)
    """Of the learner against it."""
    best_share: float = 0.5
    """The highest share that the learner ever had against it, as `WinDrawLoss.share` counts."""
    rating: float | None = None

    @property
    def share(self) -> float:
        """The learner's share of the points against it; one half before any game."""
        return self.results.share


def weights(
    choose: str,
    known: Sequence[ArchivedPolicy],
    *,
    learner_rating: float | None = None,
    skill_range: float = SKILL_RANGE,
) -> Weights:
    """Return how often each of the archived policies is to be met; the sum is 1.

    choose: a word of LeagueConfig.choose.
    skill_range: for `skill`, in the unit of the ratings.
    """
    if choose not in CHOICES:
        raise ConfigError(f"league.sampling {choose!r} is unknown{suggestion(choose, CHOICES)}")
    if not known:
        return np.zeros(0)
    if choose == "skill":
        return normalized(weigh_by_skill(known, learner_rating, skill_range))
    return normalized(CHOICES[choose](known))


def weigh_uniformly(known: Sequence[ArchivedPolicy]) -> Weights:
    return np.ones(len(known))


def weigh_newest(known: Sequence[ArchivedPolicy]) -> Weights:
    """The last one in four games of five, the others alike in the fifth."""
    if len(known) == 1:
        return np.ones(1)
    drawn = np.full(len(known), (1 - NEWEST_SHARE) / (len(known) - 1))
    drawn[np.argmax([one.number for one in known])] = NEWEST_SHARE
    return drawn


def weigh_hard(known: Sequence[ArchivedPolicy]) -> Weights:
    """Prioritized fictitious self-play, f(p) = (1 - p) ** 2: those that win against the learner."""
    return (1 - point_shares(known)) ** HARD


def weigh_even(known: Sequence[ArchivedPolicy]) -> Weights:
    """Prioritized fictitious self-play, f(p) = p (1 - p): those of about equal strength."""
    share = point_shares(known)
    return share * (1 - share)


def weigh_forgotten(known: Sequence[ArchivedPolicy]) -> Weights:
    """By how much less the learner has against them than it once had, and all a little."""
    lost = np.maximum([one.best_share - one.share for one in known], 0.0)
    return (1 - FORGOTTEN_FLOOR) * normalized(lost) + FORGOTTEN_FLOOR / len(known)


def weigh_by_skill(known: Sequence[ArchivedPolicy], mine: float | None, within: float) -> Weights:
    """All within a range of ratings alike; beyond it, half as often with every further range.

    Who has no rating yet counts as within.
    """
    if mine is None:
        return weigh_uniformly(known)
    away = np.array([0.0 if one.rating is None else abs(one.rating - mine) for one in known])
    beyond = np.maximum(away - within, 0.0)
    # If all are far away the nearest are met, however far that is.
    drawn: Weights = 0.5 ** ((beyond - beyond.min()) / within)
    return drawn


CHOICES: dict[str, Callable[[Sequence[ArchivedPolicy]], Weights]] = {
    "uniform": weigh_uniformly,
    "newest": weigh_newest,
    "pfsp": weigh_hard,
    "pfsp-even": weigh_even,
    "forgotten": weigh_forgotten,
    "skill": weigh_uniformly,
}
"""The words of LeagueConfig.choose; `skill` needs a rating besides."""


def point_shares(known: Sequence[ArchivedPolicy]) -> Weights:
    return np.array([one.share for one in known])


def normalized(drawn: Weights) -> Weights:
    """The same proportions with the sum 1; all alike where they say nothing."""
    largest = float(drawn.max())
    if not np.isfinite(largest) or largest <= 0:
        return np.full(len(drawn), 1 / len(drawn))
    scaled = drawn / largest  # the sum of tiny numbers may be 0, that of these is not
    return np.asarray(scaled / scaled.sum())


def estimate_rating(results: WinDrawLoss | None) -> float | None:
    """How much stronger than the learner somebody is, in Elo; None before any game."""
    if results is None or not results.games:
        return None
    share = min(max(results.share, 1e-3), 1 - 1e-3)
    return -400 * math.log10(share / (1 - share))


def decayed(results: Mapping[Key, WinDrawLoss], factor: float) -> dict[Key, WinDrawLoss]:
    """Let what was counted so far weigh less, as the learner is another one by now.

    With it, the share against somebody who is not met any more goes back to one half.
    """
    return {key: one.times(factor) for key, one in results.items()}


def passes_gate(
    since_last: WinDrawLoss, gate: float, *, archived: int, games: float = GATE_GAMES
) -> bool:
    """Whether the learner may be kept as a snapshot.

    since_last: against the past, since the snapshot before.
    gate: the share of the points that it needs; 0 lets everybody pass.
    archived: past selves that there are. The first one passes: nobody was there to be beaten.
    games: that have to be played before anybody passes.
    """
    if gate <= 0 or archived == 0:
        return True
    played = since_last.games
    return played >= games and since_last.points / played >= gate
