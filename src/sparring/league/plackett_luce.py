"""Ratings from rankings of three seats and more: Plackett and Luce's model by maximum likelihood.

First place is drawn with chances in proportion to everybody's strength, second place among those
that are left, and so on. Of two seats that is Bradley and Terry's model, and so is the scale: 400
points are ten times the chance. All games are fitted at once, so that their order does not matter,
which it does in ratings that go from game to game. Players who tie are taken as all of their orders
in equal parts, as a draw is half a point for both.
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
"""Players among whom a place was drawn, sorted; one who has several seats is there as often."""


@dataclass(frozen=True)
class Rankings:
    """The games of one table: who sat there, and in which order they came in."""

    players: tuple[str, ...]
    """A name may have several seats."""
    places: npt.NDArray[np.intp]
    """[games, players], lower is better and equal is a tie; any numbers in that order."""
    deal: npt.NDArray[np.intp] | None = None
    """[games], which of them had the same cards: deals are independent, their games are not."""
    worth: float = 1.0
    """Share of the deals that are no repetition of others."""

    def __post_init__(self) -> None:
        shape = np.shape(self.places)
        if len(shape) != 2 or shape[1] != len(self.players):
            raise ConfigError(f"places {shape} are not (games, {len(self.players)} players)")

    @property
    def games(self) -> int:
        return len(self.places)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.players))

    def points_of(self, name: str) -> tuple[float, int]:
        """Return what a player got from seats of others, a tie being a half, and of how many."""
        mine = [at for at, player in enumerate(self.players) if player == name]
        others = [at for at, player in enumerate(self.players) if player != name]
        own, their = self.places[:, mine, None], self.places[:, None, others]
        return float((own < their).sum() + (own == their).sum() / 2), int(own.size * len(others))


class RankingOutcomes:
    """The rankings of one table: distinct outcomes of a deal, and the choices in each."""

    def __init__(self, table: Rankings, index: Mapping[str, int]) -> None:
        players = [index[name] for name in table.players]
        patterns, which = np.unique(table.places, axis=0, return_inverse=True)
        which = which.reshape(-1)
        if table.deal is None:
            outcomes, counts = np.eye(len(patterns)), np.bincount(which)
        else:
            deals = np.zeros((int(table.deal.max()) + 1, len(patterns)))
            np.add.at(deals, (table.deal, which), 1)
            outcomes, counts = np.unique(deals, axis=0, return_counts=True)
        found = [choices_of(players, pattern) for pattern in patterns]
        self.choices = sorted({choice for each in found for choice in each})
        weights = np.array([[each.get(c, 0.0) for c in self.choices] for each in found])
        self.weights: Floats = outcomes @ weights.reshape(len(found), -1)
        """[outcomes of a deal, choices], how often."""
        self.games: Floats = outcomes.sum(1)
        self.counts: Floats = counts.astype(np.float64) * table.worth
        self.seats = np.bincount(players, minlength=len(index)).astype(np.float64)


def choices_of(players: Sequence[int], places: npt.NDArray[np.intp]) -> dict[ChoiceSet, float]:
    """Return among whom the places of one game were drawn, with weights where players tied.

    Of m players who tie, each order is as good as another, so that after t of them were placed
    any set of t may be the one that is gone.
    """
    found: dict[ChoiceSet, float] = {}
    for place in np.unique(places):
        tied = [player for player, its in zip(players, places, strict=True) if its == place]
        behind = [player for player, its in zip(players, places, strict=True) if its > place]
        for gone in range(len(tied)):
            weight = 1 / comb(len(tied), gone)
            for left in combinations(tied, len(tied) - gone):
                choice = tuple(sorted((*left, *behind)))
                found[choice] = found.get(choice, 0.0) + weight
    return found


class RankingsFit:
    """All tables of players that games connect, the prior among them."""

    def __init__(
        self, names: Sequence[str], tables: Sequence[Rankings], fixed: Mapping[int, float]
    ) -> None:
        index = {name: at for at, name in enumerate(names)}
        self.tables = [RankingOutcomes(table, index) for table in tables]
        met = {pair for t in self.tables for pair in combinations(np.flatnonzero(t.seats), 2)}
        self.pairs = np.array(sorted(met))
        often = np.bincount(self.pairs.ravel(), minlength=len(names))
        self.prior: Floats = PRIOR * (1 / often[self.pairs]).mean(1) / 2
        """Wins that each of a pair has over the other before they ever meet."""
        choices = {c: None for table in self.tables for c in table.choices}
        choices |= {(int(one), int(two)): None for one, two in self.pairs}
        place = {choice: at for at, choice in enumerate(choices)}
        self.columns = [[place[choice] for choice in table.choices] for table in self.tables]
        self.pair_columns = [place[int(one), int(two)] for one, two in self.pairs]
        self.among = np.zeros((len(choices), len(names)))
        """[choices, players], how many seats a player has in it."""
        for choice, at in place.items():
            np.add.at(self.among[at], list(choice), 1)
        self.fixed = dict(fixed)
        self.free = [at for at in range(len(names)) if at not in fixed]

    def likeliest(self) -> Floats:
        counts = [table.counts[None] for table in self.tables]
        ratings: Floats = self.rate(counts, self.prior[None, :, None])[0]
        return ratings

    def drawn_again(self, draw: np.random.Generator) -> Floats:
        """Return ratings with lots for the weight of every deal, as those of Elo."""
        start = self.likeliest()
        found = []
        for part in bootstrap_chunks(self.among.size):
            weights = [draw.gamma(t.counts, size=(part, len(t.counts))) for t in self.tables]
            prior = draw.gamma(self.prior[:, None], size=(part, len(self.prior), 2))
            found.append(self.rate(weights, prior, start))
        return np.concatenate(found)

    def rate(self, weights: Sequence[Floats], prior: Floats, start: Floats | None = None) -> Floats:
        """Return the ratings that follow from weights of outcomes [samples, outcomes] per table.

        prior: [samples, pairs, 1 or 2], what each of a pair has won from the other beforehand.
        """
        chosen = np.zeros((len(prior), self.among.shape[1]))
        drawn = np.zeros((len(prior), len(self.among)))
        for table, columns, weight in zip(self.tables, self.columns, weights, strict=True):
            chosen += (weight @ table.games)[:, None] * table.seats
            drawn[:, columns] += weight @ table.weights
        least = MIN_SHARE * np.maximum(drawn[:, self.pair_columns], 1.0)
        prior = np.maximum(np.broadcast_to(prior, (*prior.shape[:2], 2)), least[..., None])
        for at, (one, two) in enumerate(self.pairs):
            chosen[:, one] += prior[:, at, 0]
            chosen[:, two] += prior[:, at, 1]
        drawn[:, self.pair_columns] += prior.sum(-1)
        ratings: Floats = ELO_PER_LOGIT * self.climb(chosen, drawn, start)
        return ratings

    def climb(self, chosen: Floats, drawn: Floats, start: Floats | None) -> Floats:
        """Return the most likely log strengths by Newton's steps; the likelihood is concave."""
        log = np.zeros(chosen.shape)
        log[:] = (
            np.mean(list(self.fixed.values())) / ELO_PER_LOGIT
            if start is None
            else start / ELO_PER_LOGIT
        )
        for at, elo in self.fixed.items():
            log[:, at] = elo / ELO_PER_LOGIT
        for _ in range(200 if self.free else 0):
            strength = np.exp(log - log.max(axis=1, keepdims=True))
            total = strength @ self.among.T
            chance = self.among * strength[:, None, :] / total[..., None]
            weighted = drawn[..., None] * chance
            expected = weighted.sum(1)
            curve = -np.swapaxes(weighted, 1, 2) @ chance
            diagonal = np.arange(curve.shape[-1])
            curve[:, diagonal, diagonal] += expected
            slope = (chosen - expected)[:, self.free]
            part = curve[:, self.free][:, :, self.free]
            step = np.linalg.solve(part, slope[..., None])[..., 0].clip(-2, 2)
            log[:, self.free] += step
            if np.abs(step).max() < 1e-8:
                break
        return log
