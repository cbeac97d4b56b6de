"""A pool whose environments live in worker processes; `pools.custom.make` is its reference."""

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
from sparring.pools.workers.parts import Part, parts_of, shared_shapes
from sparring.pools.workers.supervisor import Crew, Limits
from sparring.processes import SharedArrays


class WorkerPool(CustomPool):
    """Games of a factory's in processes; the rows lie in memory that all of them see.

    Its slots are groups of games: each is stepped on as soon as it is answered, whatever the others
    do. A worker that fails is started again with new games; those that were running are cut without
    a value: `truncated`, and not among `final_game`.
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
        """Start workers and let them make their environments.

        word: the factory's name, module:factory or file.py:factory.
        groups: 0 for two per worker.
        """
        trusted.allow(
            word
        )  # by whoever calls this; the words of a run's file were asked for before
        parts = parts_of(games, workers, groups)
        job = {
            "word": word,
            "seed": seed,
            "first_game": first_game,
            "all_games": games,
            "memory": memory,
        }
        limits = Limits(step_timeout_s, start_timeout_s, max_restarts, max_restarts_in_a_row)
        crew = Crew(job, parts, limits)
        # The crew does not know the pool: it ends with it, also at the end of the program.
        self._finalizer = weakref.finalize(self, crew.end)
        rules = CustomRules(**crew.hello["hello"])
        shapes = shared_shapes(rules, games, workers, memory)
        shared = SharedArrays(shapes)
        self._crew, self._action, self._busy = crew, shared["action"], shared["busy"]
        buffers = SharedBuffers.of(shared.items())
        crew.share(shared)
        super().__init__(rules, games, seed, crew.hello["agents"], memory, buffers=buffers)
        self.first_game = first_game
        self.word, self.workers, self.slots = word, workers, parts[-1].slot + 1
        self._slots = [[part for part in parts if part.slot == slot] for slot in range(self.slots)]
        self._stretches = [self._stretch(own) for own in self._slots]
        self._sends = [0] * self.slots
        """Steps of every group since the reset, where they are stepped one by one."""
        self._sent: set[int] = set()
        """Groups whose answer was not received yet."""
        self._told_at, self._told_busy = time.monotonic(), 0.0

    def _stretch(self, parts: Sequence[Part]) -> CustomBatch:
        first, last = parts[0], parts[-1]
        games = last.first + last.games - first.first
        return CustomBatch(
            self.rules, games, self.memory_bytes, whole=self._batch, first=first.first
        )

    # Stepping

    def step(self, action: npt.ArrayLike) -> CustomBatch:
        """Answer all rows at once and wait for all. An illegal action refuses the whole step."""
        parts, batch = self._crew.parts, self._batch
        self._check_idle(range(self.slots))
        given = self._checked(action, batch)
        self._running = False
        self.steps += 1
        self._ask(given, batch, parts)
        self._crew.wait(parts)
        self._finish(batch, parts)
        self._running = True
        return batch

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        """Hand over a group's actions; `recv` or `ready` wait for what comes of them."""
        batch = self._stretches[slot]
        self._check_idle([slot])
        self._sends[slot] += 1
        self.steps = max(self._sends)
        self._ask(self._checked(action, batch), batch, self._slots[slot])
        self._sent.add(slot)

    def ready(self, slots: Iterable[int], timeout_s: float | None = None) -> list[int]:
        """Wait until any of these groups has stepped; return those that have.

        timeout_s: how long at most; none may be ready then.
        """
        asked = list(slots)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        self._crew.look(0.0)
        while not (found := [slot for slot in asked if self._is_done(slot)]):
            left = 1.0 if until is None else until - time.monotonic()
            if left <= 0:
                break
            self._crew.look(left)
        return found

    def recv(self, slot: int = 0) -> CustomBatch:
        parts, batch = self._slots[slot], self._stretches[slot]
        if slot not in self._sent:
            return batch
        self._crew.wait(parts)
        self._sent.discard(slot)
        self._finish(batch, parts)
        return batch

    def batch(self, slot: int | None = None) -> CustomBatch:
        return self._batch if slot is None else self._stretches[slot]

    def _is_done(self, slot: int) -> bool:
        return not any(part.asked for part in self._slots[slot])

    def _check_idle(self, slots: Iterable[int]) -> None:
        if not self._running:
            raise IllegalActionError("no game is running; call reset() first")
        for slot in self._sent.intersection(slots):
            raise IllegalActionError(f"group {slot} is being stepped; receive it first")

    def _ask(self, given: npt.NDArray[Any], batch: CustomBatch, parts: Sequence[Part]) -> None:
        first = batch.first * self.rules.rows
        self._action[first : first + len(given)] = given
        for part in parts:
            self._crew.step(part)

    def _finish(self, batch: CustomBatch, parts: Sequence[Part]) -> None:
        """Read what workers have written; games that were lost are cut, unseen."""
        assert batch.buffers is not None
        batch.take(batch.buffers)
        lost = None
        gone = [part for part in parts if part.anew]
        if gone:
            lost = np.concatenate([np.arange(p.first, p.first + p.games) for p in gone])
            lost -= batch.first
            batch.truncated[lost] = True
            for part in gone:
                part.anew = False
        self._settle(batch, lost)

    def _reset(self, seed: int | None) -> None:
        crew, parts = self._crew, self._crew.parts
        crew.wait(parts)
        self._sent.clear()
        self._sends = [0] * self.slots
        if seed is not None:
            crew.job["seed"] = seed  # what begins later because of a fault differs, too
        seeds = seeds_of(seed, self.first_game, self.num_games)
        for part in parts:
            crew.begin(part, seeds[part.first : part.first + part.games])
        crew.wait(parts)
        for batch in (self._batch, *self._stretches):
            assert batch.buffers is not None
            batch.take(batch.buffers)

    def _step(self, action: npt.NDArray[Any]) -> None:
        raise NotImplementedError("workers step")

    # Everything else

    def check_flags(self, flags: Iterable[str]) -> None:
        """Refuse flags that the envs have no place for; nothing changes."""
        self._say(Message("demand", {"flags": list(flags)}))

    def _set_config(self, flags: Mapping[str, Any]) -> None:
        crew, before = self._crew, self._crew.flags
        crew.flags = {**before, **flags}  # first: a worker that dies of them is told by its job
        try:
            self._say(Message("flags", {"flags": dict(flags)}))
        except ConfigError:
            crew.flags = before
            raise

    def _say(self, message: Message) -> None:
        try:
            message.pack()
        except TypeError:
            told = {message.name: message.payload["flags"]}
            raise ConfigError(
                f"flags {told} cannot be sent to worker processes; give numbers, texts, lists"
            ) from None
        refused = self._crew.tell_all(message)
        if refused:
            raise ConfigError(refused)

    @property
    def restarts(self) -> int:
        return self._crew.restarts

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._crew.workers]

    def memory_mib(self) -> float:
        return self._crew.memory_mib()

    def stats(self) -> dict[str, float]:
        """Failures so far, memory, and which share of the time since the last call was waited."""
        now, busy = time.monotonic(), float(self._busy[:, 0].sum())
        passed = max(now - self._told_at, 1e-9) * self.workers
        idle = min(max(1 - (busy - self._told_busy) / passed, 0.0), 1.0)
        self._told_at, self._told_busy = now, busy
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
