"""Pairings that are kept: outcomes of deals, all that ratings, win shares and intervals need.

One player meets another that has all other seats. A game is one number, from which follows how many
of the others came in before the player and how many beside it. The games of a deal, one from every
seat, are an outcome, and deals with the same outcome are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.league.intervals import Interval, deal_share_interval
from sparring.league.ratings import DEAL_SHARES, PairScore, Rankings
from sparring.league.results import MatchResult

Ints = npt.NDArray[np.intp]
Outcome = tuple[int, ...]
"""The games of a deal in ascending order, each as before * seats + beside."""


@dataclass(frozen=True)
class KeptPairing:
    """One player against another, which has all other seats, without the games themselves."""

    one: str
    two: str
    seats: int
    distinct_deals: int
    outcomes: tuple[tuple[Outcome, int], ...]
    """Outcomes, and the number of deals with each."""
    seed: int = 0

    @classmethod
    def of(cls, one: str, two: str, result: MatchResult, seed: int) -> KeptPairing:
        """Keep a match of one player against copies of another; every deal from every seat."""
        record, seats = result.record, result.seats
        score = np.take_along_axis(record.score, record.seat_of, axis=1)
        before = (score[:, 1:] > score[:, :1]).sum(axis=1)
        beside = (score[:, 1:] == score[:, :1]).sum(axis=1)
        games = before * seats + beside
        deals = games[np.lexsort((games, record.deal))].reshape(-1, seats)
        outcomes, counts = np.unique(deals, axis=0, return_counts=True)
        pairs = zip(map(tuple, outcomes.tolist()), counts.tolist(), strict=True)
        return cls(one, two, seats, result.distinct_deals, tuple(pairs), seed)

    def check(self) -> None:
        """Raise ValueError unless the outcomes are those of a game with so many seats."""
        for outcome, _ in self.outcomes:
            ranks = [divmod(game, self.seats) for game in outcome]
            if len(outcome) != self.seats or any(sum(rank) >= self.seats for rank in ranks):
                raise ValueError(f"{list(outcome)} is no outcome of a deal with {self.seats} seats")
        if not 0 < self.distinct_deals <= self.deals:
            raise ValueError(f"{self.distinct_deals} of {self.deals} deals are distinct")

    @property
    def deals(self) -> int:
        return sum(count for _, count in self.outcomes)

    @property
    def games(self) -> int:
        return self.seats * self.deals

    @property
    def win_share(self) -> float:
        """Mean over games; k players that share the highest score get 1/k of the win each."""
        return float(np.average(self.deal_shares, weights=self.counts))

    @property
    def win_interval(self) -> Interval:
        mean, variance = self.win_share, math.nan
        if self.distinct_deals > 1:
            variance = float(self.counts @ (self.deal_shares - mean) ** 2) / (self.deals - 1)
        return deal_share_interval(mean, variance, self.distinct_deals)

    def plain(self) -> dict[str, Any]:
        """Return the pairing as JSON values."""
        low, high = self.win_interval
        return {
            **{"one": self.one, "two": self.two, "games": self.games, "deals": self.deals},
            **{"distinct_deals": self.distinct_deals, "seed": self.seed},
            **{"win": self.win_share, "low": low, "high": high},
        }

    def score(self) -> PairScore | Rankings:
        """Return the results for `rate`."""
        share = self.distinct_deals / self.deals
        before, beside = self.ranks
        if self.seats > 2:
            places = (np.arange(self.seats - 1) < (before + beside)[..., None]).astype(np.intp)
            places = 2 - places - (np.arange(self.seats - 1) < before[..., None])
            places = np.insert(places, 0, 1, axis=-1).reshape(-1, self.seats)
            deal = np.repeat(np.arange(len(self.counts)), self.seats)
            players = (self.one, *[self.two] * (self.seats - 1))
            return Rankings(players, places, deal, share, self.counts)
        half_points = (2 - 2 * before - beside).sum(axis=1)
        deals = np.bincount(half_points, self.counts, DEAL_SHARES) * share
        wins = int(self.counts @ (before + beside == 0).sum(axis=1))
        draws = int(self.counts @ beside.sum(axis=1))
        losses = self.games - wins - draws
        return PairScore(self.one, self.two, wins, draws, losses, deals=tuple(deals.tolist()))

    @cached_property
    def counts(self) -> Ints:
        """[outcomes], number of deals."""
        return np.array([count for _, count in self.outcomes], np.intp)

    @cached_property
    def ranks(self) -> tuple[Ints, Ints]:
        """[outcomes, games of a deal], how many others came in before the player, and beside it."""
        before, beside = np.divmod([outcome for outcome, _ in self.outcomes], self.seats)
        return before, beside

    @cached_property
    def deal_shares(self) -> npt.NDArray[np.float64]:
        """[outcomes], the player's mean win share over the games of a deal."""
        before, beside = self.ranks
        shares: npt.NDArray[np.float64] = ((before == 0) / (1 + beside)).mean(axis=1)
        return shares
