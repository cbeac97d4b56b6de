"""Records of Shogi as demonstrations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sparring.games import shogi
from sparring.games.demonstrations import Demonstration
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.games.shogi.line import BROKEN_BY, GameRecord, next_side
from sparring.games.shogi.records import load_records

FILES = (".kif", ".kifu", ".csa", ".usi")
"""Suffixes of files to read; the text decides the format, not the suffix."""
LOST = ("resignation", "checkmate", "time")
"""Ends in which the side to move has lost."""
DRAWN = ("repetition", "draw")
RESULT = "result"
"""The reward part for the result of a game."""


def read_demonstrations(rules: Rules, path: Path) -> Iterator[Demonstration]:
    """Yield the games of a file. Every move is checked."""
    for record in load_records(path):
        yield demonstration_of(rules, record, str(path))


def demonstration_of(rules: Rules, record: GameRecord, source: str) -> Demonstration:
    """Return a record from a file as a demonstration."""
    usual = record.start.split()[:3] == shogi.START.split()[:3]
    setup = () if usual else tuple(ord(letter) for letter in record.start)
    result = result_of(record)
    replay = Replay(
        rules,
        0,
        (record.black, record.white),
        tuple((action,) for action in record.actions),
        result or (0.0, 0.0),
        None,
        setup=setup,
        source=source,
    )
    return Demonstration(replay, None if result is None else {RESULT: result})


def result_of(record: GameRecord) -> tuple[float, float] | None:
    """Return the rewards of Black and White, None if the game has no result."""
    if record.end in DRAWN:
        return 0.0, 0.0
    side = next_side(record)
    if record.end in BROKEN_BY:
        loser = BROKEN_BY.index(record.end)
    elif record.end in LOST:
        loser = side
    elif record.end == "declaration":
        loser = 1 - side
    else:
        return None
    return (-1.0, 1.0) if loser == 0 else (1.0, -1.0)
