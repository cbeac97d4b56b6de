"""Which checkpoint of a run is the best: by exact exploitability, by a match, by its win shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sparring.games.rules import Rules

NOBODY = {"update": -1, "strength": -1.0}
"""Before the first evaluation."""
EXPLOITABILITY = "exploitability"


def is_better(
    rules: Rules,
    best: Mapping[str, float],
    found: Mapping[str, float],
    results: Mapping[str, Mapping[str, Any]],
    match: Mapping[str, Any] | None,
) -> bool:
    """Whether an evaluated checkpoint is better than the best one so far.

    found: its strength, and its exploitability where that was measured.
    results: its matches against the bots. match: that against the best one, if it was played.

    Where seats hide something, nobody who is easily exploited is good, whatever the bots say. Else
    it is stronger against the bots, or it wins the match and is not shown to be weaker against
    them: who beats all bots is told apart by matches alone.
    """
    if best["update"] < 0:
        return True
    if rules.hides and EXPLOITABILITY in {*best, *found}:
        return found.get(EXPLOITABILITY, math.inf) < best.get(EXPLOITABILITY, math.inf)
    if found["strength"] > best["strength"]:
        return True
    if match is None or not match["low"] > 1 / rules.seats:
        return False
    halves = [(one["high"] - one["low"]) / 2 for one in results.values()]
    return found["strength"] + math.hypot(*halves) / len(halves) >= best["strength"]
