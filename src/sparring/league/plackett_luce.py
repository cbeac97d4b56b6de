"""Ratings from rankings of three and more seats: the Plackett-Luce model by maximum likelihood.

First place is drawn with probabilities in proportion to the players' strengths, second place among
the remaining players, and so on. For two seats that is the Bradley-Terry model with the same scale:
400 points are a factor of ten. All games are fitted at once, so their order does not matter, unlike
in ratings that are updated game by game. Tied players count as all of their orders in equal parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.league.elo import ELO_PER_LOGIT, MIN_SHARE, PRIOR, bootstrap_chunks

Floats = npt.NDArray[np.float64]
ChoiceSet = tuple[int, ...]
"""Players among whom a place is drawn, sorted; a player with several seats occurs as often."""


@dataclass(frozen=True)
class Rankings:
    """Games of the same players with the places they reached."""

    players: tuple[str, ...]
    """By seat; a name may have several seats."""
    places: npt.NDArray[np.intp]
    """[games, players], lower is better and equal is a tie; only their order matters."""
    deal: npt.NDArray[np.intp] | None = None
    """[games], the deal of each game: deals are independent, the games of a deal are not."""
    distinct: float = 1.0
    """Share of the deals that are distinct."""
    copies: npt.NDArray[np.intp] | None = None
    """[deals], how many deals with the same outcome each stands for; default: for itself."""

    def __post_init__(self) -> None:
        shape = np.shape(self.places)
        if len(shape) != 2 or shape[1] != len(self.players):
            raise ConfigError(f"places {shape} are not (games, {len(self.players)} players)")

    @property
    def games(self) -> int:
        return int(self.weights.sum())

    @property
    def weights(self) -> npt.NDArray[np.intp]:
        """[games], how many games each stands for."""
        if self.copies is None or self.deal is None:
            return np.ones(len(self.places), np.intp)
        return self.copies[self.deal]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.players))

    def points_of(self, name: str) -> tuple[float, int]:
        """Return (points, possible points) of a player against the other seats; a tie is a half."""
        seats = [i for i, player in enumerate(self.players) if player == name]
        others = [i for i, player in enumerate(self.players) if player != name]
        ours, theirs = self.places[:, seats, None], self.places[:, None, others]
        points = ((ours < theirs) + (ours == theirs) / 2).sum((1, 2))
        return float(self.weights @ points), self.games * len(seats) * len(others)


class RankingOutcomes:
    """Distinct outcomes of a deal in some rankings, and the choice sets of each outcome."""

    def __init__(self, rankings: Rankings, index: Mapping[str, int]) -> None:
        players = [index[name] for name in rankings.players]
        patterns, pattern_of = np.unique(rankings.places, axis=0, return_inverse=True)
        pattern_of = pattern_of.reshape(-1)
        if rankings.deal is None:
            outcomes, counts = np.eye(len(patterns)), np.bincount(pattern_of)
        else:
            deals = np.zeros((int(rankings.deal.max()) + 1, len(patterns)))
            np.add.at(deals, (rankings.deal, pattern_of), 1)
            outcomes, outcome_of = np.unique(deals, axis=0, return_inverse=True)
            counts = np.bincount(outcome_of.reshape(-1), rankings.copies)
        by_pattern = [choices_of(players, pattern) for pattern in patterns]
        self.choices = sorted({choice for choices in by_pattern for choice in choices})
        weights = np.array([[each.get(c, 0.0) for c in self.choices] for each in by_pattern])
        self.weights: Floats = outcomes @ weights.reshape(len(by_pattern), -1)
        """[outcomes of a deal, choice sets], number of each."""
        self.games: Floats = outcomes.sum(1)
        self.counts: Floats = counts.astype(np.float64) * rankings.distinct
        self.seats = np.bincount(players, minlength=len(index)).astype(np.float64)


def choices_of(players: Sequence[int], places: npt.NDArray[np.intp]) -> dict[ChoiceSet, float]:
    """Return the choice sets of one game, with weights where players tied.

    All orders of m tied players are equally likely: after t of them are placed, any set of t may
    be the placed one.
    """
    weights: dict[ChoiceSet, float] = {}
    for place in np.unique(places):
        tied = [player for player, other in zip(players, places, strict=True) if other == place]
        behind = [player for player, other in zip(players, places, strict=True) if other > place]
        for placed in range(len(tied)):
            weight = 1 / comb(len(tied), placed)
            for left in combinations(tied, len(tied) - placed):
                choice = tuple(sorted((*left, *behind)))
                weights[choice] = weights.get(choice, 0.0) + weight
    return weights


class RankingsFit:
    """Plackett-Luce fit of the rankings of players that games connect, with a prior."""

    def __init__(
        self, names: Sequence[str], rankings: Sequence[Rankings], fixed: Mapping[int, float]
    ) -> None:
        index = {name: i for i, name in enumerate(names)}
        self.outcomes = [RankingOutcomes(one, index) for one in rankings]
        met = {pair for o in self.outcomes for pair in combinations(np.flatnonzero(o.seats), 2)}
        self.pairs = np.array(sorted(met))
        opponents = np.bincount(self.pairs.ravel(), minlength=len(names))
        self.prior: Floats = PRIOR * (1 / opponents[self.pairs]).mean(1) / 2
        """Wins that each of a pair has over the other before they play."""
        choices = {c: None for outcome in self.outcomes for c in outcome.choices}
        choices |= {(int(one), int(two)): None for one, two in self.pairs}
        column = {choice: i for i, choice in enumerate(choices)}
        self.columns = [[column[c] for c in outcome.choices] for outcome in self.outcomes]
        self.pair_columns = [column[int(one), int(two)] for one, two in self.pairs]
        self.seats_in = np.zeros((len(choices), len(names)))
        """[choice sets, players], number of seats of a player in a choice set."""
        for choice, i in column.items():
            np.add.at(self.seats_in[i], list(choice), 1)
        self.fixed = dict(fixed)
        self.free = [i for i in range(len(names)) if i not in fixed]

    def maximum_likelihood(self) -> Floats:
        counts = [outcome.counts[None] for outcome in self.outcomes]
        ratings: Floats = self.rate(counts, self.prior[None, :, None])[0]
        return ratings

    def bootstrap(self, rng: np.random.Generator) -> Floats:
        """Return ratings with random weights of the deals, as `EloFit.bootstrap`."""
        start = self.maximum_likelihood()
        samples = []
        for chunk in bootstrap_chunks(self.seats_in.size):
            weights = [rng.gamma(o.counts, size=(chunk, len(o.counts))) for o in self.outcomes]
            prior = rng.gamma(self.prior[:, None], size=(chunk, len(self.prior), 2))
            samples.append(self.rate(weights, prior, start))
        return np.concatenate(samples)

    def rate(self, weights: Sequence[Floats], prior: Floats, start: Floats | None = None) -> Floats:
        """Return the ratings for weights of outcomes, [samples, outcomes] per entry of `outcomes`.

        prior: [samples, pairs, 1 or 2], prior chosen of each of a pair.
        """
        chosen = np.zeros((len(prior), self.seats_in.shape[1]))
        choice_counts = np.zeros((len(prior), len(self.seats_in)))
        for outcome, columns, weight in zip(self.outcomes, self.columns, weights, strict=True):
            chosen += (weight @ outcome.games)[:, None] * outcome.seats
            choice_counts[:, columns] += weight @ outcome.weights
        min_prior = MIN_SHARE * np.maximum(choice_counts[:, self.pair_columns], 1.0)
        prior = np.maximum(np.broadcast_to(prior, (*prior.shape[:2], 2)), min_prior[..., None])
        for i, (one, two) in enumerate(self.pairs):
            chosen[:, one] += prior[:, i, 0]
            chosen[:, two] += prior[:, i, 1]
        choice_counts[:, self.pair_columns] += prior.sum(-1)
        ratings: Floats = ELO_PER_LOGIT * self.fit(chosen, choice_counts, start)
        return ratings

    def fit(self, chosen: Floats, choice_counts: Floats, start: Floats | None) -> Floats:
        """Return the maximum-likelihood log strengths by Newton's method.

        chosen: [samples, players], how often each player was drawn.
        choice_counts: [samples, choice sets], how often a place was drawn from each.
        The log-likelihood is concave.
        """
        log = np.zeros(chosen.shape)
        log[:] = (
            np.mean(list(self.fixed.values())) / ELO_PER_LOGIT
            if start is None
            else start / ELO_PER_LOGIT
        )
        for i, elo in self.fixed.items():
            log[:, i] = elo / ELO_PER_LOGIT
        for _ in range(200 if self.free else 0):
            strength = np.exp(log - log.max(axis=1, keepdims=True))
            total = strength @ self.seats_in.T
            probability = self.seats_in * strength[:, None, :] / total[..., None]
            weighted = choice_counts[..., None] * probability
            expected = weighted.sum(1)
            hessian = -np.swapaxes(weighted, 1, 2) @ probability
            diagonal = np.arange(hessian.shape[-1])
            hessian[:, diagonal, diagonal] += expected
            gradient = (chosen - expected)[:, self.free]
            free_hessian = hessian[:, self.free][:, :, self.free]
            step = np.linalg.solve(free_hessian, gradient[..., None])[..., 0].clip(-2, 2)
            log[:, self.free] += step
            if np.abs(step).max() < 1e-8:
                break
        return log
