"""A rollout as arrays of fixed sizes, filled where it is played and read where it is learned from.

Games that end and games that are cut are few or many; there is room for all of them, which takes no
memory as long as it is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.learn.collect import Collector
from sparring.learn.rollout import Cuts, Earned, Episodes
from sparring.processes import Shapes

Arrays = Mapping[str, npt.NDArray[Any]]
BY_ROW = ("seat", "role", "policy")
"""Of a rollout: [steps, games * rows]."""
BY_GAME = ("reward", "skipped", "terminated", "truncated", "final_value", "final_role")
"""Of a rollout: [steps, games, ...]."""
COUNTS = ("decisions", "opponent_rows", "cuts", "ends")
"""How many there are, in the array `counts`."""


def shapes_of(collector: Collector) -> Shapes:
    """What the rollouts of a collector take."""
    rollout, pool, rules = collector.rollout, collector.pool, collector.pool.rules
    steps, games, rows = collector.steps, pool.num_games, pool.num_games * rules.rows
    found: dict[str, tuple[Any, tuple[int, ...]]] = {"counts": (np.int64, (len(COUNTS),))}
    for name, array in rollout.rows().items():
        found[name] = (array.dtype, (steps, rows, *array.shape[1:]))
    for name in (*BY_ROW, *BY_GAME):
        array = getattr(rollout, name)
        found[name] = (array.dtype, array.shape)
    found["counted"] = (np.int64, (len(rules.counters),))
    most = steps * games
    found["cut.where"] = (np.int64, (most * rules.seats,))
    found["cut.obs"] = (np.uint8, (most * rules.seats, pool.row_bytes))
    found["cut.mask"] = (np.uint8, (most * rules.seats, rules.actions))
    found["cut.mirrored"] = (np.bool_, (most * rules.seats,))
    ends: dict[str, Any] = {"game": np.int32, "length": np.int32, "end": np.uint8}
    found |= {f"end.{name}": (kind, (most,)) for name, kind in ends.items()}
    found["end.score"] = (np.float32, (most, rules.seats))
    found["end.policy"] = (np.int16, (most, rules.seats))
    return found


def pack(
    collector: Collector, out: Arrays, *, decisions: int, opponent_rows: int, counted: Any
) -> None:
    """Copy the last rollout of a collector; not what is carried in front of it."""
    rollout, first = collector.rollout, collector.transitions.carried
    for name, array in rollout.rows().items():
        out[name][...] = array[first:].reshape(out[name].shape)
    for name in (*BY_ROW, *BY_GAME):
        out[name][...] = getattr(rollout, name)
    out["counted"][...] = counted
    cuts = put(out, "cut.", {name.name: getattr(rollout.cuts, name.name) for name in fields(Cuts)})
    batches = collector.earned.batches
    ended = {one.name: [getattr(batch, one.name) for batch in batches] for one in fields(Episodes)}
    out["counts"][:] = decisions, opponent_rows, cuts, put(out, "end.", ended)


def put(out: Arrays, before: str, lists: Mapping[str, list[npt.NDArray[Any]]]) -> int:
    """Copy lists of arrays one behind the other; return how many entries that makes."""
    count = 0
    for name, parts in lists.items():
        count = sum(map(len, parts))
        if count:
            np.concatenate(parts, out=out[before + name][:count])
    return count


def counts_of(arrays: Arrays) -> MutableMapping[str, int]:
    """How many decisions, rows of opponents, cuts and ends there are in a packed rollout."""
    return dict(zip(COUNTS, arrays["counts"].tolist(), strict=True))


def unpack(arrays: Arrays, collector: Collector, *, first_game: int, games: int) -> None:
    """Put a packed rollout of some games into the rollout of all games."""
    rollout, rules = collector.rollout, collector.pool.rules
    steps, every = collector.steps, collector.pool.num_games * rules.rows
    rows = slice(first_game * rules.rows, (first_game + games) * rules.rows)
    here, first = slice(first_game, first_game + games), collector.transitions.carried
    for name, array in rollout.rows().items():
        array[first:].reshape(steps, every, *array.shape[1:])[:, rows] = arrays[name]
    for name in BY_ROW:
        getattr(rollout, name)[:, rows] = arrays[name]
    for name in BY_GAME:
        getattr(rollout, name)[:, here] = arrays[name]


def episodes_in(arrays: Arrays, *, first_game: int) -> Episodes:
    """Copy the games that ended in a packed rollout."""
    count = counts_of(arrays)["ends"]
    found = {one.name: arrays[f"end.{one.name}"][:count].copy() for one in fields(Episodes)}
    return Episodes(**{**found, "game": found["game"] + np.int32(first_game)})


def add_episodes(earned: Earned, arrays: Arrays, *, first_game: int) -> None:
    """Count the games that ended in a packed rollout."""
    episodes = episodes_in(arrays, first_game=first_game)
    if len(episodes):
        earned.batches.append(episodes)


def cuts_in(arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Copy the cuts of a packed rollout; their places are those of its own games."""
    count = counts_of(arrays)["cuts"]
    return {one.name: arrays[f"cut.{one.name}"][:count].copy() for one in fields(Cuts)}
