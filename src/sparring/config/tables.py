"""Nested tables of settings: by dotted names, and one over another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted names."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def joined(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Put tables of settings over those that are common; flags of the game add up."""
    both = dict(common)
    for key, value in own.items():
        before = both.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            both[key] = joined(before, value)
        elif key == "set" and isinstance(before, list) and isinstance(value, list):
            both[key] = [*before, *value]
        else:
            both[key] = value
    return both
