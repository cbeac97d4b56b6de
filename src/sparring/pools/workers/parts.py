"""Which worker plays which games, in which groups, and the memory that they share."""

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
"""In place of a part's number: a message is waiting."""
CODE_BYTES = 2
LINE = 8
"""Numbers of 8 bytes in a cache line: every worker has one for itself."""


@dataclass
class Part:
    """Games that one worker steps one after the other when it is asked: a group, or its share."""

    index: int
    worker: int
    slot: int
    first: int
    games: int
    running: bool = False
    """Whether its games are there, in the process that plays them now."""
    lost: bool = False
    """They were there, and went with their process; the next answer begins new ones."""
    anew: bool = False
    """The last answer began new games in place of lost ones. Only what is asked after a loss does:
    what was answered before it stays as it was."""
    asked: bool = False
    """Whether an answer is owed."""
    told: bool = False
    """Whether the process knows."""
    seeds: Seeds | None = field(default=None, repr=False)
    """What games are to begin with; None: they are stepped."""


def code(part: int) -> bytes:
    """A part's number as pipes carry it."""
    return part.to_bytes(CODE_BYTES, "little")


def codes(raw: bytes) -> list[int]:
    """The numbers that a pipe brought; whole ones, as they are written whole."""
    return [
        int.from_bytes(raw[at : at + CODE_BYTES], "little") for at in range(0, len(raw), CODE_BYTES)
    ]


def split(total: int, ways: int) -> list[tuple[int, int]]:
    """Cut 0..total into stretches as equal as they can be: where each begins, and its length."""
    ends = [total * way // ways for way in range(ways + 1)]
    return [(first, last - first) for first, last in pairwise(ends)]


def parts_of(games: int, workers: int, groups: int) -> list[Part]:
    """Give every worker a stretch of games, and cut them into groups.

    With fewer groups than workers a group is the games of several workers.
    """
    if not 1 <= workers <= games:
        raise ConfigError(f"workers {workers}: there are {games} games; give 1..{games}")
    if not 0 <= groups <= games:
        raise ConfigError(f"env.groups {groups}: there are {games} games; give 0..{games}")
    groups = groups or min(2 * workers, games)
    stretches = split(games, workers)
    parts: list[Part] = []
    if groups < workers:
        slot_of = [s for s, (_, count) in enumerate(split(workers, groups)) for _ in range(count)]
        for worker, (first, count) in enumerate(stretches):
            parts.append(Part(worker, worker, slot_of[worker], first, count))
        return parts
    # The split of games comes first; a worker has at most as many groups as games.
    for worker, (_, count) in enumerate(split(groups, workers)):
        first, own = stretches[worker]
        for start, length in split(own, min(count, own)):
            parts.append(Part(len(parts), worker, len(parts), first + start, length))
    return parts


def shared_shapes(rules: CustomRules, games: int, workers: int, memory: int) -> Shapes:
    """What is in the shared memory: a buffers, actions, and how workers fare."""
    rows = games * rules.rows
    action = (np.float64, (rows, rules.box)) if rules.box else (np.int64, (rows,))
    return {
        **buffer_shapes(rules, games, memory),
        "action": action,
        "beat": (np.int64, (workers, LINE)),
        "busy": (np.float64, (workers, LINE)),
        "ended": (np.int64, (workers, LINE)),
    }
