"""Keyword arguments of a factory, as they are typed: key=value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sparring.errors import ConfigError


def read_keywords(words: Sequence[str]) -> dict[str, Any]:
    """Read key=value words; a value is a number, true, false, null, a JSON list or just text."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"set {word!r} is not key=value")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found
