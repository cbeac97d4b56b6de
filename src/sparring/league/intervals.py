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
    """The 95 % interval of a mean over many deals, where the normal approximation is good.

    One deal says nothing about how much deals differ: then both ends are nan.
    """
    if distinct < 2:
        return math.nan, math.nan
    mean = float(values.mean(dtype=np.float64))
    half = Z_95 * math.sqrt(deal_variance(values, deal) / distinct)
    return mean - half, mean + half
