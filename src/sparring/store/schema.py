"""Validation of untrusted JSON.

A validator is a function of a value and its path; it raises a ValueError of one line:

    SIZES = table({"size": whole()}, {"name": text})
    SIZES({"size": -1}, "")  # ValueError: size is -1, not a whole number from 0 to ...
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from sparring.config.ranges import shortened

Validator = Callable[[Any, str], None]

MAX_INT = 2**63 - 1
MAX_SHOWN_CHARS = 400
MAX_DEPTH = 100
"""Deepest nesting of lists and objects; files of sparring stay below 10."""


def parse_json(data: bytes | str, max_depth: int = MAX_DEPTH, **options: Any) -> Any:
    """Parse JSON; raises ValueError. options: arguments of `json.loads`."""
    try:
        found = json.loads(data, **options)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [found]
    for _ in range(max_depth):
        level = [inner for outer in level for inner in nested_values(outer)]
        if not level:
            return found
    raise ValueError("nested too deeply")


def nested_values(value: Any) -> list[Any]:
    """Return the lists and objects directly in a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for one in inner if isinstance(one, dict | list)]


def any_value(value: Any, where: str) -> None:
    """Accept any value."""


def short_value(value: Any, where: str) -> None:
    """Accept a value that fits into a message."""
    fits = len(json.dumps(value)) <= MAX_SHOWN_CHARS
    _require(fits, value, where, f"a value of at most {MAX_SHOWN_CHARS} letters")


def string(value: Any, where: str) -> None:
    _require(isinstance(value, str), value, where, "a text")


def short_string(value: Any, where: str) -> None:
    """Accept a string that fits into a message."""
    string(value, where)
    short_value(value, where)


def boolean(value: Any, where: str) -> None:
    _require(isinstance(value, bool), value, where, "true or false")


def number(value: Any, where: str) -> None:
    """Accept numbers of 64 bits, with infinity, without NaN."""
    fits = (
        not math.isnan(value)
        if isinstance(value, float)
        else type(value) is int and abs(value) <= MAX_INT
    )
    _require(fits, value, where, "a number")


def finite_number(value: Any, where: str) -> None:
    """Accept finite numbers."""
    number(value, where)
    _require(math.isfinite(value), value, where, "a finite number")


def integer(low: int = 0, high: int = MAX_INT) -> Validator:
    def validate(value: Any, where: str) -> None:
        fits = type(value) is int and low <= value <= high
        _require(fits, value, where, f"a whole number from {low} to {high}")

    return validate


def string_matching(pattern: str, kind: str) -> Validator:
    """Accept strings that match a pattern. kind: description for errors."""

    def validate(value: Any, where: str) -> None:
        fits = isinstance(value, str) and re.fullmatch(pattern, value) is not None
        _require(fits, value, where, kind)

    return validate


def list_of(each: Validator, max_items: int = MAX_INT) -> Validator:
    def validate(value: Any, where: str) -> None:
        _require(isinstance(value, list), value, where, "a list")
        _require(len(value) <= max_items, value, where, f"a list of at most {max_items}")
        for at, inner in enumerate(value):
            each(inner, f"{where}[{at}]")

    return validate


def mapping_of(each: Validator, name: Validator = any_value, max_items: int = MAX_INT) -> Validator:
    """Accept objects whose values (and keys) pass a validator."""

    def validate(value: Any, where: str) -> None:
        _require(isinstance(value, dict), value, where, "an object")
        _require(len(value) <= max_items, value, where, f"an object of at most {max_items}")
        for key, inner in value.items():
            name(key, f"a name in {where or 'it'}")
            each(inner, _join_path(where, key))

    return validate


def object_with(
    needed: Mapping[str, Validator],
    maybe: Mapping[str, Validator] | None = None,
    *,
    closed: bool = False,
) -> Validator:
    """Accept objects with these entries.

    maybe: optional entries. closed: refuse other entries.
    """

    def validate(value: Any, where: str) -> None:
        _require(isinstance(value, dict), value, where, "an object")
        for key, each in needed.items():
            if key not in value:
                raise ValueError(f"{_join_path(where, key)} is missing")
            each(value[key], _join_path(where, key))
        for key, each in (maybe or {}).items():
            if key in value:
                each(value[key], _join_path(where, key))
        for key in value if closed else ():
            if key not in needed and key not in (maybe or {}):
                raise ValueError(f"{_join_path(where, key)} is unknown")

    return validate


def optional(each: Validator) -> Validator:
    def validate(value: Any, where: str) -> None:
        if value is not None:
            each(value, where)

    return validate


def _join_path(where: str, key: str) -> str:
    name = key if re.fullmatch(r"[\w.-]{1,40}", key) else shortened(key)
    return f"{where}.{name}" if where else name


def _require(fits: bool, value: Any, where: str, wanted: str) -> None:
    if not fits:
        raise ValueError(f"{where or 'it'} is {shortened(value)}, not {wanted}")
