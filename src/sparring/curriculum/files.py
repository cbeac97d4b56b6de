"""Files with phases: TOML, JSON, or a game's own schema; and the line at which a mistake stands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.errors import ConfigError
from sparring.games.lookup import game_module

GAME_SCHEMA_KEY = "curriculum"
"""The key under which other projects keep their phases."""
Key = str | int
HEADER = re.compile(r"^\s*\[\[\s*phases\s*\]\]")
TABLE = re.compile(r"^\s*\[\s*phases\s*\.\s*([^\]]+?)\s*\]")
ANY_TABLE = re.compile(r"^\s*\[")
SPACE = re.compile(r"[\s,:]*")
DECODER = json.JSONDecoder(strict=False)
LITERAL = re.compile(r"[^\s,:\]}]+")


def read_curriculum(file: str, game: str, algo: str = "") -> dict[str, Any]:
    """What a file says, in our schema or the game's: phases, and perhaps other settings."""
    table = read_table(file)
    if isinstance(table.get(GAME_SCHEMA_KEY), Mapping):
        module = game_module(game, "curriculum")
        if module is None:
            raise ConfigError(
                f"curriculum: {file} is in a schema that {game} does not know; write [[phases]], "
                "or name the game that it is for"
            )
        with name_file_and_line(file):
            table = module.read(table, algo, locate_errors)
    if not table.get("phases"):
        raise ConfigError(
            f"curriculum: {file} has no phases; write [[phases]] tables, in JSON "
            '{"phases": [...]}'
        )
    return table


def read_table(file: str) -> dict[str, Any]:
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, ValueError) as wrong:
        why = "it is not text in UTF-8" if isinstance(wrong, UnicodeError) else wrong
        why = wrong.strerror or wrong if isinstance(wrong, OSError) else why
        raise ConfigError(f"curriculum: cannot read {file}: {why}") from None
    kind = "JSON" if Path(file).suffix == ".json" else "TOML"
    try:
        table = (
            json.loads(text, object_pairs_hook=reject_duplicate_keys)
            if kind == "JSON"
            else tomllib.loads(text)
        )
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
    trusted.allow_remembered(Path(file), table)
    cleaned: dict[str, Any] = without_null(table)
    return cleaned


def reject_duplicate_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
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


class PhaseError(ConfigError):
    """What is wrong with a phase, and which key it is about."""

    def __init__(self, text: str, phase: int, keys: Sequence[Key] = ()) -> None:
        super().__init__(text)
        self.phase, self.keys = phase, tuple(keys)


def default_name(phase: int) -> str:
    """What a phase is called that has no name, counted from 0."""
    return f"phase {phase + 1}"


@contextmanager
def locate_errors(phase: int, name: str, *keys: Key) -> Iterator[None]:
    """Say of which phase a mistake is, counted from 0, and remember the key.

    Phase -1: it is beside the phases, and the keys count from the top of the file.
    """
    try:
        yield
    except PhaseError:
        raise
    except ConfigError as wrong:
        called = f" {name!r}" if name not in ("", default_name(phase)) else ""
        which = f"phase {phase + 1}{called}: " if phase >= 0 else ""
        raise PhaseError(f"{which}{wrong}", phase, keys) from None


@contextmanager
def name_file_and_line(*files: str) -> Iterator[None]:
    """Name the file and the line of a mistake. files: where the phases may have come from."""
    try:
        yield
    except PhaseError as wrong:
        for file in filter(None, files):
            line = line_of(file, wrong.phase, wrong.keys)
            if line:
                raise ConfigError(f"{file}, line {line}: {wrong}") from None
        raise ConfigError(str(wrong)) from None


def line_of(file: str, phase: int, keys: Sequence[Key]) -> int:
    """The line of a phase's key, or of the phase itself; 0 where the file does not have it."""
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, ValueError):
        return 0
    if Path(file).suffix == ".json":
        lines = json_lines(text)
        if phase < 0:
            return nearest_line(lines, (*keys,)) or 1
        for above in (("phases",), ("curriculum", "phases")):
            if (*above, phase) in lines:
                return nearest_line(lines, (*above, phase, *keys))
        return 0
    return nearest_line(toml_lines(text), (phase, *keys))


def nearest_line(lines: Mapping[tuple[Key, ...], int], path: tuple[Key, ...]) -> int:
    """The line of a path, or of what is around it; 0 where nothing is."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0) if path else 0


def toml_lines(text: str) -> dict[tuple[Key, ...], int]:
    """The lines of all phases of a TOML file, and of their keys."""
    found: dict[tuple[Key, ...], int] = {}
    phase = -1
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        inner = TABLE.match(line)
        if HEADER.match(line):
            phase, table = phase + 1, ()
            found[phase,] = number
        elif inner and phase >= 0:
            table = key_of(inner[1])
            found.setdefault((phase, *table), number)
        elif ANY_TABLE.match(line) and not line.lstrip().startswith("[["):
            table = () if phase < 0 or is_list_item(line) else ("",)
        elif "=" in line and phase >= 0 and not line.lstrip().startswith("#"):
            keys = (*table, *key_of(line.partition("=")[0]))
            for end in range(1, len(keys) + 1):
                found.setdefault((phase, *keys[:end]), number)
    return found


def is_list_item(line: str) -> bool:
    """Whether a line that begins with [ is part of a list's value, not a table's head."""
    return not re.match(r"^\s*\[[^\[\],\"']+\]\s*(#.*)?$", line)


def key_of(text: str) -> tuple[str, ...]:
    """The parts of a dotted key; one in quotes stays whole."""
    parts = re.findall(r"\"([^\"]*)\"|'([^']*)'|([^.\s\"']+)", text)
    return tuple(next(filter(None, part), "") for part in parts)


def json_lines(text: str) -> dict[tuple[Key, ...], int]:
    """The line of every value of a JSON file, by its path; nothing if it is none."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: dict[tuple[Key, ...], int] = {}
    scan_json(text, skip_separators(text, 0), (), found)
    return found


def scan_json(text: str, at: int, path: tuple[Key, ...], found: dict[tuple[Key, ...], int]) -> int:
    """Note where the value at a place begins, and all inside it; return where it ends."""
    found.setdefault(path, text.count("\n", 0, at) + 1)
    if text[at] == '"':
        return DECODER.raw_decode(text, at)[1]
    if text[at] not in "[{":
        plain = LITERAL.match(text, at)
        return plain.end() if plain else at + 1
    is_object, number = text[at] == "{", 0
    at = skip_separators(text, at + 1)
    while text[at] not in "]}":
        key: Key = number
        if is_object:
            key, end = DECODER.raw_decode(text, at)
            found.setdefault((*path, key), text.count("\n", 0, at) + 1)
            at = skip_separators(text, end)
        at = skip_separators(text, scan_json(text, at, (*path, key), found))
        number += 1
    return at + 1


def skip_separators(text: str, at: int) -> int:
    """The place of the next sign that is neither space, comma nor colon."""
    space = SPACE.match(text, at)
    return space.end() if space else at
