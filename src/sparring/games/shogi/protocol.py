"""USI protocol: positions and scores as text."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

from sparring.errors import ConfigError
from sparring.games import shogi
from sparring.games.rules import Rules
from sparring.games.state import State, new_state

MAX_PLIES = 10_000
PONANZA = 600.0
"""Centipawns per unit of log odds, as Shogi engines commonly scale their scores."""
MAX_CERTAIN = 0.9999
"""Larger values would give scores that look like mates."""
SFEN_FIELDS = (3, 4)
"""Board, side and hands; the move number may be missing."""
REFEREE_ENDS = ("repetition", "perpetual check")


def read_position(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return start and moves of `position startpos|sfen ... [moves ...]`, read without `position`.

    >>> read_position("startpos moves 7g7f 3c3d".split())[1]
    ['7g7f', '3c3d']
    """
    at = words.index("moves") if "moves" in words else len(words)
    kind, fields, moves = words[:1], words[1:at], list(words[at + 1 :])
    if kind == ["startpos"] and not fields:
        return shogi.START, moves
    if kind == ["sfen"] and len(fields) in SFEN_FIELDS:
        return " ".join(fields if len(fields) == max(SFEN_FIELDS) else [*fields, "1"]), moves
    raise ConfigError(
        "a position is `startpos` or `sfen BOARD SIDE HANDS NUMBER`, then `moves ...`"
    )


def position_line(start: str, moves: Iterable[str]) -> str:
    """Return the USI command `position` with start and moves."""
    origin = "startpos" if start == shogi.START else f"sfen {start}"
    return " ".join(["position", origin, *(("moves", *played) if (played := list(moves)) else ())])


def without_referee_ends(rules: Rules) -> Rules:
    """Return the rules without the ends that the referee decides."""
    return rules.changed({"declaration": "OFF", "max_plies": MAX_PLIES, "skip_forced": 0})


def replay(rules: Rules, start: str, moves: Iterable[str], *, seed: int = 0) -> State:
    """Return the position after some moves; repetitions do not end the game."""
    state = new_state(rules, seed=seed)
    shogi.set_sfen(state, start)
    for move in moves:
        play_on(state, move)
    return state


def play_on(state: State, move: str) -> None:
    shogi.play(state, move)
    if state.end in REFEREE_ENDS:
        shogi.set_sfen(state, shogi.read_sfen(state))


def game_seed(seed: int, number: int) -> int:
    """Return the seed of one game of a series; series of different seeds are independent."""
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:8], "big")


def centipawns(value: float) -> int:
    """Return an expected result from -1 to 1 as a score.

    >>> centipawns(0.0), centipawns(0.5)
    (0, 659)
    """
    value = max(-MAX_CERTAIN, min(value, MAX_CERTAIN))
    return round(PONANZA * math.log((1 + value) / (1 - value)))
