"""The games of a learner on a GPU: with it on the device, or on CPU threads beside it."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.learn.fused.rollout import EARNED, FusedRollout
from sparring.learn.learner import Overrides, apply_game_overrides
from sparring.learn.rollout import movers_of, open_episodes
from sparring.pools.batch import Batch
from sparring.pools.cuda import CudaPool
from sparring.pools.cuda.memory import put_memory
from sparring.pools.lineups import LEARNER, Mixes
from sparring.pools.native import Pool

MIN_SLOTS = 2
"""With one, no games could step while the network computes."""


Act = Callable[[int, slice], None]
"""Writes actions, log-probabilities and values of some rows of a step into the rollout."""


class DeviceGames:
    """Games on the same GPU. A rollout does not synchronize."""

    captures = True
    """Whether a whole rollout can be a CUDA graph."""
    gpu_alone = True
    """Whether a rollout is all GPU time."""

    def __init__(self, pool: CudaPool, custom_rules: Sequence[Rules] = ()) -> None:
        """Wrap a pool. custom_rules: by member, if their flags differ."""
        self.pool, self.rules, self.device = pool, pool.rules, pool.device
        """Rules of the first member; those of the others have the same sizes."""
        self.custom_rules = tuple(custom_rules) or (pool.rules,) * len(pool.seeds)
        """Rules by member, without changes by phases."""
        self.seeds, self.num_games, self.each = pool.seeds, pool.num_games, pool.each
        """One seed and `each` games per member."""
        self.at_once = pool.each * pool.rules.rows
        """Rows of a member per forward pass."""
        self.frozen = pool.frozen
        """By game, not 0 after an illegal action."""
        self.reset, self.check = pool.reset, pool.check
        self.state, self.load_state = pool.state, pool.load_state
        self.policies, self.set_mixes, self.seated = pool.policies_of, pool.set_mixes, pool.seated
        if pool.names("EpisodeSums") != list(EARNED):
            raise SparringError(
                "the fields of EpisodeSums in csrc/cuda/pool.cuh differ from EARNED"
            )

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Apply overrides to a member's games."""
        apply_game_overrides(self.pool, overrides, member=member)

    def play(self, rollout: FusedRollout, act: Act) -> None:
        fresh = self.pool.batch().rows()
        rollout.earned.zero_()
        rollout.met.zero_()
        rollout.cut_count.zero_()
        self.pool.clear_counts()
        for name, to in rollout.rows_of(0).items():
            to.copy_(fresh[name])
        for step in range(rollout.steps):
            rollout.keep_truth(step, self.pool.tables)
            act(step, slice(0, rollout.rows))
            self._remember(rollout, step)
            last = step == rollout.steps - 1
            self.pool.step_into(
                legal=rollout.legal[rollout.at(step)],
                action=rollout.given(step),
                rows=fresh if last else rollout.rows_of(step + 1),
                outcome=rollout.outcome_of(step),
                ends=rollout.ends(step),
                step=step,
                learner=LEARNER,
                met=rollout.met,
                policies=rollout.policies,
                final_legal=rollout.final_legal[step] if rollout.final_legal is not None else None,
            )
        rollout.counts.copy_(self.pool.counted())

    def _remember(self, rollout: FusedRollout, step: int) -> None:
        """Copy the new memory of every seat to the pool, before the games step."""
        if rollout.remembered is not None:
            put_memory(
                self.pool.memories,
                rollout.remembered,
                rollout.seat[step],
                rollout.policy[step],
                rows=self.rules.rows,
                seats=self.rules.seats,
            )


