"""95 % intervals of matches, which count independent deals and not games; a sequential test."""

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
"""Skewness over the square root of the deals above which a mean's interval is inaccurate."""
MIN_SERIES_DEGREES = 6
"""Degrees of freedom below which the series of Student's quantiles is not exact enough."""
GRID = 20_001
UNSEEN = 1e-3
"""Pseudo-count of outcomes that did not occur: keeps a match that was always won finite."""


@lru_cache
def student_95(degrees: float) -> float:
    """Return Student's quantile: half the width of a 95 % interval in standard errors.

    degrees: of freedom; may be a fraction, as Welch's are.
    Cornish-Fisher series (Abramowitz and Stegun 26.7.5), for few degrees the integral itself.
    """
    if degrees < MIN_SERIES_DEGREES:
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
    """Return Student's quantile by numerical integration of the density.

    With t = sqrt(degrees) tan(angle), the probability between 0 and t is the integral of
    cos(angle) ** (degrees - 1), divided by that up to a right angle.
    """
    angle = np.linspace(0.0, np.pi / 2, GRID)
    density = np.cos(angle).clip(0.0) ** (degrees - 1)
    below = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return math.sqrt(degrees) * math.tan(float(np.interp(0.95, below / below[-1], angle)))


def welch_95(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return half the width of Welch's 95 % interval of a difference of means.

    None if a side has a single value. A bootstrap would be too narrow for few values.
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
    """Return Wilson's 95 % interval of a share of `games` independent games (may be a fraction)."""
    # Unlike a normal interval it keeps its width at 0 and 100 %.
    weight = Z_95**2 / games
    middle = (share + weight / 2) / (1 + weight)
    half = Z_95 / (1 + weight) * math.sqrt((share * (1 - share) + weight / 4) / games)
    return max(middle - half, 0.0) if share else 0.0, min(middle + half, 1.0) if share < 1 else 1.0


def deal_variance(values: Numbers, deal: Numbers) -> float:
    """Return the variance of the means of deals; nan for a single deal.

    deal: [games], the deal of every game, from 0. A deal with fewer games weighs less.
    """
    deals = int(deal.max()) + 1
    if deals < 2:
        return math.nan
    centered = values.astype(np.float64) - float(values.mean(dtype=np.float64))
    by_deal = np.bincount(deal, centered, deals) * (deals / len(values))
    return float((by_deal**2).sum() / (deals - 1))


def share_interval(share: Numbers, deal: Numbers, distinct: int) -> Interval:
    """Return the 95 % interval of a win share: Wilson's for the effective number of games.

    distinct: number of distinct deals. A deal counts as one game if its outcome is the same from
        all seats, and as more if good and bad seats compensate each other.

    The effective games per deal are (p (1 - p) + c) / (v + c), where v is the variance of the
    deals' means and c = z^2 / (2 * distinct) keeps them near one where v is uncertain: at 0 and
    100 %, and where all deals had the same outcome.
    """
    variance = deal_variance(share, deal) if distinct > 1 else math.nan
    return deal_share_interval(float(share.mean(dtype=np.float64)), variance, distinct)


def deal_share_interval(mean: float, variance_of_deals: float, distinct: int) -> Interval:
    """Return the interval of `share_interval` from the mean and the variance of the deals' means.

    variance_of_deals: nan if unknown.
    """
    independent = mean * (1 - mean)
    c = Z_95**2 / (2 * distinct)
    unknown = math.isnan(variance_of_deals)
    games_per_deal = 1.0 if unknown else (independent + c) / (variance_of_deals + c)
    return wilson(mean, distinct * games_per_deal)


def is_skewed(values: Numbers, deal: Numbers) -> bool:
    """Whether the interval of a mean over deals is probably too narrow.

    Rare extreme deals move the mean: the more so, the larger the skewness of the deals is compared
    with the square root of their number.
    """
    deals = int(deal.max()) + 1
    games = np.bincount(deal, minlength=deals)
    centered = np.bincount(deal, values.astype(np.float64), deals) / np.maximum(games, 1)
    centered -= centered.mean()
    spread = math.sqrt(float((centered**2).mean()))
    if not spread:
        return False
    return abs(float((centered**3).mean())) / spread**3 > SKEWED * math.sqrt(deals)


def mean_interval(values: Numbers, deal: Numbers, distinct: int) -> Interval:
    """Return Student's 95 % interval of a mean over deals; (nan, nan) for a single deal."""
    if distinct < 2:
        return math.nan, math.nan
    mean = float(values.mean(dtype=np.float64))
    half = student_95(distinct - 1) * math.sqrt(deal_variance(values, deal) / distinct)
    return mean - half, mean + half


@dataclass(frozen=True)
class Sprt:
    """Sequential probability ratio test over deals: stops a match as soon as it is decided.

    Wald's test of elo0 against elo1 in the generalized form (GSPRT) of chess engine testing: the
    outcomes of a deal have the maximum-likelihood frequencies, once with the mean of elo0, once
    with that of elo1. It counts deals and not games, because the games of a deal share their cards.
    """

    elo0: float = -10.0
    elo1: float = 10.0
    alpha: float = 0.05
    """Probability that a player of elo0 is called stronger."""
    beta: float = 0.05
    """Probability that a player of elo1 is called weaker."""
    seats: int = 2
    """The player has one of them, its opponents the others."""

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise ConfigError(f"elo0 {self.elo0:g} must be below elo1 {self.elo1:g}")
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not 0 < value < 0.5:
                raise ConfigError(f"{name} {value:g} must be above 0 and below 0.5")

    @property
    def bounds(self) -> tuple[float, float]:
        """Log-likelihood ratios below and above which the match is decided."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def share(self, elo: float) -> float:
        """Return the expected win share of a player `elo` points above each opponent."""
        return 1 / (1 + (self.seats - 1) * 10 ** (-elo / 400))

    def ratio(self, shares: npt.ArrayLike, distinct: float = 1.0) -> float:
        """Return the log-likelihood ratio after some deals.

        shares: [deals], mean win share of the player over the games of each deal.
        distinct: share of the deals that are distinct.
        """
        values, counts = np.unique(np.asarray(shares, np.float64), return_counts=True)
        if not len(values):
            return 0.0
        # 0 and 1 are possible outcomes too: without them no mean beyond the observed ones is.
        observed = dict(zip(values.tolist(), counts.tolist(), strict=True))
        outcomes = sorted({0.0, 1.0, *observed})
        weight = np.array([observed.get(value, 0.0) * distinct + UNSEEN for value in outcomes])
        under_elo0, under_elo1 = (
            frequencies(np.array(outcomes), weight, self.share(e)) for e in (self.elo0, self.elo1)
        )
        return float((weight * np.log(under_elo1 / under_elo0)).sum())

    def verdict(self, shares: npt.ArrayLike, distinct: float = 1.0) -> Verdict:
        """Return the decision, "" if there is none yet; see `ratio`."""
        ratio = self.ratio(shares, distinct)
        low, high = self.bounds
        return "stronger" if ratio >= high else "weaker" if ratio <= low else ""


def frequencies(values: Floats, weight: Floats, mean: float) -> Floats:
    """Return the maximum-likelihood frequencies with this mean.

    They are w / (1 + t (value - mean)) for the one t that gives them the mean (Lagrange).
    """
    share, offset = weight / weight.sum(), values - mean
    # Between these ends all frequencies are positive, and the mean falls as t grows.
    low, high = -1 / offset.max(), -1 / offset.min()
    for _ in range(60):
        middle = (low + high) / 2
        if (share * offset / (1 + middle * offset)).sum() > 0:
            low = middle
        else:
            high = middle
    result: Floats = share / (1 + (low + high) / 2 * offset)
    return result
