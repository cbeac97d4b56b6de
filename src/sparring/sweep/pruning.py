"""When a trial is ended before its time: it is behind the median of those that went to the end."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from sparring.sweep.trials import DONE, Trial

LEAST = 3
"""Trials that have to have got as far, whatever the warm-up."""
FIRST_SHARE = 0.2
"""Share of a trial's length in which nothing is pruned: it says little yet."""

Curve = Sequence[tuple[float, float, float]]
"""Evaluations: seconds, decisions, value."""


def why_pruned(curve: Curve, trials: Sequence[Trial], *, warm_up: int, by: int = 0) -> str:
    """Say why a trial is hopeless, "" if it is not.

    It is if the best of its evaluations so far is below the median of what the trials that went to
    the end had at the same place. curve: of the trial. warm_up: trials that have to have ended
    well before; 0: nothing is ever pruned. by: 0 compares at equal seconds, 1 at equal decisions.
    """
    done = [trial for trial in trials if trial.state == DONE and trial.curve]
    if not warm_up or len(done) < max(warm_up, LEAST) or not curve:
        return ""
    place = curve[-1][by]
    if place < FIRST_SHARE * median(trial.curve[-1][by] for trial in done):
        return ""
    there = [value for trial in done if (value := value_at(trial.curve, place, by)) is not None]
    if len(there) < LEAST:
        return ""
    mine, middle = max(value for _, _, value in curve), median(there)
    if mine >= middle:
        return ""
    what = f"{place:,.0f} decisions" if by else f"{place:.0f} s"
    return f"{mine:.3g} after {what}, below the median {middle:.3g} of {len(there)} trials"


def value_at(curve: Curve, place: float, by: int) -> float | None:
    """What a curve was at a place, on the line between two evaluations; None before the first.

    Behind the last one it is what it was there.
    """
    before = [point for point in curve if point[by] <= place]
    after = [point for point in curve if point[by] > place]
    if not before:
        return None
    if not after:
        return before[-1][2]
    (start, one), (end, two) = ((point[by], point[2]) for point in (before[-1], after[0]))
    return one + (two - one) * (place - start) / (end - start)
