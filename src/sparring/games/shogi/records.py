"""Games of Shogi in files: KIF, CSA and USI, read and written. Every move is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from sparring.errors import ConfigError, SparringError
from sparring.games import shogi
from sparring.games.files import os_error_text, replace_file
from sparring.games.rules import Rules
from sparring.games.shogi.csa import read_csa, write_csa
from sparring.games.shogi.kif import write_kif
from sparring.games.shogi.kif_reader import read_kif
from sparring.games.shogi.line import BROKEN_BY, ENDS, GameRecord, MoveLine
from sparring.games.shogi.protocol import position_line, read_position, replay, without_referee_ends
from sparring.games.state import State

__all__ = [
    "BROKEN_BY",
    "ENDS",
    "GameRecord",
    "end_of",
    "load_record",
    "load_records",
    "read_record",
    "read_usi",
    "record_game",
    "replay_record",
    "save_record",
    "write_usi",
]

ENCODINGS = {".kif": "cp932", ".kifu": "utf-8", ".csa": "utf-8", ".usi": "utf-8"}
"""Encodings for writing. Reading accepts UTF-8 and Shift JIS for all."""
CSA_LINE = re.compile(r"^(V[123]|PI|P[1-9+-]|N[+-]|[+-](\d{4}[A-Z]{2})?(,|$))", re.M)
KIF_LINE = re.compile(r"^\s*(手数|手合割|[先後上下]手|\||[0-9]+\s+\S)", re.M)
USI_LINE = re.compile(r"^\s*(position|startpos|sfen)\b")


def record_game(
    moves: Iterable[str],
    *,
    start: str = shogi.START,
    config: Mapping[str, Any] | None = None,
    black: str = "",
    white: str = "",
) -> GameRecord:
    """Play moves by the rules and record them with the end that the rules give."""
    state = shogi.load_sfen(start, config=config)
    played = tuple(moves)
    shogi.play(state, *played)
    return GameRecord(played, start, black, white, end_of(state))


def end_of(state: State) -> str:
    """Return the end of a game as one of `ENDS`."""
    if state.end == "perpetual check":
        return BROKEN_BY[state.scores.index(min(state.scores))]
    if state.end == "declaration":
        return "declaration" if any(state.scores) else "draw"
    words = {"no legal move": "checkmate", "ply limit": "interrupted", None: ""}
    return words.get(state.end, state.end or "")


def replay_record(record: GameRecord) -> State:
    """Return the last position of a record."""
    return replay(without_referee_ends(Rules("shogi")), record.start, record.moves)


def write_usi(record: GameRecord) -> str:
    """Return a record as a USI position: start and moves, no names, no end."""
    return position_line(record.start, record.moves) + "\n"


def read_usi(text: str) -> GameRecord:
    """Read a USI position, with or without the word `position`."""
    words = text.split()
    start, moves = read_position(words[words[:1] == ["position"] :])
    line = MoveLine(start)
    for number, move in enumerate(moves, 1):
        try:
            line.play(move)
        except SparringError as error:
            raise ConfigError(f"move {number}: {error}") from None
    return GameRecord(tuple(moves), start, actions=tuple(line.actions))


def read_record(text: str) -> GameRecord:
    """Read a record of any kind."""
    if USI_LINE.match(text):
        return read_usi(text)
    if CSA_LINE.search(text):
        return read_csa(text)
    if KIF_LINE.search(text):
        return read_kif(text)
    raise ConfigError("this is no record of Shogi in KIF, CSA or USI")


def load_record(path: str | Path) -> GameRecord:
    """Read a file, in UTF-8 or Shift JIS; of several games the first."""
    text = load_text(path)
    try:
        return read_record(text)
    except SparringError as error:
        raise ConfigError(f"{path}: {error}") from None


def load_text(path: str | Path) -> str:
    """Return the text of a file in UTF-8 or Shift JIS."""
    try:
        raw = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {os_error_text(error)}") from None
    for encoding in ("utf-8-sig", "cp932"):
        with suppress(UnicodeDecodeError):
            return raw.decode(encoding)
    raise ConfigError(f"{path} is neither UTF-8 nor Shift JIS")


def load_records(path: str | Path) -> Iterator[GameRecord]:
    """Yield all games of a file: CSA has a line / between two, USI a line for each."""
    text = load_text(path)
    lines = text.splitlines()
    read: Callable[[str, int], GameRecord]
    if USI_LINE.match(text):
        read, starts = read_usi_line, [n for n, line in enumerate(lines) if line.strip()]
    elif CSA_LINE.search(text):
        ends = [n + 1 for n, line in enumerate(lines[:-1]) if line.strip() == "/"]
        read, starts = read_csa, [0, *ends]
    else:
        yield load_record(path)
        return
    for first, last in pairwise([*starts, len(lines)]):
        try:
            yield read("\n".join(lines[first:last]), first)
        except SparringError as error:
            raise ConfigError(f"{path}: {error}") from None


def read_usi_line(text: str, before: int) -> GameRecord:
    """Read a line with a game. before: lines of the file above it."""
    try:
        return read_usi(text)
    except SparringError as error:
        raise ConfigError(f"line {before + 1}, {error}") from None


def save_record(record: GameRecord, path: str | Path) -> None:
    """Write a file atomically; its suffix decides the format."""
    target = Path(path)
    if target.suffix not in ENCODINGS:
        raise ConfigError(f"{target} has to end in {', '.join(ENCODINGS)}")
    write = {".csa": write_csa, ".usi": write_usi}.get(target.suffix, write_kif)
    encoding = ENCODINGS[target.suffix]
    try:
        raw = write(record).encode(encoding)
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise ConfigError(f"{letter!r} cannot be written in Shift JIS; write .kifu") from None
    try:
        replace_file(target, raw)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write {target}: {os_error_text(error)}") from None
