"""Saved games as bytes: one line of JSON that says what they are, and the bytes behind it.

The bytes may come from anybody. The line is read here, entry by entry; what is behind it the native
core checks before a game goes on from it.
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
    """Put a readable header in front of state bytes: what they are, and their hash."""
    header = {
        "game": rules.name,
        "rules_version": rules.rules_version,
        "config": rules.config,
        **more,
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return json.dumps(header).encode() + b"\n" + body


def split_header(raw: bytes) -> tuple[Header, bytes]:
    """Split what `seal` wrote and check that nothing was lost on the way."""
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
    """The first line of saved games. An entry that is missing or odd is a StateError."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def entry(self, name: str, wanted: str, fits: Callable[[Any], bool], usual: Any = None) -> Any:
        """Return an entry that fits. wanted: what it should be, in words; usual: if it is left out.

        An entry that has no usual value has to be there.
        """
        value = self._found.get(name, usual)
        if value is None or not fits(value):
            raise StateError(f"the saved state has {name} {shorten(value)}; it needs {wanted}")
        return value

    def whole(self, name: str, low: int, high: int, usual: int | None = None) -> int:
        wanted = f"a whole number in {low}..{high}"
        return int(self.entry(name, wanted, lambda n: is_int(n) and low <= n <= high, usual))

    def seed(self) -> int:
        """Return the seed that the games are drawn from."""
        return self.whole("seed", MIN_SEED, MAX_SEED)

    def weights(self, count: int) -> list[float]:
        wanted = f"a list of {count} finite numbers"
        found = self.entry(
            "weights", wanted, lambda value: is_list_of(is_number, value) and len(value) == count
        )
        return [float(weight) for weight in found]

    def setup(self) -> tuple[int, ...]:
        """Return what `State.set_up` was given."""
        wanted = "a list of whole numbers of 64 bits"
        return tuple(self.entry("setup", wanted, lambda value: is_list_of(is_int64, value), ()))

    def rules(self) -> Rules:
        """Return the rules that the games are played by, if they are these."""
        name = self.entry("game", "the name of a game", is_short_text)
        config = self.entry("config", "flags by name", lambda value: isinstance(value, dict))
        try:
            rules = Rules(name, config)
        except ConfigError as error:
            raise StateError(f"the saved state is of no game that is here: {error}") from None
        self.check_version(rules)
        return rules

    def check_version(self, rules: Rules) -> None:
        """Refuse a state that was saved under other rules."""
        saved = self._found.get("rules_version")
        if saved != rules.rules_version:
            raise StateError(
                f"{rules.name} was saved under rules version {shorten(saved)}, this is version "
                f"{rules.rules_version}; replay the actions from a new start"
            )

    def demand(self, mine: Mapping[str, Any]) -> None:
        """Refuse games of another kind or number than a pool's."""
        for key, value in mine.items():
            found = self._found.get(key, 0 if key == "memory" else None)
            if found != value:
                raise StateError(f"the state has {key} {shorten(found)}, this pool has {value}")


def is_nested_at_most(value: Any, levels: int) -> bool:
    """Whether lists and objects lie in each other so many levels deep at most."""
    if not isinstance(value, (list, dict)):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(is_nested_at_most(one, levels - 1) for one in inner)


def is_short_text(value: Any) -> bool:
    """Whether this is text that may be a name."""
    return isinstance(value, str) and len(value) <= MAX_NAME


def is_list_of(fits: Callable[[Any], bool], value: Any) -> bool:
    """Whether this is a list, all of whose elements fit."""
    return isinstance(value, (list, tuple)) and all(map(fits, value))


def is_int(value: Any) -> bool:
    """Whether this is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_int64(value: Any) -> bool:
    """Whether this is a whole number of 64 bits."""
    return is_int(value) and -(2**63) <= value < 2**63


def is_number(value: Any) -> bool:
    """Whether this is a number that 32 bits hold."""
    if is_int(value):
        return bool(abs(value) < 2**53)
    return isinstance(value, float) and math.isfinite(value) and abs(value) < 3e38


def shorten(value: Any) -> str:
    """Show what was found, the beginning of it."""
    text = ascii(value)
    return text if len(text) <= 40 else text[:40] + "..."
