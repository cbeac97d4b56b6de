"""Which trained trial is most like settings that are to be tried: its weights are a warm start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from sparring.sweep.space import CHOICE, PERMUTATION, Range
from sparring.sweep.trials import DONE, Trial

SHAPING = ("net", "hierarchy", "hierarchy.on", "algo", "dqn.dueling", "sac.critic_hidden")
"""Ranges that decide what weights there are; so does everything under net."""


def nearest_trained(
    settings: Mapping[str, Any], trials: Sequence[Trial], ranges: Mapping[str, Range]
) -> Trial | None:
    """The trial that was trained to its end and is nearest, None where none has weights that fit.

    Of several at the same distance the best one, and of those the first.
    """
    fitting = [
        trial
        for trial in trials
        if trial.state == DONE and trial.run and same_shapes(settings, trial.settings, ranges)
    ]

    def order(trial: Trial) -> tuple[float, float, int]:
        value = -math.inf if trial.value is None or math.isnan(trial.value) else trial.value
        return distance(settings, trial.settings, ranges), -value, trial.number

    return min(fitting, key=order, default=None)


def distance(one: Mapping[str, Any], two: Mapping[str, Any], ranges: Mapping[str, Range]) -> float:
    """How far apart two settings are, every range being 1 long."""
    return math.hypot(*(apart(name, one, two, range_) for name, range_ in ranges.items()))


def apart(name: str, one: Mapping[str, Any], two: Mapping[str, Any], range_: Range) -> float:
    """How far apart two values of a range are, between 0 and 1.

    Numbers by their places, which are those of logarithms where the range says so; choices are the
    same or not; orders by the share of pairs that stand the other way round (Kendall's tau).
    """
    mine, theirs = one[name], two[name]
    if range_.kind == CHOICE:
        return float(mine != theirs)
    if range_.kind == PERMUTATION:
        return exchanged(mine, theirs)
    return abs(range_.place(mine) - range_.place(theirs))


def exchanged(one: Sequence[Any], two: Sequence[Any]) -> float:
    """The share of pairs that two orders of the same items have the other way round."""
    places = [list(two).index(item) for item in one]
    pairs = list(combinations(places, 2))
    return sum(first > second for first, second in pairs) / max(len(pairs), 1)


def same_shapes(
    one: Mapping[str, Any], two: Mapping[str, Any], ranges: Mapping[str, Range]
) -> bool:
    """Whether two settings have networks of the same shape, as far as ranges decide it."""
    return all(one[name] == two[name] for name in ranges if shapes_net(name))


def shapes_net(name: str) -> bool:
    """Whether a setting decides what weights there are."""
    return name in SHAPING or name.startswith("net.") or ".net." in name
