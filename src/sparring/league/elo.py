"""Elo from matches of two: ratings by maximum likelihood, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

Floats = npt.NDArray[np.float64]
ELO_PER_LOGIT = 400 / np.log(10)
"""Points per unit of log odds."""
PRIOR = 1.0
"""Every player also drew so many games, spread over those it met: 100 % stay finite."""
SAMPLES, MIN_SHARE = 1000, 1e-6
"""Of the bootstrap: how many, and the least share of the points; it is 2,400 Elo away."""
OUTCOMES = (0.0, 0.5, 1.0, 0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the points: of a game alone, then of the two games of a deal."""
UNIT_GAMES = np.array([1, 1, 1, 2, 2, 2, 2, 2])
"""How many games such an outcome has."""
MAX_NUMBERS = 2_000_000
"""Of an array of the bootstrap."""


@dataclass(frozen=True)
class PairScore:
    """How the games of two players ended, seen by the first."""

    one: str
    two: str
    wins: int
    draws: int
    losses: int
    deals: tuple[float, ...] = field(default=(), kw_only=True)
    """Where each deal was played from both seats: how many deals brought the first player
    0, 1/2, 1, 1 1/2 and 2 points. Games of one deal are not independent, deals are. Fractions, if
    deals repeat others and so are worth less. Left out: all games are independent."""

    @property
    def players(self) -> tuple[str, str]:
        return self.one, self.two

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def share(self) -> float:
        """Of the points, a draw being half of one."""
        return (self.wins + self.draws / 2) / self.games

    def points_of(self, name: str) -> tuple[float, int]:
        """Return what one of the two got, and of how many points."""
        return self.games * (self.share if name == self.one else 1 - self.share), self.games

    @property
    def evidence(self) -> Floats:
        """Independent observations by their outcome, as OUTCOMES has them."""
        if not self.deals:
            return np.array([self.losses, self.draws, self.wins, 0, 0, 0, 0, 0], np.float64)
        return np.array([0, 0, 0, *self.deals], np.float64)


def fit(games: Floats, points: Floats, fixed: Mapping[int, float] | None = None) -> Floats:
    """Return the most likely ratings in Elo.

    games, points: [..., players, players], how many were played and what the row's player got.
    fixed: ratings that are given; left out, the first player has 0.
    Bradley and Terry's model, a draw being half a point for both.
    """
    fixed = fixed or {0: 0.0}
    free = [at for at in range(games.shape[-1]) if at not in fixed]
    rating = np.zeros(games.shape[:-1])
    for at, elo in fixed.items():
        rating[..., at] = elo / ELO_PER_LOGIT
    rating[..., free] = np.mean(list(fixed.values())) / ELO_PER_LOGIT
    for _ in range(200 if free else 0):
        # Through tanh, because exp overflows where anchors are far from what was played.
        expected = (1 - np.tanh((rating[..., None, :] - rating[..., :, None]) / 2)) / 2
        slope = (points - games * expected).sum(-1)
        bend = games * expected * (1 - expected)
        curve = -bend
        diagonal = np.arange(bend.shape[-1])
        curve[..., diagonal, diagonal] += bend.sum(-1)
        part = curve[..., free, :][..., free]
        step = np.linalg.solve(part, slope[..., free, None])[..., 0].clip(-2, 2)
        rating[..., free] += step
        if np.abs(step).max() < 1e-9:
            break
    ratings: Floats = ELO_PER_LOGIT * rating
    return ratings


class EloFit:
    """Scores of pairs that are all different as matrices, the prior among the games."""

    def __init__(
        self, names: Sequence[str], scores: Sequence[PairScore], fixed: Mapping[int, float]
    ) -> None:
        self.one = [names.index(score.one) for score in scores]
        self.two = [names.index(score.two) for score in scores]
        met = np.bincount(self.one + self.two, minlength=len(names))
        prior = PRIOR * (1 / met[self.one] + 1 / met[self.two]) / 2
        self.counts = np.stack([score.evidence for score in scores])
        """Of every match [matches, outcomes]."""
        self.counts[:, OUTCOMES.index(0.0)] += prior / 2
        self.counts[:, OUTCOMES.index(1.0)] += prior / 2
        self.players, self.fixed = len(names), dict(fixed)

    def rate(self, weights: Floats) -> Floats:
        """Return the ratings that follow from outcomes with these weights [..., matches, 8]."""
        total = (self.counts * UNIT_GAMES).sum(-1)
        played = weights * UNIT_GAMES
        shares = (played * OUTCOMES).sum(-1) / played.sum(-1)
        shares = shares.clip(MIN_SHARE, 1 - MIN_SHARE)
        size = (*weights.shape[:-2], self.players, self.players)
        games, points = np.zeros(size), np.zeros(size)
        games[..., self.one, self.two] = games[..., self.two, self.one] = total
        points[..., self.one, self.two] = total * shares
        points[..., self.two, self.one] = total * (1 - shares)
        return fit(games, points, self.fixed)

    def likeliest(self) -> Floats:
        return self.rate(self.counts)

    def drawn_again(self, draw: np.random.Generator) -> Floats:
        """Return ratings with lots for the weight of every game, as Rubin's bootstrap has it.

        Drawing whole games again would call a match that was won 40 to 0 certain.
        """
        parts = bootstrap_chunks(self.players**2)
        weights = (draw.gamma(self.counts, size=(part, *self.counts.shape)) for part in parts)
        return np.concatenate([self.rate(drawn) for drawn in weights])


def bootstrap_chunks(numbers: int) -> list[int]:
    """Split the bootstrap to bound its memory: how many samples at a time, of so many numbers."""
    some = max(1, MAX_NUMBERS // numbers)
    return [min(some, SAMPLES - done) for done in range(0, SAMPLES, some)]


def sum_by_pair(scores: Sequence[PairScore]) -> list[PairScore]:
    """Return one score per pair, whoever was named first and however often they met."""
    found: dict[tuple[str, str], list[PairScore]] = {}
    for score in scores:
        if score.one == score.two:
            raise ConfigError(f"{score.one} met itself, which says nothing; leave the match out")
        turned = (score.two, score.one) in found
        pair = (score.two, score.one) if turned else (score.one, score.two)
        found.setdefault(pair, []).append(swapped(score) if turned else score)
    return [sum_scores(matches) for matches in found.values() if any(m.games for m in matches)]


def swapped(score: PairScore) -> PairScore:
    counts = score.losses, score.draws, score.wins
    return PairScore(score.two, score.one, *counts, deals=score.deals[::-1])


def sum_scores(matches: Sequence[PairScore]) -> PairScore:
    counts = [sum(c) for c in zip(*((m.wins, m.draws, m.losses) for m in matches), strict=True)]
    paired = [match.deals for match in matches if match.games]
    if any(paired) and not all(paired):
        pair = f"{matches[0].one} and {matches[0].two}"
        raise ConfigError(f"{pair} have matches with deals and without; give deals= for all")
    deals = tuple(sum(column) for column in zip(*paired, strict=True))
    return PairScore(matches[0].one, matches[0].two, *counts, deals=deals)


def unbounded_pairs(scores: Sequence[PairScore]) -> list[tuple[str, str]]:
    """Return the one-sided matches that no chain of other matches goes around.

    A chain leads from the loser to the winner, everybody in it with a point from the next.
    """
    pairs = sum_by_pair(scores)
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
