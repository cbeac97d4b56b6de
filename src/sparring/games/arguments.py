"""Checks of arguments before the native core gets them."""

from __future__ import annotations

import operator
from typing import Any

from sparring.errors import ConfigError, SparringError

MAX_REPR_CHARS = 60
"""Longest text of a value in a message."""


def check_int(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return an integer within bounds; raises ConfigError."""
    number = to_int(value)
    if number is None:
        raise ConfigError(f"{name}={short_repr(value)} must be a whole number")
    if low is not None and number < low:
        raise ConfigError(f"{name}={short_repr(number)} must be at least {low}")
    if high is not None and number > high:
        raise ConfigError(f"{name}={short_repr(number)} must be at most {high}")
    return number


def check_index(
    owner: str, items: str, value: Any, count: int, error: type[SparringError] = SparringError
) -> int:
    """Return an index below `count`; raises an error such as "NAME has seats 0..3, not 7"."""
    number = to_int(value)
    if number is None or not 0 <= number < count:
        allowed = f"{items} 0..{count - 1}" if count else f"no {items}"
        raise error(f"{owner} has {allowed}, not {short_repr(value)}")
    return number


def check_in_range(name: str, value: Any, count: int) -> int:
    number = to_int(value)
    if number is None or not 0 <= number < count:
        raise ConfigError(f"{name} {short_repr(value)} is outside 0..{count - 1}")
    return number


def check_type(name: str, value: Any, kind: type, type_name: str) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"{name}: {short_repr(value)} is no {type_name}")


def to_int(value: Any) -> int | None:
    """Return an integer, None for values of other types."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def short_repr(value: Any) -> str:
    """Return a value as one short line."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= MAX_REPR_CHARS else f"{text[:MAX_REPR_CHARS]}..."
