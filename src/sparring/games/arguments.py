"""Values as users give them, held against what there is before the native core sees them."""

from __future__ import annotations

import operator
from typing import Any

from sparring.errors import ConfigError, SparringError

MAX_SHOWN = 60
"""Letters of a value in a message."""


def whole(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return a whole number that is neither too small nor too large."""
    number = as_whole(value)
    if number is None:
        raise ConfigError(f"{name}={shown(value)} must be a whole number")
    if low is not None and number < low:
        raise ConfigError(f"{name}={shown(number)} must be at least {low}")
    if high is not None and number > high:
        raise ConfigError(f"{name}={shown(number)} must be at most {high}")
    return number


def one_of(
    owner: str, things: str, value: Any, count: int, error: type[SparringError] = SparringError
) -> int:
    """Return the number of one of `count` things, such as seats, that the owner has."""
    number = as_whole(value)
    if number is None or not 0 <= number < count:
        there = f"{things} 0..{count - 1}" if count else f"no {things}"
        raise error(f"{owner} has {there}, not {shown(value)}")
    return number


def inside(thing: str, value: Any, count: int) -> int:
    number = as_whole(value)
    if number is None or not 0 <= number < count:
        raise ConfigError(f"{thing} {shown(value)} is outside 0..{count - 1}")
    return number


def of_kind(name: str, value: Any, kind: type, called: str) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"{name}: {shown(value)} is no {called}")


def as_whole(value: Any) -> int | None:
    """Return what counts as a whole number as one, None for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def shown(value: Any) -> str:
    """Return a value for a message: one line, and not a long one."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
