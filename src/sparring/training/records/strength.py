"""How strong a run is: one figure per game, from one place. Needs no torch.

It is the share of the games that were won against the game's best bot, or the return where a seat
plays alone. Whoever else was met does not change it, so that all runs of a game can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparring.games.rules import Rules
from sparring.league.results import ALONE
from sparring.pools.custom.cache import RANDOM, is_custom
from sparring.training.records.metrics import Curve, MetricsError, read
from sparring.training.status import PREVIOUS_BEST

RETURN = "return"
"""What strength is called where a seat plays alone."""
SHARE = ("win", "low", "high")
SCORE = ("score", "score_low", "score_high")
"""Where a result has the figure and its 95 % interval."""
FIGURES = ("win", "low", "high", "score")
"""Of an evaluation, as curves have them."""
MIN_HOURS, MIN_MILLIONS = 0.1, 0.1
"""Between two evaluations; what is gained in less says nothing about an hour, or a million."""


@dataclass(frozen=True)
class Strength:
    """A figure, its 95 % interval where that is known, and whom it was measured against."""

    value: float
    low: float | None
    high: float | None
    against: str
    """A bot, or ALONE."""

    @property
    def measure(self) -> str:
        """What the figure is called: the bot's name, or RETURN."""
        return measure_name(self.against)

    @property
    def figure(self) -> str:
        return written(self.value, self.measure)

    @property
    def interval(self) -> str:
        """The interval as text, "" without one."""
        if self.low is None or self.high is None:
            return ""
        return f"{written(self.low, self.measure)} .. {written(self.high, self.measure)}"

    def plain(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "value": self.value,
            "low": self.low,
            "high": self.high,
        }


def measure_name(against: str) -> str:
    return RETURN if against == ALONE else against


def written(value: float, measure: str) -> str:
    """Return a figure as text: a return with two digits, a share with three."""
    return f"{value:,.2f}" if measure == RETURN else f"{value:.3f}"


def best_opponent(rules: Rules) -> str:
    """Return whom strength is measured against: the best bot, ALONE, or "" without any."""
    if rules.seats == 1:
        return ALONE
    if is_custom(rules):
        return RANDOM
    return rules.bots[-1] if rules.bots else ""


def strength_in(results: Mapping[str, Any], against: str) -> Strength | None:
    """Return the strength in summaries by opponent; None if that opponent was not met."""
    found = results.get(against)
    if not isinstance(found, Mapping):
        return None
    value, low, high = (number(found.get(key)) for key in keys(against))
    return None if value is None else Strength(value, low, high, against)


def strengths_over(curves: Mapping[str, Curve], against: str) -> dict[int, Strength]:
    """Return the strength that every evaluation found, by update."""
    lines = [at_updates(curves.get(f"eval/{against}/{key}")) for key in keys(against)]
    return {
        at: Strength(value, lines[1].get(at), lines[2].get(at), against)
        for at, value in sorted(lines[0].items())
    }


def keys(against: str) -> tuple[str, str, str]:
    """Return where results and curves have the figure and its interval."""
    return SCORE if against == ALONE else SHARE


def at_updates(curve: Curve | None) -> dict[int, float]:
    if curve is None:
        return {}
    at, _, values = curve
    there = np.isfinite(values)
    return dict(zip(at[there].tolist(), values[there].tolist(), strict=True))


def number(value: Any) -> float | None:
    """Return a number that was read somewhere; None for anything else."""
    known = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if known else None


def gained_per(spent: Any, score: Any, least: float) -> float | None:
    """Return what was gained per unit from the first evaluation to the last.

    None where they are less than `least` units apart: a minute says nothing about an hour.
    """
    if len(score) < 2 or spent[-1] - spent[0] < least:
        return None
    return float((score[-1] - score[0]) / (spent[-1] - spent[0]))


def opponents_of(curves: Mapping[str, Curve]) -> tuple[str, ...]:
    """Return the opponents of a run's evaluations, without its own past."""
    words = (name.split("/") for name in curves)
    ends = ("win", "score")
    found = dict.fromkeys("/".join(w[1:-1]) for w in words if w[0] == "eval" and w[-1] in ends)
    return tuple(name for name in found if name and name != PREVIOUS_BEST)


def last_evaluation(run: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of the last evaluation by opponent; {} where there is none to be read."""
    try:
        curves = read(run, "eval/*")
    except (MetricsError, OSError):
        return {}
    found = {
        name: {
            figure: float(curves[f"eval/{name}/{figure}"][2][-1])
            for figure in FIGURES
            if len(curves.get(f"eval/{name}/{figure}", ((), (), ()))[2])
        }
        for name in opponents_of(curves)
    }
    return {name: figures for name, figures in found.items() if figures}
