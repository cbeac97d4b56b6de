"""What a rollout keeps: rows, parts that step by turns, finished games, and where time goes."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.learn.advantage import Assembler
from sparring.pools.native import LEARNER
from sparring.pools.protocol import BatchLike, GamePool


@dataclass
class Phases:
    """Seconds spent, by phase. Always on: two clock reads per phase."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Any:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Return what was counted and start anew."""
        taken, self.seconds = self.seconds, {}
        return taken


class Rollout:
    """The rows of a rollout, behind the decisions carried over from the one before."""

    def __init__(
        self, pool: GamePool, assembler: Assembler, steps: int, device: torch.device
    ) -> None:
        rules, places = pool.rules, assembler.places
        games, rows = pool.num_games, pool.num_games * pool.rules.rows
        # Pinned where a GPU reads them, so that copies run beside other work.
        pinned = device.type == "cuda"
        self.obs = torch.zeros(
            (places, rules.obs_bytes), dtype=torch.uint8, pin_memory=pinned
        ).numpy()
        self.mask = np.zeros((places, rules.actions), np.uint8)
        self.action: npt.NDArray[Any] = np.zeros(places, np.int32)
        if rules.box:  # as drawn, before bounds or squashing
            self.action = np.zeros((places, rules.box), np.float32)
        self.log_prob = np.zeros(places, np.float32)
        self.value = np.zeros(places, np.float32)
        self.seat = np.zeros((steps, rows), np.int8)
        self.role = np.zeros((steps, rows), np.int8)
        self.policy = np.zeros((steps, rows), np.int16)
        self.reward = np.zeros((steps, games, rules.seats, len(rules.roles)), np.float32)
        self.skipped = np.zeros((steps, games, rules.seats), np.uint16)
        self.terminated = np.zeros((steps, games), np.bool_)
        self.truncated = np.zeros((steps, games), np.bool_)
        self.final_value = np.full((steps, games, rules.seats), np.nan, np.float32)

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that have one entry per place."""
        names = ("obs", "mask", "action", "log_prob", "value")
        return {name: getattr(self, name) for name in names}

    def carry(self, assembler: Assembler) -> None:
        """Move the rows of decisions that are still open to the front."""
        rows = assembler.open_rows()
        kept = rows >= 0
        for array in self.rows().values():
            array[: assembler.carried][kept] = array[rows[kept]]


@dataclass
class Part:
    """The games of one slot: which they are, and their rows now."""

    slot: int
    games: slice
    rows: slice
    batch: BatchLike


def parts_of(pool: GamePool) -> list[Part]:
    """One part per slot; a pool without slots is one part."""
    rows = pool.rules.rows
    if pool.slots == 1:
        whole = slice(0, pool.num_games)
        return [Part(0, whole, slice(0, pool.num_games * rows), pool.batch())]
    parts: list[Part] = []
    for slot in range(pool.slots):
        batch = pool.batch(slot)
        first = parts[-1].games.stop if parts else 0
        games = slice(first, first + len(batch.terminated))
        parts.append(Part(slot, games, slice(games.start * rows, games.stop * rows), batch))
    return parts


@dataclass
class Earned:
    """What the games that finished in a rollout brought."""

    scores: list[npt.NDArray[np.float32]] = field(default_factory=list)
    lengths: list[npt.NDArray[np.int32]] = field(default_factory=list)

    def add(self, batch: BatchLike) -> None:
        """Note the games that ended in this step."""
        if len(batch.final_game):
            self.scores.append(batch.final_score[batch.final_policy == LEARNER])
            self.lengths.append(batch.final_length.copy())

    def stats(self) -> dict[str, float]:
        """Means over games."""
        stats = {"games": float(sum(len(x) for x in self.lengths))}
        if self.scores:
            stats["score"] = float(np.concatenate(self.scores).mean())
            stats["length"] = float(np.concatenate(self.lengths).mean())
        return stats
