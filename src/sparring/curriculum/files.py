"""Files with phases in TOML, JSON or a game's schema, and the line number of a mistake."""

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
"""Key of the phases in files of other projects; the game's `curriculum.py` reads those."""
Key = str | int
HEADER = re.compile(r"^\s*\[\[\s*phases\s*\]\]")
TABLE = re.compile(r"^\s*\[\s*phases\s*\.\s*([^\]]+?)\s*\]")
ANY_TABLE = re.compile(r"^\s*\[")
SPACE = re.compile(r"[\s,:]*")
DECODER = json.JSONDecoder(strict=False)
LITERAL = re.compile(r"[^\s,:\]}]+")


def read_curriculum(file: str, game: str, algo: str = "") -> dict[str, Any]:
    """Read the phases and other settings of a file, in our schema or the game's."""
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
    except (OSError, ValueError) as error:
        why = "it is not text in UTF-8" if isinstance(error, UnicodeError) else error
        why = error.strerror or error if isinstance(error, OSError) else why
        raise ConfigError(f"curriculum: cannot read {file}: {why}") from None
    kind = "JSON" if Path(file).suffix == ".json" else "TOML"
    try:
        table = (
            json.loads(text, object_pairs_hook=reject_duplicate_keys)
            if kind == "JSON"
            else tomllib.loads(text)
        )
    except ConfigError as error:
        raise ConfigError(f"curriculum: {file}: {error}") from None
    except ValueError as error:
        raise ConfigError(f"curriculum: {file} is not {kind}: {error}") from None
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
    """Refuse a key that occurs twice in a JSON object; `json` would silently keep the last."""
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"key {twice!r} is given twice in one object; give it once")
    return table


def without_null(value: Any) -> Any:
    """Remove keys whose value is null."""
    if isinstance(value, Mapping):
        return {key: without_null(one) for key, one in value.items() if one is not None}
    return [without_null(one) for one in value] if isinstance(value, list | tuple) else value


def as_json(phase: Any) -> str:
    """Return a phase as the JSON text of a configuration."""
    if isinstance(phase, str):
        return phase
    try:
        return json.dumps(without_null(phase))
    except (TypeError, ValueError):
        raise ConfigError(
            f"phases: {phase!r} holds values that are neither numbers nor text"
        ) from None


class PhaseError(ConfigError):
    """A mistake in a phase, with the key that it is about."""

    def __init__(self, text: str, phase: int, keys: Sequence[Key] = ()) -> None:
        super().__init__(text)
        self.phase, self.keys = phase, tuple(keys)


def default_name(phase: int) -> str:
    """Return the name of a phase without one. phase: index from 0."""
    return f"phase {phase + 1}"


@contextmanager
def locate_errors(phase: int, name: str, *keys: Key) -> Iterator[None]:
    """Turn a ConfigError into a PhaseError that names the phase and its key.

    phase: index from 0; -1 for keys outside of phases, which count from the top of the file.
    """
    try:
        yield
    except PhaseError:
        raise
    except ConfigError as error:
        quoted = f" {name!r}" if name not in ("", default_name(phase)) else ""
        which = f"phase {phase + 1}{quoted}: " if phase >= 0 else ""
        raise PhaseError(f"{which}{error}", phase, keys) from None


@contextmanager
def name_file_and_line(*files: str) -> Iterator[None]:
    """Add file and line to a PhaseError. files: candidates, the first with the key counts."""
    try:
        yield
    except PhaseError as error:
        for file in filter(None, files):
            line = line_of(file, error.phase, error.keys)
            if line:
                raise ConfigError(f"{file}, line {line}: {error}") from None
        raise ConfigError(str(error)) from None


def line_of(file: str, phase: int, keys: Sequence[Key]) -> int:
    """Return the line of a phase's key, or of the phase; 0 if the file does not have it."""
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
    """Return the line of a path or of its nearest parent; 0 without any."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0) if path else 0


def toml_lines(text: str) -> dict[tuple[Key, ...], int]:
    """Return the lines of all phases of a TOML file and of their keys."""
    lines: dict[tuple[Key, ...], int] = {}
    phase = -1
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        inner = TABLE.match(line)
        if HEADER.match(line):
            phase, table = phase + 1, ()
            lines[phase,] = number
        elif inner and phase >= 0:
            table = key_of(inner[1])
            lines.setdefault((phase, *table), number)
        elif ANY_TABLE.match(line) and not line.lstrip().startswith("[["):
            table = () if phase < 0 or is_list_item(line) else ("",)
        elif "=" in line and phase >= 0 and not line.lstrip().startswith("#"):
            keys = (*table, *key_of(line.partition("=")[0]))
            for end in range(1, len(keys) + 1):
                lines.setdefault((phase, *keys[:end]), number)
    return lines


def is_list_item(line: str) -> bool:
    """Whether a line that begins with [ is part of a list, not a table header."""
    return not re.match(r"^\s*\[[^\[\],\"']+\]\s*(#.*)?$", line)


def key_of(text: str) -> tuple[str, ...]:
    """Split a dotted key; quoted parts stay whole."""
    parts = re.findall(r"\"([^\"]*)\"|'([^']*)'|([^.\s\"']+)", text)
    return tuple(next(filter(None, part), "") for part in parts)


def json_lines(text: str) -> dict[tuple[Key, ...], int]:
    """Return the line of every value of a JSON text by path; empty if it is not JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return {}
    lines: dict[tuple[Key, ...], int] = {}
    scan_json(text, skip_separators(text, 0), (), lines)
    return lines


def scan_json(text: str, at: int, path: tuple[Key, ...], lines: dict[tuple[Key, ...], int]) -> int:
    """Record the lines of the value at offset `at` and of all values in it; return its end."""
    lines.setdefault(path, text.count("\n", 0, at) + 1)
    if text[at] == '"':
        return DECODER.raw_decode(text, at)[1]
    if text[at] not in "[{":
        literal = LITERAL.match(text, at)
        return literal.end() if literal else at + 1
    is_object, number = text[at] == "{", 0
    at = skip_separators(text, at + 1)
    while text[at] not in "]}":
        key: Key = number
        if is_object:
            key, end = DECODER.raw_decode(text, at)
            lines.setdefault((*path, key), text.count("\n", 0, at) + 1)
            at = skip_separators(text, end)
        at = skip_separators(text, scan_json(text, at, (*path, key), lines))
        number += 1
    return at + 1


def skip_separators(text: str, at: int) -> int:
    """Return the offset of the next character that is no space, comma or colon."""
    space = SPACE.match(text, at)
    return space.end() if space else at