class HostGames:
    """Games on CPU threads: rows are copied to the GPU as bytes, group by group.

    While the network acts for one group, the threads step another. Rows are copied from the pool's
    memory, which is pinned; actions come back the same way.
    """

    captures = gpu_alone = False

    def __init__(self, pool: Pool, device: str) -> None:
        if pool.slots < MIN_SLOTS or pool.num_games % pool.slots:
            raise ConfigError(
                f"{pool.slots} slots: give at least {MIN_SLOTS}, which divide "
                f"{pool.num_games} games"
            )
        if pool.rules.box:
            raise ConfigError(f"{pool.rules.name} has continuous actions: its games go on the GPU")
        self.pool, self.rules, self.device = pool, pool.rules, torch.device(device)
        self.seeds: tuple[int, ...] = (pool.seed,)
        self.custom_rules: tuple[Rules, ...] = (pool.rules,)
        self.num_games = self.each = pool.num_games
        self.at_once = pool.num_games // pool.slots * pool.rules.rows
        self.frozen = torch.zeros(1, dtype=torch.uint8, device=self.device)
        self.reset = pool.reset
        self._record: GameRecorder | None = None
        self._events = [torch.cuda.Event() for _ in range(pool.slots)]  # type: ignore[no-untyped-call]
        native = pool._native
        arrays = (native.obs, native.legal.view(np.int64), native.policy)
        with warnings.catch_warnings():  # the arrays are read-only; so are uses of the tensors
            warnings.simplefilter("ignore", UserWarning)
            self._rows = [torch.from_numpy(pinned(array, self)) for array in arrays]

    def check(self) -> None:
        """Do nothing: a CPU pool raises on illegal actions at once."""

    def policies(self, member: int = 0) -> frozenset[int]:
        """Ids of the policies in line-ups."""
        return self.pool.policies

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        apply_game_overrides(self.pool, overrides)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self.pool.set_mixes(mixes)

    def seated(self, policies: int, member: int = 0) -> npt.NDArray[np.int64]:
        return self.pool.seated(policies)

    def state(self, member: int = 0) -> bytes:
        return self.pool.state()

    def load_state(self, raw: bytes, member: int = 0) -> None:
        self.pool.load_state(raw)

    def play(self, rollout: FusedRollout, act: Act) -> None:
        if self._record is None:
            self._record = GameRecorder(rollout)
        record, slots = self._record, range(self.pool.slots)
        record.clear()
        self.pool.clear_counts()
        for step in range(rollout.steps):
            for slot in slots:
                if step:
                    record.keep(step - 1, slot, self.pool.recv(slot))
                self._upload_rows(rollout, step, slot, record)
                act(step, self._slice(slot))
                self._download_actions(rollout, step, slot, record)
            for slot in slots:
                self._events[slot].synchronize()
                record.remember(self.pool, step, self._slice(slot))
                self.pool.send(record.action[self._slice(slot)], slot)
        for slot in slots:
            record.keep(rollout.steps - 1, slot, self.pool.recv(slot))
        record.counts[0] = self.pool.counts()
        record.upload(rollout)

    def _slice(self, slot: int) -> slice:
        return slice(slot * self.at_once, (slot + 1) * self.at_once)

    def _upload_rows(
        self, rollout: FusedRollout, step: int, slot: int, record: GameRecorder
    ) -> None:
        rows = self._slice(slot)
        at = rollout.at(step, rows)
        obs, legal, policy = self._rows
        rollout.obs[at].copy_(obs[rows], non_blocking=True)
        rollout.legal[at].copy_(legal[rows], non_blocking=True)
        rollout.policy[step, rows].copy_(policy[rows], non_blocking=True)
        if rollout.truth:
            games = slice(rows.start // self.rules.rows, rows.stop // self.rules.rows)
            known = torch.from_numpy(self.pool.tables[games].copy())
            rollout.keep_truth(step, known.to(self.device), rows)
        batch = self.pool.batch(slot)
        record.seat[step, rows], record.role[step, rows] = batch.seat, batch.role

    def _download_actions(
        self, rollout: FusedRollout, step: int, slot: int, record: GameRecorder
    ) -> None:
        rows = self._slice(slot)
        record.actions[rows].copy_(rollout.action[rollout.at(step, rows)], non_blocking=True)
        if rollout.remembered is not None:
            record.remembered[rows].copy_(rollout.remembered[rows], non_blocking=True)
        self._events[slot].record()


Games = DeviceGames | HostGames
"""The games of a learner on a GPU."""


class GameRecorder:
    """Arrays of a rollout that are collected on the host and uploaded at its end."""

    def __init__(self, rollout: FusedRollout) -> None:
        self.rules, self.games, self.policies = rollout.rules, rollout.games, rollout.policies
        self._tensors: dict[str, Tensor] = {}
        pinned = rollout.obs.is_cuda

        def make(name: str) -> np.ndarray[Any, Any]:
            twin: Tensor = getattr(rollout, name)
            self._tensors[name] = torch.zeros(twin.shape, dtype=twin.dtype, pin_memory=pinned)
            return self._tensors[name].numpy()

        self.actions = torch.zeros(rollout.rows, dtype=torch.int32, pin_memory=pinned)
        self.action: np.ndarray[Any, Any] = self.actions.numpy()
        held = rollout.remembered.shape if rollout.remembered is not None else (0, 0)
        self.remembered = torch.zeros(held, pin_memory=pinned)
        self.seat, self.role = make("seat"), make("role")
        self.reward, self.skipped = make("reward"), make("skipped")
        self.terminated, self.truncated = make("terminated"), make("truncated")
        self.earned, self.met, self.counts = make("earned"), make("met"), make("counts")
        self.final_score = make("final_score") if rollout.final_score is not None else None
        self.cut_obs, self.cut_at, self.cut_count = (
            make(name) for name in ("cut_obs", "cut_at", "cut_count")
        )

    def clear(self) -> None:
        """Reset the sums over games that ended."""
        self.earned[:] = 0
        self.met[:] = 0
        self.cut_count[:] = 0

    def remember(self, pool: Pool, step: int, rows: slice) -> None:
        """Copy the new memory of the seats of some rows to the pool."""
        if not self.remembered.numel():
            return
        asked = rows.start + np.flatnonzero(pool._native.policy[rows] >= 0)
        seat, memory = self.seat[step, asked], pool.memory.view(np.float32)
        memory[asked // self.rules.rows, seat] = self.remembered.numpy()[asked]

    def keep(self, step: int, slot: int, batch: Batch) -> None:
        """Store the result of a step of one group."""
        games = len(batch.terminated)
        at = slice(slot * games, (slot + 1) * games)
        self.reward[step, at], self.skipped[step, at] = batch.reward, batch.skipped
        self.terminated[step, at], self.truncated[step, at] = batch.terminated, batch.truncated
        ended = batch.final_game
        if not len(ended):
            return
        if self.final_score is not None:
            self.final_score[step, at][ended] = batch.final_score
        mine = batch.final_policy == LEARNER
        found = {
            "games": 1.0,
            "length": batch.final_length,
            "seats": mine.sum(1),
            "score": np.where(mine, batch.final_score, 0).sum(1),
        }
        for name, of_ended in found.items():
            self.earned[at][ended, EARNED.index(name)] += of_ended
        if not mine.all():
            self.met[0] += open_episodes(batch).met(self.policies, len(self.rules.bots))
        if batch.truncated.any():
            self._store_truncated(step, at.start, batch)

    def _store_truncated(self, step: int, first: int, batch: Batch) -> None:
        """Store the final observations of truncated games."""
        final_obs = batch.final_obs
        movers_by_game = movers_of(self.rules, batch.final_mask)
        rows = self.rules.rows
        for place, one in enumerate(batch.final_game):
            if not batch.truncated[one]:
                continue
            game = first + int(one)
            layer = int(self.cut_count[game])
            self.cut_count[game] += 1
            if layer >= len(self.cut_at):
                continue
            self.cut_at[layer, game * rows : (game + 1) * rows] = -1
            movers = np.flatnonzero(movers_by_game[place])
            for at, seat in enumerate(movers, game * rows):
                where = (step * self.games + game) * self.rules.seats + int(seat)
                self.cut_at[layer, at] = 2 * where + int(self.rules.zero_sum and len(movers) == 1)
                self.cut_obs[layer, at] = final_obs[place, seat]

    def upload(self, rollout: FusedRollout) -> None:
        """Copy all arrays to the device; rows are there already."""
        filled = min(int(self.cut_count.max()), len(self.cut_at))
        for name, tensor in self._tensors.items():
            used = slice(filled) if name in ("cut_obs", "cut_at") else slice(None)
            getattr(rollout, name)[used].copy_(tensor[used], non_blocking=True)


def pinned(array: np.ndarray[Any, Any], owner: object) -> np.ndarray[Any, Any]:
    """Pin an array until the owner is deleted."""
    runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    address = array.ctypes.data
    code = runtime.cudaHostRegister(address, array.nbytes, 0)
    if int(code):
        raise SparringError(f"cudaHostRegister: {code}; the pool's memory cannot be pinned")
    weakref.finalize(owner, runtime.cudaHostUnregister, address)
    return array
