"""Time at which a curve of strength reaches a target, for one curve and for several."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median
from typing import Any

import numpy as np


def reached_after(seconds: Sequence[float], wins: Sequence[float], target: float) -> float | None:
    """Return when a win share was there to stay, between two measurements on the line between them.

    One measurement alone may have been lucky: the next one has to be there as well, unless it was
    the last. What is there at the first measurement counts from then on.
    """
    for at, win in enumerate(wins):
        if win < target or (at + 1 < len(wins) and wins[at + 1] < target):
            continue
        if at == 0:
            return seconds[0]
        share = (target - wins[at - 1]) / (win - wins[at - 1]) if win > wins[at - 1] else 1.0
        return seconds[at - 1] + min(max(share, 0.0), 1.0) * (seconds[at] - seconds[at - 1])
    return None


def mean_curve(curves: Sequence[Sequence[dict[str, float]]], step: float) -> list[dict[str, float]]:
    """The mean over seeds at every moment that all of them have been measured around."""
    first = max(curve[0]["seconds"] for curve in curves)
    last = min(curve[-1]["seconds"] for curve in curves)
    moments = [first, *np.arange(step, last, step)[np.arange(step, last, step) > first], last]
    told = []
    for moment in dict.fromkeys(map(float, moments)):
        wins = [
            np.interp(moment, [one["seconds"] for one in curve], [one["win"] for one in curve])
            for curve in curves
        ]
        told.append({"seconds": moment, "win": float(mean(wins))})
    return told


def times_to(curves: Sequence[Sequence[dict[str, float]]], target: float) -> list[float | None]:
    """When each of some curves reached a win share."""
    return [
        reached_after([one["seconds"] for one in curve], [one["win"] for one in curve], target)
        for curve in curves
    ]


def typical(times: Sequence[float | None]) -> float | None:
    """The median over seeds, in which one that never arrived is later than all others."""
    found = median(float("inf") if time is None else time for time in times)
    return None if found == float("inf") else found


def described(runs: Sequence[dict[str, Any]], targets: Sequence[float]) -> dict[str, Any]:
    """Sum up the runs of one contestant: strength at the end, speed, and times to targets."""
    curves = [run["curve"] for run in runs]
    ends = [curve[-1]["win"] for curve in curves]
    times = {f"{target:.3f}": times_to(curves, target) for target in targets}
    return {
        "win": mean(ends),
        "wins": ends,
        "samples_per_s": mean(run["samples_per_s"] for run in runs),
        "times": times,
        "typical": {name: typical(found) for name, found in times.items()},
    }
