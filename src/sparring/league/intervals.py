"""How sure a match is: 95 % intervals that count independent deals and not games."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]
Numbers = npt.NDArray[Any]

Z_95 = 1.959964
"""Half the width of a 95 % interval, in standard errors."""


FEWEST = {1: 12.706205, 2: 4.302653, 3: 3.182446, 4: 2.776445, 5: 2.570582}
"""Student's numbers where the series is not exact enough."""


def student_95(degrees: int) -> float:
    """Half the width of a 95 % interval whose spread was estimated with so many degrees of freedom.

    Cornish and Fisher's series (Abramowitz and Stegun 26.7.5).
    """
    if degrees in FEWEST:
        return FEWEST[degrees]
    z, n = Z_95, float(degrees)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / n**power for power, term in enumerate(terms, start=1))


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


def mean_interval(values: Numbers, deal: Numbers, distinct: int) -> Interval:
    """The 95 % interval of a mean over deals, Student's: few say little about their own spread.

    One deal says nothing about how much deals differ: then both ends are nan.
    """
    if distinct < 2:
        return math.nan, math.nan
    mean = float(values.mean(dtype=np.float64))
    half = student_95(distinct - 1) * math.sqrt(deal_variance(values, deal) / distinct)
    return mean - half, mean + half
