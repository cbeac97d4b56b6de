"""How sure a match is: 95 % intervals that count independent deals and not games."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import variance
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

Interval = tuple[float, float]
Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Verdict = Literal["stronger", "weaker", ""]

Z_95 = 1.959964
"""Half the width of a 95 % interval, in standard errors."""

SKEWED = 0.15
"""Skewness of deals over the square root of their number, from which a mean's interval is rough."""
FEW = 6
"""Degrees of freedom below which the series of Student's numbers is not exact enough."""
GRID = 20_001
UNSEEN = 1e-3
"""Deals of outcomes that were never seen: a match that was won throughout stays finite."""


@lru_cache
def student_95(degrees: float) -> float:
    """Half the width of a 95 % interval whose spread was estimated with so many degrees of freedom.

    They may be a fraction, as Welch's are. Cornish and Fisher's series (Abramowitz and Stegun
    26.7.5), and below `FEW` the integral itself.
    """
    if degrees < FEW:
        return student_by_integral(degrees)
    z, n = Z_95, float(degrees)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / n**power for power, term in enumerate(terms, start=1))


def student_by_integral(degrees: float) -> float:
    """Student's number by summing up his density.

    With t = sqrt(degrees) tan(angle), what lies between 0 and t is the integral of
    cos(angle) ** (degrees - 1), as a share of that up to a right angle.
    """
    angle = np.linspace(0.0, np.pi / 2, GRID)
    density = np.cos(angle).clip(0.0) ** (degrees - 1)
    below = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return math.sqrt(degrees) * math.tan(float(np.interp(0.95, below / below[-1], angle)))


