"""A rollout as arrays of fixed shapes, which an actor fills and the learner reads.

Arrays of ended and truncated games are as long as they could get; unused pages take no memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.learn.collect import Collector
from sparring.learn.rollout import RECORD, Episodes, Rollout, Truncations
from sparring.pools.lineups import NO_POLICY
from sparring.processes import Shapes

Arrays = Mapping[str, npt.NDArray[Any]]
Entries = tuple[int, npt.NDArray[np.intp], dict[str, npt.NDArray[Any]]]
"""Entries of a slice of games: its first game, the step of every entry, and arrays by name."""
BY_ROW = ("seat", "role", "policy")
"""Rollout arrays [steps, games * rows]."""
BY_GAME = ("reward", "skipped", "terminated", "truncated", "final_value", "final_role")
"""Rollout arrays [steps, games, ...]; see `by_game`."""
COUNTS = ("decisions", "opponent_rows", "cuts", "ends", "unfinished", "last_message")
"""Entries of the array `counts`. unfinished: games left out because they took longer than the
rollout. last_message: number of the last message that the actor had applied."""


def by_game(rollout: Rollout) -> tuple[str, ...]:
    """Names of the arrays [steps, games, ...]: with hindsight also the results of goals."""
    return BY_GAME if rollout.record is None else (*BY_GAME, RECORD)


def packed_shapes(collector: Collector) -> Shapes:
    """Shapes of the packed rollouts of a collector."""
    rollout, pool, rules = collector.rollout, collector.pool, collector.pool.rules
    steps, games, rows = collector.steps, pool.num_games, pool.num_games * rules.rows
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {"counts": (np.int64, (len(COUNTS),))}
    for name, array in rollout.rows().items():
        shapes[name] = (array.dtype, (steps, rows, *array.shape[1:]))
    for name in (*BY_ROW, *by_game(rollout)):
        array = getattr(rollout, name)
        shapes[name] = (array.dtype, array.shape)
    shapes["counted"] = (np.int64, (len(rules.counters),))
    shapes["work"] = (np.float64, (len(collector.work),))
    shapes["seated"] = (np.int64, ((collector.slots.slots if collector.slots else 0) + 1,))
    most = steps * games
    shapes["cut.where"] = (np.int64, (most * rules.seats,))
    shapes["cut.obs"] = (np.uint8, (most * rules.seats, pool.row_bytes))
    shapes["cut.mask"] = (np.uint8, (most * rules.seats, rules.actions))
    shapes["cut.mirrored"] = (np.bool_, (most * rules.seats,))
    ends: dict[str, Any] = {"game": np.int32, "length": np.int32, "end": np.uint8}
    shapes |= {f"end.{name}": (kind, (most,)) for name, kind in ends.items()}
    shapes["end.score"] = (np.float32, (most, rules.seats))
    shapes["end.policy"] = (np.int16, (most, rules.seats))
    return shapes


def pack(collector: Collector, out: Arrays, **counts: int) -> None:
    """Copy the last rollout of a collector, without the decisions carried in front of it.

    counts: entries of `COUNTS` that the rollout does not contain.
    """
    rollout, first = collector.rollout, collector.transitions.max_pending
    for name, array in rollout.rows().items():
        out[name][...] = array[first:].reshape(out[name].shape)
    for name in (*BY_ROW, *by_game(rollout)):
        out[name][...] = getattr(rollout, name)
    out["counted"][...] = collector.pool.counts()
    out["work"][:] = list(collector.work.values())
    out["seated"][...] = collector.pool.seated(len(out["seated"]))
    cuts = {one.name: getattr(rollout.truncations, one.name) for one in fields(Truncations)}
    batches = collector.finished.batches
    ended = {one.name: [getattr(batch, one.name) for batch in batches] for one in fields(Episodes)}
    known = {"cuts": put(out, "cut.", cuts), "ends": put(out, "end.", ended), **counts}
    out["counts"][:] = [known.get(name, 0) for name in COUNTS]


def put(out: Arrays, prefix: str, lists: Mapping[str, Sequence[npt.NDArray[Any]]]) -> int:
    """Concatenate lists of arrays into the arrays of this prefix; return the number of entries."""
    count = 0
    for name, parts in lists.items():
        count = sum(map(len, parts))
        if count:
            np.concatenate(parts, out=out[prefix + name][:count])
    return count


def counts_of(arrays: Arrays) -> dict[str, int]:
    """The counts of a packed rollout by name."""
    return dict(zip(COUNTS, arrays["counts"].tolist(), strict=True))


class RolloutAssembler:
    """Puts packed rollouts of several slices of games together, as if one pool had played them.

    Entries in order of time are sorted by (step, slice).
    """

    def __init__(self, collector: Collector) -> None:
        """Start with a rollout without decisions."""
        self.collector, rollout = collector, collector.rollout
        rollout.policy.fill(NO_POLICY)
        rollout.seat.fill(-1)
        for array in (rollout.reward, rollout.skipped, rollout.terminated, rollout.truncated):
            array.fill(0)
        rollout.final_value.fill(np.nan)
        rollout.final_role.fill(-1)
        if rollout.record is not None:
            rollout.record.fill(0)
        self._cuts: list[Entries] = []
        self._ends: list[Entries] = []

    def add(self, arrays: Arrays, first_game: int, games: int) -> None:
        """Copy the rollout of a slice of games."""
        collector, rollout = self.collector, self.collector.rollout
        rules = collector.pool.rules
        steps, every = collector.steps, collector.pool.num_games * rules.rows
        rows = slice(first_game * rules.rows, (first_game + games) * rules.rows)
        game_range, first = slice(first_game, first_game + games), collector.transitions.max_pending
        for name, array in rollout.rows().items():
            array[first:].reshape(steps, every, *array.shape[1:])[:, rows] = arrays[name]
        for name in BY_ROW:
            getattr(rollout, name)[:, rows] = arrays[name]
        for name in by_game(rollout):
            getattr(rollout, name)[:, game_range] = arrays[name]
        self._add_cuts(arrays, first_game, games)
        self._add_ends(arrays, first_game)

    def _add_cuts(self, arrays: Arrays, first_game: int, games: int) -> None:
        count, seats = counts_of(arrays)["cuts"], self.collector.pool.rules.seats
        if not count:
            return
        entries = {
            one.name: arrays[f"cut.{one.name}"][:count].copy() for one in fields(Truncations)
        }
        game, seat = np.divmod(entries["where"], seats)
        step, game = np.divmod(game, games)
        every = self.collector.pool.num_games
        entries["where"] = (step * every + first_game + game) * seats + seat
        self._cuts.append((first_game, step, entries))

    def _add_ends(self, arrays: Arrays, first_game: int) -> None:
        count = counts_of(arrays)["ends"]
        if not count:
            return
        entries = {one.name: arrays[f"end.{one.name}"][:count].copy() for one in fields(Episodes)}
        step = steps_of(entries["game"], arrays["terminated"] | arrays["truncated"])
        entries["game"] += np.int32(first_game)
        self._ends.append((first_game, step, entries))

    def finish(self) -> None:
        """Pass truncations and finished games to the collector, in the order of one pool."""
        self.collector.rollout.truncations = Truncations()
        if self._cuts:
            for name, joined in in_order(self._cuts).items():
                getattr(self.collector.rollout.truncations, name).append(joined)
        if self._ends:
            self.collector.finished.batches.append(Episodes(**in_order(self._ends)))


def in_order(slices: list[Entries]) -> dict[str, npt.NDArray[Any]]:
    """Join entries of several slices of games, sorted by (step, slice)."""
    slices = sorted(slices, key=lambda one: one[0])
    order = np.argsort(np.concatenate([step for _, step, _ in slices]), kind="stable")
    names = slices[0][2]
    return {name: np.concatenate([one[2][name] for one in slices])[order] for name in names}


def steps_of(game: npt.NDArray[np.int32], ended: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Step in which each finished game ended.

    game: index of the game of every entry, in order of time per index. ended: [steps, games], which
    may contain more ends than there are entries.
    """
    index, step = np.nonzero(ended.T)
    order = np.argsort(game, kind="stable")
    ordered = game[order]
    nth = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    steps = np.empty(len(game), np.intp)
    steps[order] = step[np.searchsorted(index, ordered) + nth]
    return steps
