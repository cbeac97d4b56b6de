"""A rollout as arrays of fixed sizes, filled where it is played and read where it is learned from.

Games that end and games that are cut are few or many; there is room for all of them, which takes no
memory as long as it is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.learn.collect import Collector
from sparring.learn.rollout import Episodes, FinishedEpisodes, Truncations
from sparring.pools.lineups import NOBODY
from sparring.processes import Shapes

Arrays = Mapping[str, npt.NDArray[Any]]
Stretch = tuple[int, npt.NDArray[np.intp], dict[str, npt.NDArray[Any]]]
"""Entries of some games: the first of the games, the step of every entry, and arrays by name."""
BY_ROW = ("seat", "role", "policy")
"""Of a rollout: [steps, games * rows]."""
BY_GAME = ("reward", "skipped", "terminated", "truncated", "final_value", "final_role")
"""Of a rollout: [steps, games, ...]."""
COUNTS = ("decisions", "opponent_rows", "cuts", "ends", "unfinished", "heard")
"""How many there are, in the array `counts`. Unfinished: games that were left out because they took
too long. Heard: the number of the last message that the actor had heard."""


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
    found["seated"] = (np.int64, ((collector.slots.slots if collector.slots else 0) + 1,))
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


def pack(collector: Collector, out: Arrays, **counts: int) -> None:
    """Copy the last rollout of a collector; not what is carried in front of it.

    counts: those of `COUNTS` that the rollout itself does not tell.
    """
    rollout, first = collector.rollout, collector.transitions.max_pending
    for name, array in rollout.rows().items():
        out[name][...] = array[first:].reshape(out[name].shape)
    for name in (*BY_ROW, *BY_GAME):
        out[name][...] = getattr(rollout, name)
    out["counted"][...] = collector.pool.counts()
    out["seated"][...] = collector.pool.seated(len(out["seated"]))
    truncations = {one.name: getattr(rollout.truncations, one.name) for one in fields(Truncations)}
    batches = collector.finished.batches
    ended = {one.name: [getattr(batch, one.name) for batch in batches] for one in fields(Episodes)}
    known = {"cuts": put(out, "cut.", truncations), "ends": put(out, "end.", ended), **counts}
    out["counts"][:] = [known.get(name, 0) for name in COUNTS]


def put(out: Arrays, before: str, lists: Mapping[str, Sequence[npt.NDArray[Any]]]) -> int:
    """Copy lists of arrays one behind the other; return how many entries that makes."""
    count = 0
    for name, parts in lists.items():
        count = sum(map(len, parts))
        if count:
            np.concatenate(parts, out=out[before + name][:count])
    return count


def counts_of(arrays: Arrays) -> dict[str, int]:
    """How many decisions, rows of opponents, cuts and ends there are in a packed rollout."""
    return dict(zip(COUNTS, arrays["counts"].tolist(), strict=True))


class Gathered:
    """Packed rollouts of several stretches of games, put together as if one pool had played them.

    Whatever is in the order of time comes in the order of (step, stretch).
    """

    def __init__(self, collector: Collector) -> None:
        """Begin with a rollout in which nobody decided anything."""
        self.collector, rollout = collector, collector.rollout
        rollout.policy.fill(NOBODY)
        rollout.seat.fill(-1)
        for array in (rollout.reward, rollout.skipped, rollout.terminated, rollout.truncated):
            array.fill(0)
        rollout.final_value.fill(np.nan)
        rollout.final_role.fill(-1)
        self._cuts: list[Stretch] = []
        self._ends: list[Stretch] = []

    def add(self, arrays: Arrays, first_game: int, games: int) -> None:
        """Copy the rollout of some games to its place."""
        collector, rollout, rules = (
            self.collector,
            self.collector.rollout,
            self.collector.pool.rules,
        )
        steps, every = collector.steps, collector.pool.num_games * rules.rows
        rows = slice(first_game * rules.rows, (first_game + games) * rules.rows)
        here, first = slice(first_game, first_game + games), collector.transitions.max_pending
        for name, array in rollout.rows().items():
            array[first:].reshape(steps, every, *array.shape[1:])[:, rows] = arrays[name]
        for name in BY_ROW:
            getattr(rollout, name)[:, rows] = arrays[name]
        for name in BY_GAME:
            getattr(rollout, name)[:, here] = arrays[name]
        self._add_cuts(arrays, first_game, games)
        self._add_ends(arrays, first_game)

    def _add_cuts(self, arrays: Arrays, first_game: int, games: int) -> None:
        count, seats = counts_of(arrays)["cuts"], self.collector.pool.rules.seats
        if not count:
            return
        found = {one.name: arrays[f"cut.{one.name}"][:count].copy() for one in fields(Truncations)}
        game, seat = np.divmod(found["where"], seats)
        step, game = np.divmod(game, games)
        every = self.collector.pool.num_games
        found["where"] = (step * every + first_game + game) * seats + seat
        self._cuts.append((first_game, step, found))

    def _add_ends(self, arrays: Arrays, first_game: int) -> None:
        count = counts_of(arrays)["ends"]
        if not count:
            return
        found = {one.name: arrays[f"end.{one.name}"][:count].copy() for one in fields(Episodes)}
        step = steps_of(found["game"], arrays["terminated"] | arrays["truncated"])
        found["game"] += np.int32(first_game)
        self._ends.append((first_game, step, found))

    def finish(self) -> None:
        """Hand over cuts and finished games, in the order in which one pool would have had them."""
        self.collector.rollout.truncations, self.collector.finished = (
            Truncations(),
            FinishedEpisodes(),
        )
        if self._cuts:
            for name, joined in in_order(self._cuts).items():
                getattr(self.collector.rollout.truncations, name).append(joined)
        if self._ends:
            self.collector.finished.batches.append(Episodes(**in_order(self._ends)))


def in_order(stretches: list[Stretch]) -> dict[str, npt.NDArray[Any]]:
    """Join entries of several stretches of games in the order of (step, stretch)."""
    stretches = sorted(stretches, key=lambda one: one[0])
    order = np.argsort(np.concatenate([step for _, step, _ in stretches]), kind="stable")
    names = stretches[0][2]
    return {name: np.concatenate([one[2][name] for one in stretches])[order] for name in names}


def steps_of(game: npt.NDArray[np.int32], ended: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """In which step every one of some games ended, those of a place in the order of time.

    game: which place each was in. ended: [steps, places]; it may tell of games that nobody has.
    """
    place, step = np.nonzero(ended.T)
    order = np.argsort(game, kind="stable")
    mine = game[order]
    nth = np.arange(len(mine)) - np.searchsorted(mine, mine)
    found = np.empty(len(game), np.intp)
    found[order] = step[np.searchsorted(place, mine) + nth]
    return found
