"""JSON that nobody vouches for: read within bounds, and held against the shape that it must have.

A shape is a function of a value and of where it stands; it raises a ValueError that says in one
line what is wrong there:

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
"""Lists and tables within each other; nothing of ours has ten."""


def parse_json(data: bytes | str, deepest: int = MAX_DEPTH, **how: Any) -> Any:
    """Read JSON; whatever is wrong with it is a ValueError. how: what `json.loads` is told."""
    try:
        found = json.loads(data, **how)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [found]
    for _ in range(deepest):
        level = [inner for outer in level for inner in nested_values(outer)]
        if not level:
            return found
    raise ValueError("nested too deeply")


def nested_values(value: Any) -> list[Any]:
    """Return the lists and tables that a list or a table holds."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for one in inner if isinstance(one, dict | list)]


def any_value(value: Any, where: str) -> None:
    """Take any value: somebody else looks at it."""


def short_value(value: Any, where: str) -> None:
    """Take any value that a message can show."""
    fits = len(json.dumps(value)) <= MAX_SHOWN_CHARS
    _require(fits, value, where, f"a value of at most {MAX_SHOWN_CHARS} letters")


def string(value: Any, where: str) -> None:
    _require(isinstance(value, str), value, where, "a text")


def short_string(value: Any, where: str) -> None:
    """Demand a text that a message can show."""
    string(value, where)
    short_value(value, where)


def boolean(value: Any, where: str) -> None:
    """Demand true or false."""
    _require(isinstance(value, bool), value, where, "true or false")


def number(value: Any, where: str) -> None:
    """Demand a number that fits 64 bits; infinity is one, NaN is none."""
    fits = (
        not math.isnan(value)
        if isinstance(value, float)
        else type(value) is int and abs(value) <= MAX_INT
    )
    _require(fits, value, where, "a number")


def finite_number(value: Any, where: str) -> None:
    """Demand a number that is not infinite."""
    number(value, where)
    _require(math.isfinite(value), value, where, "a finite number")


def integer(least: int = 0, most: int = MAX_INT) -> Validator:
    """Demand a whole number within bounds."""

    def shape(value: Any, where: str) -> None:
        fits = type(value) is int and least <= value <= most
        _require(fits, value, where, f"a whole number from {least} to {most}")

    return shape


def string_matching(pattern: str, kind: str) -> Validator:
    """Demand a text of a certain form. kind: what such texts are."""

    def shape(value: Any, where: str) -> None:
        fits = isinstance(value, str) and re.fullmatch(pattern, value) is not None
        _require(fits, value, where, kind)

    return shape


def list_of(each: Validator, most: int = MAX_INT) -> Validator:
    """Demand a list, its members of one shape."""

    def shape(value: Any, where: str) -> None:
        _require(isinstance(value, list), value, where, "a list")
        _require(len(value) <= most, value, where, f"a list of at most {most}")
        for at, inner in enumerate(value):
            each(inner, f"{where}[{at}]")

    return shape


def mapping_of(each: Validator, name: Validator = any_value, most: int = MAX_INT) -> Validator:
    """Demand a table with names of any kind, its values of one shape."""

    def shape(value: Any, where: str) -> None:
        _require(isinstance(value, dict), value, where, "a table")
        _require(len(value) <= most, value, where, f"a table of at most {most}")
        for key, inner in value.items():
            name(key, f"a name in {where or 'it'}")
            each(inner, _join_path(where, key))

    return shape


def object_with(
    needed: Mapping[str, Validator],
    maybe: Mapping[str, Validator] | None = None,
    *,
    closed: bool = False,
) -> Validator:
    """Demand a table with these entries.

    maybe: those that may be missing. closed: there are no others; else they are left alone.
    """

    def shape(value: Any, where: str) -> None:
        _require(isinstance(value, dict), value, where, "a table")
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

    return shape


def optional(each: Validator) -> Validator:
    """Demand null, or a value of that shape."""

    def shape(value: Any, where: str) -> None:
        if value is not None:
            each(value, where)

    return shape


def _join_path(where: str, key: str) -> str:
    name = key if re.fullmatch(r"[\w.-]{1,40}", key) else shortened(key)
    return f"{where}.{name}" if where else name


def _require(fits: bool, value: Any, where: str, wanted: str) -> None:
    if not fits:
        raise ValueError(f"{where or 'it'} is {shortened(value)}, not {wanted}")
