"""CUDA graphs of what is launched again and again, its time, and the figures that it leaves."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

from sparring.errors import SparringWarning
from sparring.factories import describe_error, is_factory
from sparring.learn.fused.games import Games
from sparring.learn.fused.rollout import EARNED, FusedRollout
from sparring.phases import Timing
from sparring.pools.lineups import LEARNER


@contextmanager
def no_garbage() -> Iterator[None]:
    """Disable garbage collection: freeing GPU memory of another learner would end a capture."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Capture:
    """A capture that the host's work may split into several graphs."""

    def __init__(self, pool: Any, errors: str) -> None:
        """pool: memory of the graphs; None: their own. errors: see `Graphs`."""
        graph = torch.cuda.CUDAGraph()
        self.context: Any = torch.cuda.graph(graph, pool=pool, capture_error_mode=errors)
        """Captures within its block."""
        self._options: dict[str, Any] = {"capture_error_mode": errors}
        self._parts: list[Callable[[], object]] = []

    def split(self, work: Callable[[], None]) -> None:
        """End the graph, and begin another one that follows the work."""
        ended: Any = self.context.cuda_graph
        ended.capture_end()
        self._parts += [ended.replay, work]
        self.context.cuda_graph = following = torch.cuda.CUDAGraph()
        following.capture_begin(pool=ended.pool(), **self._options)

    def finish(self) -> tuple[list[Callable[[], object]], Any]:
        """Return all parts in their order, and the memory of the graphs."""
        last: Any = self.context.cuda_graph
        return [*self._parts, last.replay], last.pool()


class Graphs:
    """Captures functions as CUDA graphs and replays them, unless a network cannot be captured."""

    def __init__(self, device: torch.device, kind: str, *, on: bool, eager: str = "") -> None:
        """Start without graphs.

        kind: of the network. on: False launches every kernel from Python.
        eager: why the network cannot be captured, "" if no reason is known.
        """
        self.device, self.kind, self.on = device, kind, on
        self._captured: dict[str, list[Callable[[], object]]] = {}
        """By name, the replays of graphs and what the host does between them."""
        self._capturing: Capture | None = None
        self.errors = "global"
        """Whose forbidden calls end a capture: those of all threads, or "thread_local"."""
        self._pool: Any = None
        self._ran: set[str] = set()
        if on and eager:
            self._give_up(eager)

    def run(self, name: str, work: Callable[[], None]) -> None:
        """Replay a graph. The first call runs without one, which also initializes libraries."""
        if not self.on or name not in self._ran:
            self._ran.add(name)
            work()
        elif name in self._captured or self._capture(name, work):
            for part in self._captured[name]:
                part()
        else:
            work()

    def between(self, work: Callable[[], None]) -> None:
        """Run work of the host: now, or between two graphs where one is being captured."""
        if self._capturing:
            self._capturing.split(work)
        else:
            work()

    def _capture(self, name: str, work: Callable[[], None]) -> bool:
        """Capture a graph; False if a custom network does not allow it. Nothing has run by then."""
        stream = torch.cuda.current_stream(self.device)
        # Temporary memory of a graph is free after it: all graphs share one memory pool.
        self._capturing = capture = Capture(self._pool, self.errors)
        try:
            with no_garbage(), capture.context:
                work()
        except RuntimeError as wrong:
            if not is_factory(self.kind) or isinstance(wrong, torch.OutOfMemoryError):
                raise
            torch.cuda.set_stream(stream)  # a failed capture does not restore it
            self._end_capture()
            self._give_up(describe_error(wrong.__context__ or wrong))
            return False
        finally:
            self._capturing = None
        self._captured[name], self._pool = capture.finish()
        return True

    def _end_capture(self) -> None:
        """Release torch's RNG state of a failed capture by a successful one."""
        with suppress(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.zeros(1, device=self.device)

    def _give_up(self, why: str) -> None:
        """Launch every kernel from Python from now on."""
        self.on = False
        text = (
            f"slower than it could be: net.kind {self.kind} does not fit into a CUDA graph: {why}"
        )
        warnings.warn(SparringWarning(text), stacklevel=4)

    def forget(self) -> None:
        """Drop all graphs, because the launches have changed."""
        torch.cuda.synchronize()
        self._captured.clear()
        self._ran.clear()
        self._pool = None


class Stopwatch:
    """Times rollout and update on the device."""

    def __init__(self, phases: Timing) -> None:
        """phases: gets the seconds of the last update."""
        self.phases = phases
        self._events: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(3)]  # type: ignore[no-untyped-call]
        self.start, self.middle, self.end = (event.record for event in self._events)
        """Called before a rollout, between it and the update, and after that."""
        self._ended_at = time.perf_counter()

    def clear(self) -> None:
        """Reset the seconds."""
        self.phases.seconds = {"rollout": 0.0, "update": 0.0}

    def add(self) -> None:
        """Add the seconds of a finished rollout and update."""
        start, middle, end = self._events
        self.phases.seconds["rollout"] += start.elapsed_time(middle) / 1000
        self.phases.seconds["update"] += middle.elapsed_time(end) / 1000

    def busy(self) -> float:
        """Return the share of the time since the last call in which the GPU was busy."""
        before, self._ended_at = self._ended_at, time.perf_counter()
        spent = sum(self.phases.seconds.values())
        return min(spent / max(self._ended_at - before, 1e-9), 1.0)


def rollout_figures(rollout: FusedRollout, games: Games) -> dict[str, Tensor]:
    """Return counts of a rollout and sums over its finished games, by member."""
    members = rollout.members

    def by_member(of_step: Tensor) -> Tensor:
        return of_step.view(rollout.steps, members, -1).sum((0, 2))

    is_learner, has_policy = rollout.policy == LEARNER, rollout.policy >= 0
    earned = rollout.earned.double().view(members, -1, len(EARNED)).sum(1)
    counts = rollout.counts.double()
    return {
        "decisions": by_member(is_learner),
        "opponent_rows": by_member(has_policy & ~is_learner),
        "forced": by_member(rollout.skipped.int()),
        "frozen": (games.frozen != 0).view(members, -1).sum(1),
        "cuts_dropped": rollout.cuts_dropped().view(members, -1).sum(1),
        **{f"earned_{name}": earned[:, i] for i, name in enumerate(EARNED)},
        **{f"count_{i}": counts[:, i] for i in range(counts.shape[1])},
    }


class Figures:
    """Metrics by name, computed on the device and read on the host."""

    def __init__(self, measure: Callable[[], Mapping[str, Tensor]], members: int) -> None:
        found = measure()
        self._measure, self._names = measure, list(found)
        device = next(iter(found.values())).device
        self.on_device = torch.zeros(members, len(found), dtype=torch.float64, device=device)
        """By member and metric."""
        self._host = torch.zeros(
            self.on_device.shape, dtype=torch.float64, pin_memory=device.type == "cuda"
        )

    def by_name(self, value: Callable[[str], float]) -> Tensor:
        """Return a value for the name of every metric, on the device."""
        return torch.tensor(
            [value(name) for name in self._names], dtype=torch.float64, device=self.on_device.device
        )

    def take(self) -> None:
        """Compute the metrics; may be part of a graph."""
        self.on_device.copy_(torch.stack([one.double() for one in self._measure().values()], 1))

    def fetch(self) -> None:
        """Start the copy to the host; it is complete once the stream is done."""
        self._host.copy_(self.on_device, non_blocking=True)

    def of(self, member: int) -> dict[str, float]:
        """Return the metrics of a member that were fetched last."""
        return dict(zip(self._names, self._host[member].tolist(), strict=True))
