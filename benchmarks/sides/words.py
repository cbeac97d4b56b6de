"""Settings as they are typed for one side of a comparison."""

from __future__ import annotations

import shlex
import tomllib
from typing import Any

from sparring.errors import ConfigError


def read_side(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read `collect.bf16=true ppo.lr=1e-3 SPARRING_KERNELS=avx2`: settings, and variables.

    Values are TOML's, or plain words. Names in capitals are variables of the environment.
    """
    table: dict[str, Any] = {}
    variables: dict[str, str] = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ConfigError(f"side {text!r}: {word!r} is no setting; write name=value")
        if name.isupper():
            variables[name] = value
        elif name == "set":  # flags of the game add up
            table.setdefault("set", []).append(value)
        else:
            put(table, name.replace("-", "_").split("."), read_value(value))
    return table, variables


def read_value(text: str) -> Any:
    """Return what TOML reads there; what it cannot read is a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def put(table: dict[str, Any], names: list[str], value: Any) -> None:
    """Put a value under a dotted name."""
    for name in names[:-1]:
        table = table.setdefault(name, {})
    table[names[-1]] = value
