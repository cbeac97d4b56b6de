"""Elo ratings from matches of two players, by maximum likelihood, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

Floats = npt.NDArray[np.float64]
ELO_PER_LOGIT = 400 / np.log(10)
"""Elo points per unit of log odds."""
PRIOR = 1.0
"""Draws added for every player, spread over its opponents: keeps shares of 100 % finite."""
SAMPLES, MIN_SHARE = 1000, 1e-6
"""Of the bootstrap, and its smallest share of the points, which is 2,400 Elo away."""
OUTCOMES = (0.0, 0.5, 1.0, 0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the points: of a single game, then of the two games of a deal."""
UNIT_GAMES = np.array([1, 1, 1, 2, 2, 2, 2, 2])
"""Games of each outcome."""
MAX_ARRAY_SIZE = 2_000_000
"""Numbers in an array of the bootstrap, to bound memory."""


@dataclass(frozen=True)
class PairScore:
    """Wins, draws and losses of the first of two players."""

    one: str
    two: str
    wins: int
    draws: int
    losses: int
    deals: tuple[float, ...] = field(default=(), kw_only=True)
    """If each deal was played from both seats: number of deals that gave the first player 0, 1/2,
    1, 1 1/2 and 2 points. Games of one deal are not independent, deals are. Fractions if deals
    repeat. Default: all games are independent."""

    @property
    def players(self) -> tuple[str, str]:
        return self.one, self.two

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def share(self) -> float:
        """Share of the points; a draw is half a point."""
        return (self.wins + self.draws / 2) / self.games

    def points_of(self, name: str) -> tuple[float, int]:
        """Return (points, possible points) of one of the two."""
        return self.games * (self.share if name == self.one else 1 - self.share), self.games

    @property
    def evidence(self) -> Floats:
        """Number of independent observations by outcome, in the order of OUTCOMES."""
        if not self.deals:
            return np.array([self.losses, self.draws, self.wins, 0, 0, 0, 0, 0], np.float64)
        return np.array([0, 0, 0, *self.deals], np.float64)


def fit(games: Floats, points: Floats, fixed: Mapping[int, float] | None = None) -> Floats:
    """Return the maximum-likelihood Elo ratings of the Bradley-Terry model.

    games, points: [..., players, players], games played and points of the row's player; a draw is
        half a point for both.
    fixed: fixed ratings; default: the first player has 0.
    """
    fixed = fixed or {0: 0.0}
    free = [i for i in range(games.shape[-1]) if i not in fixed]
    rating = np.zeros(games.shape[:-1])
    for i, elo in fixed.items():
        rating[..., i] = elo / ELO_PER_LOGIT
    rating[..., free] = np.mean(list(fixed.values())) / ELO_PER_LOGIT
    for _ in range(200 if free else 0):
        # tanh, because exp overflows where anchors are far from the results.
        expected = (1 - np.tanh((rating[..., None, :] - rating[..., :, None]) / 2)) / 2
        gradient = (points - games * expected).sum(-1)
        variance = games * expected * (1 - expected)
        hessian = -variance
        diagonal = np.arange(variance.shape[-1])
        hessian[..., diagonal, diagonal] += variance.sum(-1)
        free_hessian = hessian[..., free, :][..., free]
        step = np.linalg.solve(free_hessian, gradient[..., free, None])[..., 0].clip(-2, 2)
        rating[..., free] += step
        if np.abs(step).max() < 1e-9:
            break
    ratings: Floats = ELO_PER_LOGIT * rating
    return ratings


class EloFit:
    """Elo fit of scores, one per pair, with the prior added to the games."""

    def __init__(
        self, names: Sequence[str], scores: Sequence[PairScore], fixed: Mapping[int, float]
    ) -> None:
        self.one = [names.index(score.one) for score in scores]
        self.two = [names.index(score.two) for score in scores]
        opponents = np.bincount(self.one + self.two, minlength=len(names))
        prior = PRIOR * (1 / opponents[self.one] + 1 / opponents[self.two]) / 2
        self.counts = np.stack([score.evidence for score in scores])
        """[matches, outcomes]."""
        self.counts[:, OUTCOMES.index(0.0)] += prior / 2
        self.counts[:, OUTCOMES.index(1.0)] += prior / 2
        self.players, self.fixed = len(names), dict(fixed)

    def rate(self, weights: Floats) -> Floats:
        """Return the ratings for outcomes with these weights [..., matches, 8]."""
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

    def maximum_likelihood(self) -> Floats:
        return self.rate(self.counts)

    def bootstrap(self, rng: np.random.Generator) -> Floats:
        """Return ratings with random weights of the games (Rubin's Bayesian bootstrap).

        Resampling whole games would give a match that was won 40 to 0 no interval.
        """
        chunks = bootstrap_chunks(self.players**2)
        weights = (rng.gamma(self.counts, size=(chunk, *self.counts.shape)) for chunk in chunks)
        return np.concatenate([self.rate(sample) for sample in weights])


def bootstrap_chunks(sample_size: int) -> list[int]:
    """Split the bootstrap to bound its memory: samples per chunk, each of `sample_size` numbers."""
    size = max(1, MAX_ARRAY_SIZE // sample_size)
    return [min(size, SAMPLES - done) for done in range(0, SAMPLES, size)]


def sum_by_pair(scores: Sequence[PairScore]) -> list[PairScore]:
    """Return one score per pair: the sum of its matches in either order."""
    by_pair: dict[tuple[str, str], list[PairScore]] = {}
    for score in scores:
        if score.one == score.two:
            raise ConfigError(f"{score.one} plays against itself; leave the match out")
        reversed_ = (score.two, score.one) in by_pair
        pair = (score.two, score.one) if reversed_ else (score.one, score.two)
        by_pair.setdefault(pair, []).append(swapped(score) if reversed_ else score)
    return [sum_scores(matches) for matches in by_pair.values() if any(m.games for m in matches)]


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
    """Return the one-sided pairs whose difference in strength the other matches do not bound.

    A chain of players from the loser to the winner, each with a point from the next, bounds it.
    """
    pairs = sum_by_pair(scores)
    reachable: dict[str, set[str]] = {
        name: set() for pair in pairs for name in (pair.one, pair.two)
    }
    for pair in pairs:
        if pair.share > 0:
            reachable[pair.one].add(pair.two)
        if pair.share < 1:
            reachable[pair.two].add(pair.one)
    while any(extend(names, reachable) for names in reachable.values()):
        pass
    losers = [(p.one, p.two) if p.share == 0 else (p.two, p.one) for p in pairs]
    return [
        (pair.one, pair.two)
        for pair, (loser, winner) in zip(pairs, losers, strict=True)
        if pair.share in (0, 1) and winner not in reachable[loser]
    ]


def extend(names: set[str], reachable: Mapping[str, set[str]]) -> bool:
    """Add all names that are one step further; return whether there were any."""
    before = len(names)
    names.update(*[reachable[name] for name in names])
    return len(names) > before
