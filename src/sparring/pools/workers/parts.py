"""Assignment of games to workers and groups, and their shared memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from sparring.errors import ConfigError
from sparring.pools.custom.buffers import buffer_shapes
from sparring.pools.custom.rules import CustomRules
from sparring.processes import Shapes

Seeds = list[int | None]
CONTROL = 0xFFFF
"""In place of a part's index: a message is waiting."""
CODE_BYTES = 2
LINE = 8
"""Entries of 8 bytes in a cache line: every worker has its own line."""


@dataclass
class GamePart:
    """Games that one worker steps together on request: a group, or its share of one."""

    index: int
    worker: int
    slot: int
    first: int
    games: int
    running: bool = False
    """Whether the current worker process has its games."""
    lost: bool = False
    """Whether its games ended with their process; the next answer starts new ones."""
    restarted: bool = False
    """Whether the last answer started new games in place of lost ones. An answer from before the
    loss does not."""
    awaited: bool = False
    """Whether an answer is awaited."""
    sent: bool = False
    """Whether the request was sent to the process."""
    seeds: Seeds | None = field(default=None, repr=False)
    """Seeds of games to start; None: step them."""


def code(part: int) -> bytes:
    """A part's index as bytes in a pipe."""
    return part.to_bytes(CODE_BYTES, "little")


def codes(raw: bytes) -> list[int]:
    """The indices in bytes from a pipe, which are written whole."""
    return [
        int.from_bytes(raw[at : at + CODE_BYTES], "little") for at in range(0, len(raw), CODE_BYTES)
    ]


def split(total: int, ways: int) -> list[tuple[int, int]]:
    """Split 0..total into ranges as equal as possible: the start and length of each."""
    ends = [total * way // ways for way in range(ways + 1)]
    return [(first, last - first) for first, last in pairwise(ends)]


def parts_of(games: int, workers: int, groups: int) -> list[GamePart]:
    """Give every worker a range of games, and split it into groups.

    With fewer groups than workers, a group is the games of several workers.
    """
    if not 1 <= workers <= games:
        raise ConfigError(f"workers {workers}: there are {games} games; give 1..{games}")
    if not 0 <= groups <= games:
        raise ConfigError(f"env.groups {groups}: there are {games} games; give 0..{games}")
    groups = groups or min(2 * workers, games)
    ranges = split(games, workers)
    parts: list[GamePart] = []
    if groups < workers:
        slot_of = [s for s, (_, count) in enumerate(split(workers, groups)) for _ in range(count)]
        for worker, (first, count) in enumerate(ranges):
            parts.append(GamePart(worker, worker, slot_of[worker], first, count))
        return parts
    # The split of games comes first; a worker has at most as many groups as games.
    for worker, (_, count) in enumerate(split(groups, workers)):
        first, games = ranges[worker]
        for start, length in split(games, min(count, games)):
            parts.append(GamePart(len(parts), worker, len(parts), first + start, length))
    return parts


def shared_shapes(rules: CustomRules, games: int, workers: int, memory: int) -> Shapes:
    """Shapes of the shared memory: buffers, actions, and counters of workers."""
    rows = games * rules.rows
    action = (np.float64, (rows, rules.box)) if rules.box else (np.int64, (rows,))
    return {
        **buffer_shapes(rules, games, memory),
        "action": action,
        "beat": (np.int64, (workers, LINE)),
        "busy": (np.float64, (workers, LINE)),
        "ended": (np.int64, (workers, LINE)),
    }
