"""Games on CPU threads for a learner on the GPU: rows cross the bus as bytes, in turns.

The games are cut into slots. While the network answers one, the threads step the other. Rows are
copied straight from the pool's own memory, which the driver pins; actions come back the same way.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sparring.errors import ConfigError, SparringError
from sparring.pools.lineups import LEARNER
from sparring.pools.native import Batch, Pool

if TYPE_CHECKING:
    from sparring.learn.fused import FusedPPO


LEAST_SLOTS = 2
"""With one there would be nothing to step while the network thinks."""


class HostGames:
    """A CPU pool with the face that the fused learner expects of its games."""

    def __init__(self, pool: Pool, device: str) -> None:
        if pool.slots < LEAST_SLOTS or pool.num_games % pool.slots:
            raise ConfigError(
                f"{pool.slots} slots: give at least {LEAST_SLOTS}, which divide "
                f"{pool.num_games} games"
            )
        self.pool, self.rules, self.can = pool, pool.rules, pool.can
        self.num_games = self.each = pool.num_games
        self.seeds, self.device = (pool.seed,), torch.device(device)
        self.frozen = torch.zeros(1, dtype=torch.uint8, device=self.device)
        self.slot_rows = pool.num_games // pool.slots * pool.rules.rows
        self._events = [torch.cuda.Event() for _ in range(pool.slots)]  # type: ignore[no-untyped-call]
        native = pool._native
        arrays = (native.obs, native.legal.view(np.int64), native.policy)
        self._rows = [torch.from_numpy(pinned(array, self)) for array in arrays]

    def reset(self) -> None:
        """Start a new episode in every game."""
        self.pool.reset()

    def check(self) -> None:
        """Do nothing: a CPU pool refuses what cannot be played on the spot."""

    def audit(self) -> str:
        """Return what is wrong with any of the games, "" if nothing."""
        return self.pool.audit()

    def state(self, member: int = 0) -> bytes:
        """Return all games."""
        return self.pool.state()

    def load_state(self, raw: bytes, member: int = 0) -> None:
        """Continue from `state()`."""
        self.pool.load_state(raw)

    def play(self, learner: FusedPPO) -> None:
        """Fill the learner's rollout."""
        record = self._record(learner)
        slots = range(self.pool.slots)
        for step in range(learner.collect.steps):
            for slot in slots:
                if step:
                    record.keep(step - 1, slot, self.pool.recv(slot))
                self._ask(learner, step, slot, record)
            for slot in slots:
                self._events[slot].synchronize()
                at = self._slice(slot)
                self.pool.send(record.action[at], slot)
        for slot in slots:
            record.keep(learner.collect.steps - 1, slot, self.pool.recv(slot))
        record.upload(learner)

    def _record(self, learner: FusedPPO) -> Record:
        if not hasattr(self, "_kept"):
            self._kept = Record(self, learner.collect.steps)
        self._kept.clear()
        return self._kept

    def _slice(self, slot: int) -> slice:
        return slice(slot * self.slot_rows, (slot + 1) * self.slot_rows)

    def _ask(self, learner: FusedPPO, step: int, slot: int, record: Record) -> None:
        """Send the rows of a slot, have them answered, and call the actions back."""
        rollout, rows = learner.rollout, self._slice(slot)
        at = slice(rollout.at(step).start + rows.start, rollout.at(step).start + rows.stop)
        obs, legal, policy = self._rows
        rollout.obs[at].copy_(obs[rows], non_blocking=True)
        rollout.legal[at].copy_(legal[rows], non_blocking=True)
        rollout.policy[step, rows].copy_(policy[rows], non_blocking=True)
        batch = self.pool.batch(slot)
        record.seat[step, rows], record.role[step, rows] = batch.seat, batch.role
        learner.answer(step, rows)
        record.actions[rows].copy_(rollout.action[at], non_blocking=True)
        self._events[slot].record()


class Record:
    """What a rollout keeps on the host until its end."""

    def __init__(self, games: HostGames, steps: int) -> None:
        rules, count = games.rules, games.num_games
        rows, seats = count * rules.rows, rules.seats
        self.games, self.rules = games, rules
        self._tensors: dict[str, Tensor] = {}

        def make(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
            self._tensors[name] = torch.zeros(shape, dtype=dtype, pin_memory=True)
            return self._tensors[name].numpy()

        self.actions = torch.zeros(rows, dtype=torch.int32, pin_memory=True)
        self.action: np.ndarray[Any, Any] = self.actions.numpy()
        self.seat = make("seat", (steps, rows), torch.int8)
        self.role = make("role", (steps, rows), torch.int8)
        self.reward = make("reward", (steps, count, seats, len(rules.roles)), torch.float32)
        self.skipped = make("skipped", (steps, count, seats), torch.uint16)
        self.terminated = make("terminated", (steps, count), torch.bool)
        self.truncated = make("truncated", (steps, count), torch.bool)
        self.earned = make("earned", (count, 4), torch.float32)
        self.cut_obs = make("cut_obs", (1, rows, rules.obs_bytes), torch.uint8)
        self.cut_at = make("cut_at", (1, rows), torch.int32)
        self.cut_count = make("cut_count", (1,), torch.int32)

    def clear(self) -> None:
        """Forget the games that ended before."""
        self.earned[:] = 0
        self.cut_count[:] = 0

    def keep(self, step: int, slot: int, batch: Batch) -> None:
        """Store what a step of a slot brought."""
        games = len(batch.terminated)
        at = slice(slot * games, (slot + 1) * games)
        self.reward[step, at], self.skipped[step, at] = batch.reward, batch.skipped
        self.terminated[step, at], self.truncated[step, at] = batch.terminated, batch.truncated
        ended = batch.final_game
        if not len(ended):
            return
        mine = batch.final_policy == LEARNER
        sums = self.earned[at]
        sums[ended, 0] += 1
        sums[ended, 1] += batch.final_length
        sums[ended, 2] += mine.sum(1)
        sums[ended, 3] += np.where(mine, batch.final_score, 0).sum(1)
        if batch.truncated.any():
            self._keep_cuts(step, at.start, batch)

    def _keep_cuts(self, step: int, first: int, batch: Batch) -> None:
        """Note the observations from which the worth of cut games is estimated."""
        seats = self.rules.seats
        final_obs, final_mask = batch.final_obs, batch.final_mask
        for place, game in enumerate(batch.final_game):
            if not batch.truncated[game]:
                continue
            movers = np.flatnonzero(final_mask[place].any(axis=1))
            for seat in movers:
                at = int(self.cut_count[0])
                self.cut_count[0] += 1
                if at >= self.cut_at.shape[1]:
                    continue
                where = (step * self.games.num_games + first + int(game)) * seats + int(seat)
                self.cut_at[0, at] = 2 * where + int(self.rules.zero_sum and len(movers) == 1)
                self.cut_obs[0, at] = final_obs[place, seat]

    def upload(self, learner: FusedPPO) -> None:
        """Bring everything to the device; the rows are there already."""
        for name, tensor in self._tensors.items():
            getattr(learner.rollout, name).copy_(tensor, non_blocking=True)


def pinned(array: np.ndarray[Any, Any], owner: object) -> np.ndarray[Any, Any]:
    """Have the driver pin memory that is not its own, as long as the owner lives."""
    runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    address = array.ctypes.data
    code = runtime.cudaHostRegister(address, array.nbytes, 0)
    if int(code):
        raise SparringError(f"cudaHostRegister: {code}; the pool's memory cannot be pinned")
    weakref.finalize(owner, runtime.cudaHostUnregister, address)
    return array
