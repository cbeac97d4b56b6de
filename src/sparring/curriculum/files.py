"""Files with phases: TOML with [[phases]], JSON, or the schema that a game's own project had."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.curriculum.places import about, found_in
from sparring.errors import ConfigError
from sparring.games.lookup import game_module

OF_OTHERS = "curriculum"
"""The key under which other projects keep their phases."""


def read_curriculum(file: str, game: str, algo: str = "") -> dict[str, Any]:
    """Return what a file says: phases, and perhaps other settings of a run.

    game: whose schema a file may be written in, besides ours. algo: what learns, if it is known.
    """
    table = read_table(file)
    if isinstance(table.get(OF_OTHERS), Mapping):
        module = game_module(game, "curriculum")
        if module is None:
            raise ConfigError(
                f"curriculum: {file} is in a schema that {game} does not know; write [[phases]], "
                "or name the game that it is for"
            )
        with found_in(file):
            table = module.read(table, algo, about)
    if not table.get("phases"):
        raise ConfigError(
            f"curriculum: {file} has no phases; write [[phases]] tables, in JSON "
            '{"phases": [...]}'
        )
    return table


def read_table(file: str) -> dict[str, Any]:
    """Read the table that a TOML or JSON file holds."""
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, ValueError) as wrong:
        why = "it is not text in UTF-8" if isinstance(wrong, UnicodeError) else wrong
        why = wrong.strerror or wrong if isinstance(wrong, OSError) else why
        raise ConfigError(f"curriculum: cannot read {file}: {why}") from None
    kind = "JSON" if Path(file).suffix == ".json" else "TOML"
    try:
        table = json.loads(text, object_pairs_hook=once) if kind == "JSON" else tomllib.loads(text)
    except ConfigError as wrong:
        raise ConfigError(f"curriculum: {file}: {wrong}") from None
    except ValueError as wrong:
        raise ConfigError(f"curriculum: {file} is not {kind}: {wrong}") from None
    except RecursionError:
        raise ConfigError(f"curriculum: {file} is nested too deeply") from None
    if isinstance(table, list):
        table = {"phases": table}
    if not isinstance(table, dict):
        raise ConfigError(f"curriculum: {file} holds no table of phases")
    trusted.admit(Path(file), table)
    cleaned: dict[str, Any] = without_null(table)
    return cleaned


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that a JSON object has twice; the last one would silently win."""
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"key {twice!r} is given twice in one object; give it once")
    return table


def without_null(value: Any) -> Any:
    """A value without keys that are null, which is as if they were not there."""
    if isinstance(value, Mapping):
        return {key: without_null(one) for key, one in value.items() if one is not None}
    return [without_null(one) for one in value] if isinstance(value, list | tuple) else value


def as_json(phase: Any) -> str:
    """A phase as a configuration keeps it."""
    if isinstance(phase, str):
        return phase
    try:
        return json.dumps(without_null(phase))
    except (TypeError, ValueError):
        raise ConfigError(f"phases: {phase!r} holds something else than numbers and text") from None
