"""Positions, move sequences and 240 recorded games of shogi, made with two other programs.

The data lie beside this file as compressed JSON. A game has its moves, the number of legal moves
before each of them, and one CRC-32 over the CRC-32 values of all lists of legal moves.
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("shogi.json.xz")

ENDS = {
    "checkmate": "checkmate",
    "stalemate": "no legal move",
    "repetition": "repetition",
    "perpetual_check": "perpetual check",
    "declaration": "declaration",
    "max_plies": "ply limit",
    None: None,
}
"""The recorded reasons as the library names them."""

SCORES = {"black_win": [1.0, -1.0], "white_win": [-1.0, 1.0], "draw": [0.0, 0.0], "ongoing": [0, 0]}


@cache
def data() -> dict[str, Any]:
    return dict(json.loads(lzma.decompress(FILE.read_bytes())))


def crc_of(moves: Iterable[str]) -> str:
    """The checksum of a list of legal moves, whatever its order."""
    return f"{zlib.crc32(' '.join(sorted(moves)).encode()):08x}"
