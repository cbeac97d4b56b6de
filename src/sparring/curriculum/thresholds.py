"""Strength that ends a phase: what is sure of it, and how it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparring.curriculum.phases import Threshold

ALONE = 1.0
"""The parity of a seat without opponents: then the score counts."""


def sure_of(until: Threshold, results: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The lower end of the 95 % interval that counts, None if this was not measured.

    Without a bot that is named: of the one against whom it is lowest.
    """
    if until.against and until.against not in results:
        return None
    met = [results[until.against]] if until.against else list(results.values())
    lows = [found["score_low" if by_score(until, found) else "low"] for found in met]
    known = [float(low) for low in lows if low is not None]
    return min(known) if known and len(known) == len(lows) else None


def by_score(until: Threshold, found: Mapping[str, Any]) -> bool:
    """Whether the score decides."""
    return until.score or found.get("parity") == ALONE


def wanted(until: Threshold, last: Mapping[str, Any] | None) -> str:
    """What a phase waits for, in words, and how much of it is sure by now."""
    what = f"score {until.value:g}" if until.score else f"win share {until.value:g}"
    against = f" against {until.against}" if until.against else ""
    now = f" (now sure of {last['low']:.3g})" if last else ""
    return f"{what}{against}{now}"
