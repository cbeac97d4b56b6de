"""Saved games of a pool, cut into those of several pools and joined again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import StateError
from sparring.games.saved import split_header

MAX_GAMES = 2**31


def read_games(raw: bytes, seats: int) -> tuple[dict[str, Any], list[npt.NDArray[np.uint8]]]:
    """Return the header of a pool's `state`, and its arrays: games, bots and counters, memory."""
    header, body = split_header(raw)
    games, table = (header.whole(name, 1, MAX_GAMES) for name in ("games", "table"))
    header.whole("first_game", 0, MAX_GAMES)
    memory = header.whole("memory", 0, MAX_GAMES, 0) * seats
    each, left = divmod(len(body), games)
    widths = [table, each - table - memory, memory]
    if left or min(widths) < 0:
        raise StateError("the state was saved by another build of the native core")
    ends = np.cumsum([games * width for width in widths])
    stretches = np.split(np.frombuffer(body, np.uint8), ends[:-1])
    arrays = [one.reshape(games, width) for one, width in zip(stretches, widths, strict=True)]
    return json.loads(raw.partition(b"\n")[0]), arrays


def write_games(header: dict[str, Any], arrays: Sequence[npt.NDArray[np.uint8]]) -> bytes:
    """Return a pool's `state`; the header says what the first pool was."""
    body = b"".join(array.tobytes() for array in arrays)
    changed = {"games": len(arrays[0]), "sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps({**header, **changed}).encode() + b"\n" + body


def saved_games(raw: bytes) -> int:
    """Return the number of games in a pool's `state`."""
    return split_header(raw)[0].whole("games", 1, MAX_GAMES)


def join_states(states: Sequence[bytes], seats: int) -> bytes:
    """Return the state of one pool with the games of several, which are in their order."""
    read = [read_games(raw, seats) for raw in states]
    arrays = zip(*(arrays for _, arrays in read), strict=True)
    return write_games(read[0][0], [np.concatenate(each) for each in arrays])


def slice_state(raw: bytes, seats: int, first: int, games: int) -> bytes:
    """Return the state of a pool with some of the games. first: index among those of the state."""
    header, arrays = read_games(raw, seats)
    if first + games > len(arrays[0]):
        raise StateError(f"the state has {len(arrays[0])} games, not {first + games}")
    header["first_game"] += first
    return write_games(header, [array[first : first + games] for array in arrays])
