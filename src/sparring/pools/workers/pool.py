"""A pool whose environments run in worker processes; `pools.custom.make` is its reference."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sparring import trusted
from sparring.errors import ConfigError, IllegalActionError
from sparring.messages import Message
from sparring.pools.custom.base import CustomBatch, CustomPool
from sparring.pools.custom.buffers import SharedBuffers
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import seeds_of
from sparring.pools.protocol import FIRST_READY
from sparring.pools.workers.parts import GamePart, parts_of, shared_shapes
from sparring.pools.workers.supervisor import Limits, WorkerSupervisor
from sparring.processes import SharedArrays


class WorkerPool(CustomPool):
    """Environments of a factory in worker processes; rows lie in shared memory.

    Its slots are groups of games, which are stepped independently. A worker that fails is
    restarted with new games; its running games are truncated without a final observation: they are
    in `truncated`, and not in `final_game`.
    """

    can = frozenset({FIRST_READY})

    def __init__(
        self,
        word: str,
        games: int,
        *,
        workers: int,
        groups: int = 0,
        seed: int = 0,
        first_game: int = 0,
        memory: int = 0,
        step_timeout_s: float = 60.0,
        start_timeout_s: float = 120.0,
        max_restarts: int = 100,
        max_restarts_in_a_row: int = 10,
    ) -> None:
        """Start workers, which make the environments.

        word: name of the factory, module:factory or file.py:factory.
        groups: 0 for two per worker.
        """
        trusted.allow(word)  # the caller names it; names from a run's file were checked before
        parts = parts_of(games, workers, groups)
        job = {
            "word": word,
            "seed": seed,
            "first_game": first_game,
            "all_games": games,
            "memory": memory,
        }
        limits = Limits(step_timeout_s, start_timeout_s, max_restarts, max_restarts_in_a_row)
        supervisor = WorkerSupervisor(job, parts, limits)
        # The supervisor has no reference to the pool: it ends with it, also at the program's end.
        self._finalizer = weakref.finalize(self, supervisor.end)
        rules = CustomRules(**supervisor.description["rules"])
        shapes = shared_shapes(rules, games, workers, memory)
        shared = SharedArrays(shapes)
        self._supervisor, self._action, self._busy = supervisor, shared["action"], shared["busy"]
        buffers = SharedBuffers.of(shared.items())
        supervisor.share(shared)
        agents = supervisor.description["agents"]
        super().__init__(rules, games, seed, agents, memory, buffers=buffers)
        self.first_game = first_game
        self.word, self.workers, self.slots = word, workers, parts[-1].slot + 1
        self._slots = [[part for part in parts if part.slot == slot] for slot in range(self.slots)]
        self._group_batches = [self._view(group) for group in self._slots]
        self._sends = [0] * self.slots
        """Steps of every group since the reset, where they are stepped one by one."""
        self._sent: set[int] = set()
        """Groups that were sent and not received."""
        self._stats_at, self._stats_busy = time.monotonic(), 0.0

    def _view(self, parts: Sequence[GamePart]) -> CustomBatch:
        first, last = parts[0], parts[-1]
        games = last.first + last.games - first.first
        return CustomBatch(
            self.rules, games, self.memory_bytes, whole=self._batch, first=first.first
        )

    # Stepping

    def step(self, action: npt.ArrayLike) -> CustomBatch:
        """Step all games and wait for all. An illegal action refuses the whole step."""
        parts, batch = self._supervisor.parts, self._batch
        self._check_idle(range(self.slots))
        given = self._checked(action, batch)
        self._running = False
        self.steps += 1
        self._submit(given, batch, parts)
        self._supervisor.wait(parts)
        self._finish(batch, parts)
        self._running = True
        return batch

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        """Send a group's actions; `recv` or `ready` wait for the results."""
        batch = self._group_batches[slot]
        self._check_idle([slot])
        self._sends[slot] += 1
        self.steps = max(self._sends)
        self._submit(self._checked(action, batch), batch, self._slots[slot])
        self._sent.add(slot)

    def ready(self, slots: Iterable[int], timeout_s: float | None = None) -> list[int]:
        """Wait until any of these groups has stepped; return those that have.

        timeout_s: longest wait; the list may be empty then.
        """
        asked = list(slots)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        self._supervisor.poll(0.0)
        while not (found := [slot for slot in asked if self._is_done(slot)]):
            left = 1.0 if until is None else until - time.monotonic()
            if left <= 0:
                break
            self._supervisor.poll(left)
        return found

    def recv(self, slot: int = 0) -> CustomBatch:
        parts, batch = self._slots[slot], self._group_batches[slot]
        if slot not in self._sent:
            return batch
        self._supervisor.wait(parts)
        self._sent.discard(slot)
        self._finish(batch, parts)
        return batch

    def batch(self, slot: int | None = None) -> CustomBatch:
        return self._batch if slot is None else self._group_batches[slot]

    def _is_done(self, slot: int) -> bool:
        return not any(part.awaited for part in self._slots[slot])

    def _check_idle(self, slots: Iterable[int]) -> None:
        if not self._running:
            raise IllegalActionError("no game is running; call reset() first")
        for slot in self._sent.intersection(slots):
            raise IllegalActionError(f"group {slot} is being stepped; receive it first")

    def _submit(
        self, given: npt.NDArray[Any], batch: CustomBatch, parts: Sequence[GamePart]
    ) -> None:
        first = batch.first * self.rules.rows
        self._action[first : first + len(given)] = given
        for part in parts:
            self._supervisor.step(part)

    def _finish(self, batch: CustomBatch, parts: Sequence[GamePart]) -> None:
        """Read the results of workers; truncate games that were lost."""
        assert batch.buffers is not None
        batch.take(batch.buffers)
        lost = None
        restarted = [part for part in parts if part.restarted]
        if restarted:
            lost = np.concatenate([np.arange(p.first, p.first + p.games) for p in restarted])
            lost -= batch.first
            batch.truncated[lost] = True
            for part in restarted:
                part.restarted = False
        self._settle(batch, lost)

    def _reset(self, seed: int | None) -> None:
        supervisor, parts = self._supervisor, self._supervisor.parts
        supervisor.wait(parts)
        self._sent.clear()
        self._sends = [0] * self.slots
        if seed is not None:
            supervisor.job["seed"] = seed  # also seeds games that restart after a failure
        seeds = seeds_of(seed, self.first_game, self.num_games)
        for part in parts:
            supervisor.begin(part, seeds[part.first : part.first + part.games])
        supervisor.wait(parts)
        for batch in (self._batch, *self._group_batches):
            assert batch.buffers is not None
            batch.take(batch.buffers)

    def _step(self, action: npt.NDArray[Any]) -> None:
        raise NotImplementedError("workers step")

    # Flags and statistics

    def check_flags(self, flags: Iterable[str]) -> None:
        self._broadcast(Message("check", {"flags": list(flags)}))

    def _set_config(self, flags: Mapping[str, Any]) -> None:
        supervisor, before = self._supervisor, self._supervisor.flags
        # Set first: a worker that fails because of them reads them when it restarts.
        supervisor.flags = {**before, **flags}
        try:
            self._broadcast(Message("flags", {"flags": dict(flags)}))
        except ConfigError:
            supervisor.flags = before
            raise

    def _broadcast(self, message: Message) -> None:
        try:
            message.pack()
        except TypeError:
            flags = {message.name: message.payload["flags"]}
            raise ConfigError(
                f"flags {flags} cannot be sent to worker processes; give numbers, texts, lists"
            ) from None
        refused = self._supervisor.broadcast(message)
        if refused:
            raise ConfigError(refused)

    @property
    def restarts(self) -> int:
        return self._supervisor.restarts

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._supervisor.workers]

    def memory_mib(self) -> float:
        return self._supervisor.memory_mib()

    def stats(self) -> dict[str, float]:
        """Restarts so far, memory, and the idle share of workers since the last call."""
        now, busy = time.monotonic(), float(self._busy[:, 0].sum())
        passed = max(now - self._stats_at, 1e-9) * self.workers
        idle = min(max(1 - (busy - self._stats_busy) / passed, 0.0), 1.0)
        self._stats_at, self._stats_busy = now, busy
        return {
            "workers/restarts": float(self.restarts),
            "workers/idle": idle,
            "workers/memory_mib": self.memory_mib(),
        }

    def _close(self) -> None:
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()
