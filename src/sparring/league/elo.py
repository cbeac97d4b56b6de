"""Elo from matches of two: ratings by maximum likelihood, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

Floats = npt.NDArray[np.float64]
ELO = 400 / np.log(10)
"""Points per unit of log odds."""
PRIOR = 1.0
"""Every player also drew so many games, spread over those it met: 100 % stay finite."""
SAMPLES, LEAST_SHARE = 1000, 1e-6
"""Of the bootstrap: how many, and the least share of the points; it is 2,400 Elo away."""


@dataclass(frozen=True)
class Score:
    """How the games of two players ended, seen by the first."""

    one: str
    two: str
    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """All of them."""
        return self.wins + self.draws + self.losses

    @property
    def share(self) -> float:
        """Of the points, a draw being half of one."""
        return (self.wins + self.draws / 2) / self.games

    def points_of(self, name: str) -> float:
        """What one of the two got."""
        return self.games * (self.share if name == self.one else 1 - self.share)


@dataclass(frozen=True)
class Rating:
    """A player's Elo with its 95 % interval, and what it comes from."""

    player: str
    elo: float
    low: float
    high: float
    games: int
    score: float | None
    """Share of the points; None without games."""
    group: int = 0
    """Only players of one group can be compared: no games connect it with the others."""


def fit(games: Floats, points: Floats) -> Floats:
    """Return the most likely ratings in Elo, the first one 0.

    games, points: [players, players], how many were played and what the row's player got of them.
    Bradley and Terry's model, a draw being half a point for both.
    """
    rating = np.zeros(len(games))
    for _ in range(200):
        expected = 1 / (1 + np.exp(rating[None] - rating[:, None]))
        slope = (points - games * expected).sum(1)
        bend = games * expected * (1 - expected)
        curve = np.diag(bend.sum(1)) - bend
        step = np.linalg.solve(curve[1:, 1:], slope[1:]).clip(-2, 2)
        rating[1:] += step
        if np.abs(step).max() < 1e-9:
            break
    ratings: Floats = ELO * rating
    return ratings


class Results:
    """Scores of pairs that are all different as matrices, the prior among the games."""

    def __init__(self, names: Sequence[str], scores: Sequence[Score]) -> None:
        self.one = [names.index(score.one) for score in scores]
        self.two = [names.index(score.two) for score in scores]
        met = np.bincount(self.one + self.two, minlength=len(names))
        prior = PRIOR * (1 / met[self.one] + 1 / met[self.two]) / 2
        wins, draws, losses = np.array([(p.wins, p.draws, p.losses) for p in scores]).T
        self.counts = np.stack([wins + prior / 2, draws, losses + prior / 2], axis=1)
        """Of every match [matches, won drawn lost]."""
        self.players = len(names)

    def rate(self, shares: Floats) -> Floats:
        """Return the ratings that follow from the first players' shares of the points [matches]."""
        games, points = np.zeros((2, self.players, self.players))
        total = self.counts.sum(1)
        games[self.one, self.two] = games[self.two, self.one] = total
        points[self.one, self.two] = total * shares
        points[self.two, self.one] = total * (1 - shares)
        return fit(games, points)

    def likeliest(self) -> Floats:
        """Return the ratings."""
        return self.rate(share_of(self.counts))

    def drawn_again(self, draw: np.random.Generator) -> Floats:
        """Return ratings with lots for the weight of every game, as Rubin's bootstrap has it.

        Drawing whole games again would call a match that was won 40 to 0 certain.
        """
        return self.rate(share_of(draw.gamma(self.counts)).clip(LEAST_SHARE, 1 - LEAST_SHARE))


def share_of(counts: Floats) -> Floats:
    """Return the first player's share of the points."""
    shares: Floats = (counts[:, 0] + counts[:, 1] / 2) / counts.sum(1)
    return shares


def added_up(scores: Sequence[Score]) -> list[Score]:
    """Return one score per pair, whoever was named first and however often they met."""
    counts: dict[tuple[str, str], Floats] = {}
    for score in scores:
        if score.one == score.two:
            raise ConfigError(f"{score.one} met itself, which says nothing; leave the match out")
        found = np.array([score.wins, score.draws, score.losses])
        if (score.two, score.one) in counts:
            counts[score.two, score.one] += found[::-1]
        else:
            counts[score.one, score.two] = counts.get((score.one, score.two), 0) + found
    return [Score(*pair, *map(int, found)) for pair, found in counts.items() if found.sum()]


def groups_of(names: Sequence[str], scores: Sequence[Score]) -> list[list[str]]:
    """Return who can be compared with whom: players that games connect, if only through others.

    Groups come in the order of their first names, and so do the players within.
    """
    group = {name: {name} for name in names}
    for score in scores:
        if score.games:
            joined = group[score.one] | group[score.two]
            group |= dict.fromkeys(joined, joined)
    found: list[list[str]] = []
    for name in names:
        if not any(name in known for known in found):
            found.append([other for other in names if other in group[name]])
    return found


def rate(names: Sequence[str], scores: Sequence[Score], seed: int) -> list[Rating]:
    """Return everybody's Elo, group by group, the best first; the first of a group has 0.

    Ratings of two groups have nothing to do with each other.
    """
    pairs = added_up(scores)
    ratings = []
    for number, group in enumerate(groups_of(names, pairs)):
        mine = [pair for pair in pairs if pair.one in group]
        rated = rate_group(group, mine, number, seed)
        ratings += sorted(rated, key=lambda rating: -rating.elo)
    return ratings


def rate_group(
    names: Sequence[str], scores: Sequence[Score], group: int, seed: int
) -> list[Rating]:
    """Return the ratings of players that games connect."""
    if not scores:
        return [Rating(name, 0.0, 0.0, 0.0, 0, None, group) for name in names]
    results = Results(names, scores)
    elo = results.likeliest()
    draw = np.random.default_rng(seed)
    again = [results.drawn_again(draw) for _ in range(SAMPLES)]
    low, high = np.percentile(again, [2.5, 97.5], axis=0)
    ratings = []
    for at, name in enumerate(names):
        mine = [score for score in scores if name in (score.one, score.two)]
        games = sum(score.games for score in mine)
        share = sum(score.points_of(name) for score in mine) / games
        bounds = float(elo[at]), float(low[at]), float(high[at])
        ratings.append(Rating(name, *bounds, games, share, group))
    return ratings


def open_gaps(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Return the one-sided matches that no chain of other matches goes around.

    A chain leads from the loser to the winner, everybody in it with a point from the next.
    """
    pairs = added_up(scores)
    beyond: dict[str, set[str]] = {name: set() for pair in pairs for name in (pair.one, pair.two)}
    for pair in pairs:
        if pair.share > 0:
            beyond[pair.one].add(pair.two)
        if pair.share < 1:
            beyond[pair.two].add(pair.one)
    while any(grew(reached, beyond) for reached in beyond.values()):
        pass
    losers = [(p.one, p.two) if p.share == 0 else (p.two, p.one) for p in pairs]
    return [
        (pair.one, pair.two)
        for pair, (loser, winner) in zip(pairs, losers, strict=True)
        if pair.share in (0, 1) and winner not in beyond[loser]
    ]


def grew(reached: set[str], beyond: Mapping[str, set[str]]) -> bool:
    """Add all that is one step further on; say whether there was any."""
    before = len(reached)
    reached.update(*[beyond[name] for name in reached])
    return len(reached) > before
