"""Values as users give them, held against what there is before the native core sees them."""

from __future__ import annotations

import operator
from typing import Any

from sparring.errors import ConfigError, SparringError

MAX_REPR_CHARS = 60
"""Letters of a value in a message."""


def check_int(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return a whole number that is neither too small nor too large."""
    number = to_int(value)
    if number is None:
        raise ConfigError(f"{name}={short_repr(value)} must be a whole number")
    if low is not None and number < low:
        raise ConfigError(f"{name}={short_repr(number)} must be at least {low}")
    if high is not None and number > high:
        raise ConfigError(f"{name}={short_repr(number)} must be at most {high}")
    return number


def check_index(
    owner: str, things: str, value: Any, count: int, error: type[SparringError] = SparringError
) -> int:
    """Return the number of one of `count` things, such as seats, that the owner has."""
    number = to_int(value)
    if number is None or not 0 <= number < count:
        there = f"{things} 0..{count - 1}" if count else f"no {things}"
        raise error(f"{owner} has {there}, not {short_repr(value)}")
    return number


def check_in_range(thing: str, value: Any, count: int) -> int:
    number = to_int(value)
    if number is None or not 0 <= number < count:
        raise ConfigError(f"{thing} {short_repr(value)} is outside 0..{count - 1}")
    return number


def check_type(name: str, value: Any, kind: type, called: str) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"{name}: {short_repr(value)} is no {called}")


def to_int(value: Any) -> int | None:
    """Return what counts as a whole number as one, None for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def short_repr(value: Any) -> str:
    """Return a value for a message: one line, and not a long one."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= MAX_REPR_CHARS else f"{text[:MAX_REPR_CHARS]}..."
