"""JSON and TOML out of files that anybody may have written: bounded before they are parsed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sparring.store.files import read_regular
from sparring.store.schema import parse_json

MAX_JSON = 4 * 2**20
MAX_TOML = 256 * 2**10
"""The parser of TOML is Python: a mebibyte of the worst text takes it seconds."""
MAX_DOTS = 32
"""Of one key. Each part of a dotted key is looked at once for every other one."""

KEY_SEPARATORS = re.compile(r"[=,\n{}\[\]]")


def read_json(path: Path, most: int = MAX_JSON) -> Any:
    """Return what a JSON file holds; ValueError or OSError tells what is wrong with it."""
    return parse_json(read_regular(path, most))


def read_toml(path: Path, most: int = MAX_TOML) -> dict[str, Any]:
    """Return what a TOML file holds; ValueError or OSError tells what is wrong with it."""
    text = read_regular(path, most).decode()
    if any(piece.count(".") > MAX_DOTS for piece in KEY_SEPARATORS.split(text)):
        raise ValueError(f"more than {MAX_DOTS} dots in a key")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("too many lists inside one another") from None
