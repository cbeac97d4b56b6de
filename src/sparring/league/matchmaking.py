"""Opponent sampling: weights of archived policies from the learner's results against them.

All functions are deterministic.
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
"""Draws added to the results against every policy, so that no share is 0 or 1 by chance."""
HARD = 2.0
"""Exponent of `pfsp`: (1 - p) ** 2."""
NEWEST_SHARE = 0.8
"""Share of the games for the newest policy with `newest`."""
FORGOTTEN_FLOOR = 0.1
"""Share of the games spread evenly with `forgotten`: all policies have to be met at times."""
SKILL_RANGE = 200.0
"""Elo points around the learner within which all weights are equal."""
GATE_GAMES = 256
"""Games that a gate needs."""


@dataclass(frozen=True)
class WinDrawLoss:
    """Wins, draws and losses of the learner; fractions where old games decay."""

    wins: float = 0.0
    draws: float = 0.0
    losses: float = 0.0

    def __add__(self, other: WinDrawLoss) -> WinDrawLoss:
        return WinDrawLoss(
            self.wins + other.wins, self.draws + other.draws, self.losses + other.losses
        )

    def scaled(self, factor: float) -> WinDrawLoss:
        return WinDrawLoss(self.wins * factor, self.draws * factor, self.losses * factor)

    @property
    def games(self) -> float:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """A win is one point, a draw half a point."""
        return self.wins + self.draws / 2

    @property
    def share(self) -> float:
        """The learner's share of the points, with PRIOR_GAMES draws added."""
        return (self.points + PRIOR_GAMES / 2) / (self.games + PRIOR_GAMES)


@dataclass(frozen=True)
class ArchivedPolicy:
    """An archived policy and the learner's results against it."""

    number: int
    """Increases with age of the run: later policies have higher numbers."""
    hash: str
    """Of its weights; slots refer to it."""
    role: str = "main"
    results: WinDrawLoss = field(default_factory=WinDrawLoss)
    """Of the learner against it."""
    best_share: float = 0.5
    """Highest `WinDrawLoss.share` that the learner ever had against it."""
    rating: float | None = None

    @property
    def share(self) -> float:
        """The learner's share of the points against it; 0.5 before any game."""
        return self.results.share


def weights(
    sampling: str,
    policies: Sequence[ArchivedPolicy],
    *,
    learner_rating: float | None = None,
    skill_range: float = SKILL_RANGE,
) -> Weights:
    """Return the sampling weights of archived policies; their sum is 1.

    sampling: a value of LeagueConfig.sampling.
    skill_range: for `skill`, in Elo points.
    """
    if sampling not in SAMPLING:
        raise ConfigError(
            f"league.sampling {sampling!r} is unknown{suggestion(sampling, SAMPLING)}"
        )
    if not policies:
        return np.zeros(0)
    if sampling == "skill":
        return normalized(weigh_by_skill(policies, learner_rating, skill_range))
    return normalized(SAMPLING[sampling](policies))


def weigh_uniformly(policies: Sequence[ArchivedPolicy]) -> Weights:
    return np.ones(len(policies))


def weigh_newest(policies: Sequence[ArchivedPolicy]) -> Weights:
    """The newest policy in 80 % of the games, all others equally in the rest."""
    if len(policies) == 1:
        return np.ones(1)
    result = np.full(len(policies), (1 - NEWEST_SHARE) / (len(policies) - 1))
    result[np.argmax([policy.number for policy in policies])] = NEWEST_SHARE
    return result


def weigh_hard(policies: Sequence[ArchivedPolicy]) -> Weights:
    """Prioritized fictitious self-play, f(p) = (1 - p) ** 2: prefers policies that win."""
    return (1 - point_shares(policies)) ** HARD


def weigh_even(policies: Sequence[ArchivedPolicy]) -> Weights:
    """Prioritized fictitious self-play, f(p) = p (1 - p): prefers equal strength."""
    share = point_shares(policies)
    return share * (1 - share)


def weigh_forgotten(policies: Sequence[ArchivedPolicy]) -> Weights:
    """By the learner's loss of share since its best, plus a floor for all."""
    lost = np.maximum([policy.best_share - policy.share for policy in policies], 0.0)
    return (1 - FORGOTTEN_FLOOR) * normalized(lost) + FORGOTTEN_FLOOR / len(policies)


def weigh_by_skill(
    policies: Sequence[ArchivedPolicy], mine: float | None, within: float
) -> Weights:
    """Equal weights within a range of ratings; beyond it, half for every further range.

    Policies without a rating count as within.
    """
    if mine is None:
        return weigh_uniformly(policies)
    distance = np.array([0.0 if p.rating is None else abs(p.rating - mine) for p in policies])
    beyond = np.maximum(distance - within, 0.0)
    # Relative to the nearest, which may be far away.
    result: Weights = 0.5 ** ((beyond - beyond.min()) / within)
    return result


SAMPLING: dict[str, Callable[[Sequence[ArchivedPolicy]], Weights]] = {
    "uniform": weigh_uniformly,
    "newest": weigh_newest,
    "pfsp": weigh_hard,
    "pfsp-even": weigh_even,
    "forgotten": weigh_forgotten,
    "skill": weigh_uniformly,
}
"""Values of LeagueConfig.sampling; `skill` also needs the learner's rating."""


def point_shares(policies: Sequence[ArchivedPolicy]) -> Weights:
    return np.array([policy.share for policy in policies])


def normalized(weights: Weights) -> Weights:
    """Scale to the sum 1; uniform where all weights are 0."""
    largest = float(weights.max())
    if not np.isfinite(largest) or largest <= 0:
        return np.full(len(weights), 1 / len(weights))
    scaled = weights / largest  # first, as the sum of tiny numbers may underflow to 0
    return np.asarray(scaled / scaled.sum())


def estimate_rating(results: WinDrawLoss | None) -> float | None:
    """Return an opponent's Elo rating relative to the learner; None before any game."""
    if results is None or not results.games:
        return None
    share = min(max(results.share, 1e-3), 1 - 1e-3)
    return -400 * math.log10(share / (1 - share))


def decayed(results: Mapping[Key, WinDrawLoss], factor: float) -> dict[Key, WinDrawLoss]:
    """Scale down old results, since the learner has changed.

    So the share against an opponent that is no longer met goes back to 0.5.
    """
    return {key: result.scaled(factor) for key, result in results.items()}


def passes_gate(
    since_last: WinDrawLoss, gate: float, *, archived: int, games: float = GATE_GAMES
) -> bool:
    """Whether the learner is archived as a snapshot.

    since_last: results against past selves since the last snapshot.
    gate: share of the points needed; 0 always passes.
    archived: number of past selves; the first snapshot always passes.
    games: needed before any other passes.
    """
    if gate <= 0 or archived == 0:
        return True
    played = since_last.games
    return played >= games and since_last.points / played >= gate