def welch_95(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Half the width of Welch's 95 % interval of a difference of means; None from a single value.

    Few values say little about their own spread, which a bootstrap would not notice.
    """
    sizes = len(ours), len(theirs)
    if min(sizes) < 2:
        return None
    parts = [variance(values) / len(values) for values in (ours, theirs)]
    total = sum(parts)
    if total == 0:
        return 0.0
    degrees = total**2 / sum(p**2 / (n - 1) for p, n in zip(parts, sizes, strict=True))
    return student_95(degrees) * math.sqrt(total)


def wilson(share: float, games: float) -> Interval:
    """The 95 % interval of a share of so many independent games, a fraction of one if need be."""
    # Unlike a normal interval it keeps its width at 0 and 100 %.
    weight = Z_95**2 / games
    middle = (share + weight / 2) / (1 + weight)
    half = Z_95 / (1 + weight) * math.sqrt((share * (1 - share) + weight / 4) / games)
    return max(middle - half, 0.0) if share else 0.0, min(middle + half, 1.0) if share < 1 else 1.0


def deal_variance(values: Numbers, deal: Numbers) -> float:
    """Return by how much the means of deals vary; nan if there is but one.

    deal: [games], the deal of every game, 0 and up. A deal with fewer games weighs less.
    """
    deals = int(deal.max()) + 1
    if deals < 2:
        return math.nan
    rest = values.astype(np.float64) - float(values.mean(dtype=np.float64))
    by_deal = np.bincount(deal, rest, deals) * (deals / len(values))
    return float((by_deal**2).sum() / (deals - 1))


def share_interval(share: Numbers, deal: Numbers, distinct: int) -> Interval:
    """The 95 % interval of a win share, Wilson's for as many games as the deals are worth.

    distinct: deals that are no repetition. One is worth a single game if it is won or lost from all
        seats together, and more if good and bad seats make up for each other.

    The worth of a deal is (p (1 - p) + c) / (v + c), where v is the variance of the deals' means
    and c = z^2 / (2 * distinct) keeps it near one where too little was seen to know v: at 0 and
    100 %, and where all deals came out alike.
    """
    mean = float(share.mean(dtype=np.float64))
    most = mean * (1 - mean)
    found = deal_variance(share, deal) if distinct > 1 else math.nan
    little = Z_95**2 / (2 * distinct)
    worth = 1.0 if math.isnan(found) else (most + little) / (found + little)
    return wilson(mean, distinct * worth)


def is_skewed(values: Numbers, deal: Numbers) -> bool:
    """Whether a mean over deals is likely to have too narrow an interval.

    A few deals that are far from the others move the mean and are seldom met: the more so, the
    larger the skewness of the deals is beside the square root of their number.
    """
    deals = int(deal.max()) + 1
    games = np.bincount(deal, minlength=deals)
    rest = np.bincount(deal, values.astype(np.float64), deals) / np.maximum(games, 1)
    rest -= rest.mean()
    spread = math.sqrt(float((rest**2).mean()))
    if not spread:
        return False
    return abs(float((rest**3).mean())) / spread**3 > SKEWED * math.sqrt(deals)


def mean_interval(values: Numbers, deal: Numbers, distinct: int) -> Interval:
    """The 95 % interval of a mean over deals, Student's: few say little about their own spread.

    One deal says nothing about how much deals differ: then both ends are nan.
    """
    if distinct < 2:
        return math.nan, math.nan
    mean = float(values.mean(dtype=np.float64))
    half = student_95(distinct - 1) * math.sqrt(deal_variance(values, deal) / distinct)
    return mean - half, mean + half


@dataclass(frozen=True)
class Sprt:
    """Stops a match as soon as it is decided: the sequential probability ratio test over deals.

    Wald's test of elo0 against elo1, in the generalized form that chess engines are tested with:
    the outcomes of a deal have whatever frequencies make what was seen most likely, once with the
    mean that elo0 would have, once with that of elo1. It looks at deals and not at games, because
    the games of a deal share their cards: what one seat gains from them the other one loses.
    """

    elo0: float = -10.0
    elo1: float = 10.0
    alpha: float = 0.05
    """How often a player of elo0 may be called stronger."""
    beta: float = 0.05
    """How often a player of elo1 may be called weaker."""
    seats: int = 2
    """The player has one of them, its opponents have the others."""

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise ConfigError(f"elo0 {self.elo0:g} must be below elo1 {self.elo1:g}")
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not 0 < value < 0.5:
                raise ConfigError(f"{name} {value:g} must be above 0 and below 0.5")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log likelihood ratios below and above which the match is decided."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def share(self, elo: float) -> float:
        """Return the win share of a player so much stronger than each of its opponents."""
        return 1 / (1 + (self.seats - 1) * 10 ** (-elo / 400))

    def ratio(self, shares: npt.ArrayLike, worth: float = 1.0) -> float:
        """Return the log likelihood ratio after some deals.

        shares: [deals], the mean win share of the player over the games of each.
        worth: the part of the deals that are no repetition of others.
        """
        values, counts = np.unique(np.asarray(shares, np.float64), return_counts=True)
        if not len(values):
            return 0.0
        # The ends belong to what could have been seen, or no mean beyond what was seen is possible.
        seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
        known = sorted({0.0, 1.0, *seen})
        weight = np.array([seen.get(value, 0.0) * worth + UNSEEN for value in known])
        parts = [
            frequencies(np.array(known), weight, self.share(e)) for e in (self.elo0, self.elo1)
        ]
        return float((weight * np.log(parts[1] / parts[0])).sum())

    def verdict(self, shares: npt.ArrayLike, worth: float = 1.0) -> Verdict:
        """Return what is decided, nothing if it is not; see `ratio`."""
        ratio = self.ratio(shares, worth)
        low, high = self.bounds
        return "stronger" if ratio >= high else "weaker" if ratio <= low else ""


def frequencies(values: Floats, weight: Floats, mean: float) -> Floats:
    """Return the frequencies with this mean under which what was seen is most likely.

    They are w / (1 + t (value - mean)) for the one t that gives them the mean (Lagrange).
    """
    share, away = weight / weight.sum(), values - mean
    # Between these ends all frequencies are positive, and the mean falls as t grows.
    low, high = -1 / away.max(), -1 / away.min()
    for _ in range(60):
        middle = (low + high) / 2
        if (share * away / (1 + middle * away)).sum() > 0:
            low = middle
        else:
            high = middle
    found: Floats = share / (1 + (low + high) / 2 * away)
    return found
