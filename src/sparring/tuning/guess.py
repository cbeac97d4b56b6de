"""Guesses which point is worth a try, from all that were seen.

The logarithm of the gain over the preset as a parabola over doublings of every knob, with a term
for each two that hold each other back: Bayes's linear regression, in closed form. It only says what
is looked at next; what is claimed was timed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sparring.tuning.knobs import Knob, Point

Floats = npt.NDArray[np.float64]
SLOPE, BEND, BEND_SPREAD, CROSS, SWITCH = 0.12, -0.03, 0.05, 0.03, 0.25
"""What is thought before anything was seen, per doubling: how steep, how bent (more of anything
stops to pay some time), how much two depend on each other; and what a switch may bring."""
MISFIT = 0.03
"""How far a parabola is off."""


class Guess:
    """What is thought of all points."""

    def __init__(self, knobs: Sequence[Knob]) -> None:
        """Know nothing yet."""
        self.knobs = knobs
        numeric = [len(knob.values) > 2 for knob in knobs]
        self.bent = [at for at, many in enumerate(numeric) if many]
        pairs = math.comb(len(knobs), 2)
        self.mean = np.array([0.0] * len(knobs) + [BEND] * len(self.bent) + [0.0] * pairs)
        slopes = [SLOPE if many else SWITCH for many in numeric]
        spread = np.array(slopes + [BEND_SPREAD] * len(self.bent) + [CROSS] * pairs)
        self.precision: Floats = np.diag(1 / spread**2)
        self.weighted: Floats = self.precision @ self.mean
        self._solve()

    def learn(self, point: Point, gain: float, variance: float) -> None:
        """Take in the logarithm of a gain over the preset."""
        row, weight = self.features(point), 1 / (variance + MISFIT**2)
        self.precision = self.precision + weight * np.outer(row, row)
        self.weighted = self.weighted + weight * gain * row
        self._solve()

    def gain(self, point: Point) -> tuple[float, float]:
        """What is expected of a point, and how far that may be off."""
        row = self.features(point)
        return float(row @ self.mean), math.sqrt(float(row @ self.spread @ row) + MISFIT**2)

    def improvement(self, point: Point, best: float) -> float:
        """By how much a point is expected to be better than the best, where it is."""
        mean, spread = self.gain(point)
        z = (mean - best) / spread
        below = 0.5 * (1 + math.erf(z / math.sqrt(2)))
        return (mean - best) * below + spread * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def features(self, point: Point) -> Floats:
        """A point in numbers: doublings, their squares, their products."""
        x = [turned(knob, point) for knob in self.knobs]
        squares = [x[at] * x[at] for at in self.bent]
        return np.array(x + squares + [a * b for a, b in combinations(x, 2)])

    def _solve(self) -> None:
        self.spread = np.linalg.inv(self.precision).astype(np.float64)
        self.mean = self.spread @ self.weighted


def turned(knob: Knob, point: Point) -> float:
    """How far a knob is from where it began: doublings of numbers, places of other values."""
    value, start = point[knob.name], knob.start
    if type(value) is int and type(start) is int and value > 0 and start > 0:
        return math.log2(value / start)
    return float(knob.values.index(value) - knob.values.index(start))
