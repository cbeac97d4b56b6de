"""Starts of Shogi: positions by SFEN."""

from __future__ import annotations

from pathlib import Path

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.shogi import set_sfen
from sparring.games.starts import STARTS_SUFFIX, Start, read_content_lines, saved_position
from sparring.games.state import State, new_state

START_FORMATS = "a file of SFEN lines, sfen:POSITION"
"""Accepted names of starts, for error messages."""
PREFIX = "sfen:"


def read_starts(rules: Rules, word: str) -> list[Start] | None:
    """Return the starts that `word` names, None if it names none of this game."""
    state = new_state(rules)
    if word.startswith(PREFIX):
        return [start_at(state, word.removeprefix(PREFIX), word)]
    path = Path(word).expanduser()
    if path.suffix == STARTS_SUFFIX or not path.is_file():
        return None
    starts = []
    for number, line in read_content_lines(path):
        try:
            starts.append(start_at(state, line, f"{path}:{number}"))
        except ConfigError as error:
            raise ConfigError(f"{path}:{number}: {error}") from None
    return starts


def start_at(state: State, sfen: str, name: str) -> Start:
    """Return a position as a start; `state` is overwritten."""
    set_sfen(state, sfen.strip().removeprefix("sfen ").strip())
    return Start(saved_position(state), name=name)
