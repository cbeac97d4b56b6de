"""Read untrusted JSON and TOML files with limits on size and nesting."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sparring.store.files import read_regular
from sparring.store.schema import parse_json

MAX_JSON = 4 * 2**20
MAX_TOML = 256 * 2**10
"""The TOML parser is Python: 1 MiB of the worst text takes it seconds."""
MAX_DOTS = 32
"""Most dots in a key; parsing a dotted key takes quadratic time."""

KEY_SEPARATORS = re.compile(r"[=,\n{}\[\]]")


def read_json(path: Path, max_bytes: int = MAX_JSON) -> Any:
    """Return the content of a JSON file; raises ValueError or OSError."""
    return parse_json(read_regular(path, max_bytes))


def read_toml(path: Path, max_bytes: int = MAX_TOML) -> dict[str, Any]:
    """Return the content of a TOML file; raises ValueError or OSError."""
    text = read_regular(path, max_bytes).decode()
    if any(piece.count(".") > MAX_DOTS for piece in KEY_SEPARATORS.split(text)):
        raise ValueError(f"more than {MAX_DOTS} dots in a key")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("too many lists inside one another") from None
