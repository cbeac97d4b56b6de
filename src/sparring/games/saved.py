"""Saved games: one line of JSON as a header, and the state bytes after it.

The bytes may be untrusted. This module validates the header; the native core validates the state.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from sparring.errors import ConfigError, StateError
from sparring.games.arguments import short_repr
from sparring.games.rules import Rules
from sparring.games.seeds import MAX_SEED, MIN_SEED

MAX_HEADER = 64 * 2**10
MAX_LEVELS = 4
MAX_NAME = 200


def add_header(rules: Rules, more: Mapping[str, Any], body: bytes) -> bytes:
    """Prepend a JSON header with the rules and the hash of the state."""
    header = {
        "game": rules.name,
        "rules_version": rules.rules_version,
        "config": rules.config,
        **more,
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return json.dumps(header).encode() + b"\n" + body


def split_header(raw: bytes) -> tuple[Header, bytes]:
    """Split header and state; raises StateError if they are damaged."""
    if not isinstance(raw, bytes):
        raise StateError(f"a saved state is bytes, not {short_repr(raw)}")
    head, _, body = raw.partition(b"\n")
    try:
        found = json.loads(head) if len(head) <= MAX_HEADER else None
    except (ValueError, RecursionError):
        found = None
    if (
        not isinstance(found, dict)
        or "sha256" not in found
        or not is_nested_at_most(found, MAX_LEVELS)
    ):
        raise StateError("these bytes are not a saved state")
    if found["sha256"] != hashlib.sha256(body).hexdigest():
        raise StateError("the saved state is damaged: its hash does not match; take another copy")
    return Header(found), body


class Header:
    """Header of saved games. Missing or invalid entries raise StateError."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def entry(
        self, name: str, wanted: str, fits: Callable[[Any], bool], default: Any = None
    ) -> Any:
        """Return a valid entry. wanted: description for errors; default: default.

        An entry without a default is required.
        """
        value = self._found.get(name, default)
        if value is None or not fits(value):
            raise StateError(f"the saved state has {name} {shorten(value)}; it needs {wanted}")
        return value

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        wanted = f"a whole number in {low}..{high}"
        return int(self.entry(name, wanted, lambda n: is_int(n) and low <= n <= high, default))

    def seed(self) -> int:
        """Return the seed of the games."""
        return self.whole("seed", MIN_SEED, MAX_SEED)

    def weights(self, count: int) -> list[float]:
        wanted = f"a list of {count} finite numbers"
        found = self.entry(
            "weights", wanted, lambda value: is_list_of(is_number, value) and len(value) == count
        )
        return [float(weight) for weight in found]

    def setup(self) -> tuple[int, ...]:
        """Return the numbers of `State.set_up`."""
        wanted = "a list of whole numbers of 64 bits"
        return tuple(self.entry("setup", wanted, lambda value: is_list_of(is_int64, value), ()))

    def rules(self) -> Rules:
        """Return the rules of the games; raises StateError for other versions."""
        name = self.entry("game", "the name of a game", is_short_text)
        config = self.entry("config", "flags by name", lambda value: isinstance(value, dict))
        try:
            rules = Rules(name, config)
        except ConfigError as error:
            raise StateError(f"the saved state is of no game that is here: {error}") from None
        self.check_version(rules)
        return rules

    def check_version(self, rules: Rules) -> None:
        """Raise StateError if the version of the rules differs."""
        saved = self._found.get("rules_version")
        if saved != rules.rules_version:
            raise StateError(
                f"{rules.name} was saved under rules version {shorten(saved)}, this is version "
                f"{rules.rules_version}; replay the actions from a new start"
            )

    def check_equal(self, expected: Mapping[str, Any]) -> None:
        """Raise StateError if entries differ from those of a pool."""
        for key, value in expected.items():
            found = self._found.get(key, 0 if key == "memory" else None)
            if found != value:
                raise StateError(f"the state has {key} {shorten(found)}, this pool has {value}")


def is_nested_at_most(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested at most `levels` deep."""
    if not isinstance(value, (list, dict)):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(is_nested_at_most(one, levels - 1) for one in inner)


def is_short_text(value: Any) -> bool:
    """Whether a value is text short enough for a name."""
    return isinstance(value, str) and len(value) <= MAX_NAME


def is_list_of(fits: Callable[[Any], bool], value: Any) -> bool:
    """Whether a value is a list of valid elements."""
    return isinstance(value, (list, tuple)) and all(map(fits, value))


def is_int(value: Any) -> bool:
    """Whether a value is an int and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_int64(value: Any) -> bool:
    """Whether a value is an int of 64 bits."""
    return is_int(value) and -(2**63) <= value < 2**63


def is_number(value: Any) -> bool:
    """Whether a value is a number within the range of float32."""
    if is_int(value):
        return bool(abs(value) < 2**53)
    return isinstance(value, float) and math.isfinite(value) and abs(value) < 3e38


def shorten(value: Any) -> str:
    """Return the first characters of a value's repr."""
    text = ascii(value)
    return text if len(text) <= 40 else text[:40] + "..."
