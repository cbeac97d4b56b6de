"""Stops a match as soon as it is decided: the sequential probability ratio test over deals.

Wald's test of elo0 against elo1, in the generalised form that chess engines are tested with: the
outcomes of a deal have whatever frequencies make what was seen most likely, once with the mean that
elo0 would have, once with that of elo1. It looks at deals and not at games, because the games of a
deal share their cards: what one seat gains from them the other one loses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

Floats = npt.NDArray[np.float64]
Verdict = Literal["stronger", "weaker", ""]

UNSEEN = 1e-3
"""Deals of outcomes that were never seen: a match that was won throughout stays finite."""


@dataclass(frozen=True)
class Sprt:
    """A test whether a player is at most elo0 or at least elo1 stronger than its opponents."""

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
