"""Runs of `sparring bench configs` in child processes, one after the other or several at a time.

Runs at the same time share device, cores and memory; any networks and games go together.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.learn.memory import has_replay, memory_uses, row_bytes_of
from sparring.learn.plan import CPU, Plan
from sparring.learn.replay import replay_bytes
from sparring.machine import cores, format_bytes, free_memory
from sparring.messages import Message
from sparring.processes import LOOK_S, Child, wait_any
from sparring.speed.configs import BenchProgress, HaltedError, PlannedRun, facts_of, prepare_folder
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import written

PATIENCE_S = 60.0
"""Time that interrupted runs have to save themselves."""
STOPPING = b"\nstopping: what trains now saves itself; press again to end at once\n"
PROCESS_BYTES = 350 << 20
"""Host memory of a process that has imported torch, with a small network."""
Watch = Callable[[PlannedRun, float, float], None]
"""Called with a run, its progress (0 to 1; 1: final games), and its decisions per second."""


class RunProcess(Child):
    """A child process that trains one run."""

    def __init__(self, run: PlannedRun, progress: BenchProgress, threads: int) -> None:
        prepare_folder(run, progress)
        progress.save(run)
        super().__init__("sparring.speed.run_process", threads=threads)
        self.run, self._last = run, dict[str, Any]()
        self.send(Message("train", written(replace(run.config, threads=threads))))

    def hear(self, watch: Watch) -> None:
        """Handle what it has sent."""
        for message in self.receive():
            if message.name == "progress":
                watch(self.run, message.payload["share"], message.payload["decisions_per_s"])
            else:
                self._last = dict(message.payload)

    def finish(self, progress: BenchProgress) -> None:
        """Save its results; raise HaltedError if another process has stopped it."""
        last = self._last or {"failed": self.exit_reason()}
        self.end()
        if "stopped" in last:
            raise HaltedError(f"{last['stopped']}: {self.run.name} is saved and will go on")
        if "failed" not in last:
            last = {"facts": {**last, **facts_of(Path(self.run.config.runs) / self.run.name)}}
        progress.save(self.run, **last)


def train_runs(
    runs: Sequence[PlannedRun],
    progress: BenchProgress,
    watch: Watch,
    ended: Callable[[PlannedRun], None],
    *,
    together: int = 1,
) -> None:
    """Train runs, some at a time, and save the results of each as it ends.

    Raises HaltedError if a run was stopped; other failures are results, and the next run may start.
    """
    waiting = deque(runs)
    with saving_themselves() as running:
        while waiting or running:
            while waiting and len(running) < together:
                run = waiting.popleft()
                watch(run, 0.0, 0.0)
                running.append(RunProcess(run, progress, threads_of(run.config, together)))
            wait_any(running, LOOK_S)
            for process in list(running):
                process.hear(watch)
                if process.has_ended:
                    running.remove(process)
                    process.finish(progress)
                    ended(process.run)


def threads_of(config: TrainConfig, together: int) -> int:
    """Threads of a run: as set, or an equal share of the cores."""
    return config.threads or max(cores() // together, 1)


@contextmanager
def saving_themselves() -> Iterator[list[RunProcess]]:
    """Yield a list of processes; all in it end with this block. If interrupted, they save first."""
    running: list[RunProcess] = []
    try:
        yield running
    except BaseException:
        if running:
            os.write(2, STOPPING)
        for process in running:
            process.process.send_signal(signal.SIGINT)
        until = time.monotonic() + PATIENCE_S
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.process.wait(max(until - time.monotonic(), 0.0))
        raise
    finally:
        for process in running:
            process.end()


def check_memory_together(runs: Sequence[PlannedRun], together: int) -> None:
    """Refuse runs at a time whose sum does not fit, as far as it is known before they begin."""
    configs = {run.config_name: run.config for run in runs}
    plans = {name: resolve([config], played=False) for name, config in configs.items()}
    needed = {name: bytes_of(plan) for name, plan in plans.items()}
    free = {"memory": free_memory()}
    on_gpu = [plan.device for plan in plans.values() if plan.device != CPU]
    if on_gpu:
        free["memory of the GPU"] = int(torch.cuda.mem_get_info(on_gpu[0])[0])
    for kind, most in enumerate(free.values()):
        sizes = sorted(((needed[run.config_name][kind], run.name) for run in runs), reverse=True)
        largest = sizes[:together]
        if (total := sum(size for size, _ in largest)) > most:
            each = ", ".join(f"{name} {format_bytes(size)}" for size, name in largest)
            raise ConfigError(
                f"together {together}: the largest runs need {format_bytes(total)} of "
                f"{list(free)[kind]} ({each}), and {format_bytes(most)} are free; give a smaller "
                "--together, or fewer collect.games"
            )


def bytes_of(plan: Plan) -> tuple[int, int]:
    """Estimate the bytes of host and GPU memory that a run needs."""
    host, device = (use.bytes_for(plan.collect.games) for use in memory_uses(plan))
    if has_replay(plan):
        rows, records = row_bytes_of(plan), plan.hindsight.relabels
        size = replay_bytes(plan.rules, rows, plan.replay, device=plan.fused, records=records)
        host, device = (host, device + size) if plan.fused else (host + size, device)
    return host + PROCESS_BYTES, device
