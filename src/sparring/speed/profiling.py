"""Profiling of a training: one started for it, or a run of the user that is training now."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.machine import cores
from sparring.speed.curves import CurveReader, RunSpeed
from sparring.speed.evidence import EVALUATION, CallStacks, Evidence, processes_of
from sparring.speed.kernels import IDLE, GpuTime
from sparring.speed.profiled import ProfiledTraining
from sparring.speed.sampling import NO_SYMBOL, NoNativeStacksError, PySpy, SamplerError
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.settings import members_of
from sparring.training.records.overview import Overview
from sparring.usage import is_running, read_usage

POLL_S = 0.2
WARM_S = 3.0
"""Warm-up of a training: graphs are captured, memory is in use, caches are warm."""
MIN_S, MAX_S = 1.0, 5.0
"""How long the training is timed without sampling."""
LATE_S = 1.2
"""How long metrics may take until they are on disk."""
UPDATE_TIMEOUT_S = 60.0
"""How long to wait for an update to end if none did during sampling."""
MIN_UPDATES = 3
"""Updates that an estimate of the sampling cost needs."""
KERNELS = {"seconds": 0.5, "updates": 2}
"""Minimal recording of kernels."""
KERNELS_LIMIT_S = 180.0
UPDATES_LIMIT_S = 3600.0
"""Time limit of sampling for a number of updates."""

NO_EVALUATIONS = "evaluations: left out, in so short a time they would weigh too much"
SEVERAL = "one run was trained where the settings ask for several"
NOT_ASKED = "native code: not asked for; --native on samples it"
NO_UPDATE = "phases and rates: no update ended while it was sampled; raise --seconds"
NO_KERNELS = "kernels of the GPU: only a training that profile starts itself shows them"
NONE_SEEN = "kernels of the GPU: torch's profiler recorded none; is CUPTI installed?"
THREADS = (
    "threads of native code: those that step games and multiply have no Python stack, so "
    "that only the thread which waits for them is sampled"
)

Echo = Callable[[str], None]
Span = tuple[float, float]
"""Start and end of an interval, by the monotonic clock."""


@dataclass(frozen=True)
class SamplingOptions:
    """How long and how often to sample stacks."""

    seconds: float = 20.0
    rate: int = 100
    native: bool = True
    pausing: bool = True
    """Pause the process for every sample; native stacks need it."""
    updates: int = 0
    """Sample for so many updates instead of seconds."""

    @property
    def timeout_s(self) -> float:
        """Seconds after which sampling ends in any case."""
        return UPDATES_LIMIT_S if self.updates else self.seconds


@dataclass(frozen=True)
class ProfileResult:
    """Evidence of a profile, and what sampling cost."""

    evidence: Evidence
    cost: float | None = None
    """Share of the decisions per second lost to sampling; None: unknown. It is as noisy as the
    machine, and may be negative."""
    rate: int = 0
    """Samples per second, 0 where nothing was sampled."""
    native: bool = False
    updates: int = 0
    """Updates that ended during sampling."""


def profile_new_training(
    config: TrainConfig, options: SamplingOptions, echo: Echo
) -> ProfileResult:
    """Start a training with these settings, profile it and end it."""
    with ProfiledTraining(config) as training:
        profiler = TrainingProfiler(
            training.pid, training.folder, options, echo, training.check_running
        )
        training.warm_up(profiler.curves, min(WARM_S, options.seconds), echo)
        undisturbed = profiler.watch()
        try:
            sampled = profiler.sample()
        except SamplerError as error:
            sampled = profiler.sample_from_within(training, str(error))
        if not config.eval.off:
            profiler.not_seen.append(NO_EVALUATIONS)
        if config.population > 1 or config.seeds > 1 or config.vary:
            profiler.not_seen.append(SEVERAL)
        gpu = profiler.record_kernels(training)
        speeds = profiler.read_speeds(undisturbed, sampled)
        facts = {"gpu": gpu.shares, "kernels": gpu.kernels} if gpu else {}
        return profiler.result(members_of(config)[0], speeds, sampled, **facts)


def profile_run(
    folder: Path, config: TrainConfig, pid: int, options: SamplingOptions, echo: Echo
) -> ProfileResult:
    """Profile a run that is training now; the run goes on and is not changed."""

    def check_running() -> None:
        if not is_running(pid):
            raise SparringError(f"{folder} ended while it was profiled; profile a longer run")
        if not folder.is_dir():
            raise SparringError(f"{folder} was removed while it was profiled")

    profiler = TrainingProfiler(pid, folder, options, echo, check_running)
    _, ended = profiler.watch()
    sampled = profiler.sample()
    speeds = profiler.read_speeds((ended - (sampled[1] - sampled[0]), ended), sampled)
    busy, facts = speeds[0].gpu_busy, {}
    if busy is not None:
        profiler.not_seen.append(NO_KERNELS)
        facts["gpu"] = {"at work": busy, IDLE: max(1 - busy, 0.0)}
    return profiler.result(config, speeds, sampled, attached=True, **facts)


class TrainingProfiler:
    """Profiles a training process: times it, samples its stacks, reads its metrics."""

    def __init__(
        self,
        pid: int,
        folder: Path,
        options: SamplingOptions,
        echo: Echo,
        check_running: Callable[[], None],
    ) -> None:
        """echo: prints progress. check_running: raises if the training has ended."""
        self.pid, self.options, self.echo = pid, options, echo
        self.check_running = check_running
        self.folder, self.curves = folder, CurveReader(folder)
        self.native, self.stacks = options.native, CallStacks()
        self.processes = processes_of(pid)
        self.cores = 0.0, 0.0
        """Cores busy with the training, and with other programs."""
        self.not_seen: list[str] = []

    def watch(self) -> Span:
        """Let it train without sampling, which would change rates and busy cores."""
        options = self.options
        pids = [pid for pid, kind in processes_of(self.pid).items() if kind != EVALUATION]
        began, before = time.monotonic(), read_usage(pids)
        updates = max(options.updates // 4, MIN_UPDATES) if options.updates else 0
        self.wait("watching", min(max(options.timeout_s / 4, MIN_S), MAX_S), updates)
        ended = time.monotonic()
        self.cores = read_usage(pids).cores_since(before, max(ended - began, 1e-9))
        return began, ended

    def sample(self) -> Span:
        """Sample the process and its children from outside."""
        try:
            span, notes = self._run_py_spy(), [] if self.options.native else [NOT_ASKED]
        except NoNativeStacksError as error:
            self.native, notes = False, [f"native code: {error}"]
            span = self._run_py_spy()
        self.not_seen += notes
        return span

    def _run_py_spy(self) -> Span:
        options = self.options
        with PySpy(
            self.pid, options.timeout_s, options.rate, native=self.native, pausing=options.pausing
        ) as spy:
            spy.wait_begun()
            began = time.monotonic()
            self.wait("sampling", options.timeout_s, options.updates, stop=lambda: spy.ended)
            ended = time.monotonic()
            self.processes |= processes_of(self.pid)
            self.stacks = spy.stacks()
        return began, ended

    def sample_from_within(self, training: ProfiledTraining, why: str) -> Span:
        """Let a training that we started sample itself, where py-spy is not allowed to."""
        self.echo("sampling: from within")
        began, options = time.monotonic(), self.options
        limit = {"seconds": options.timeout_s, "updates": options.updates, "rate": options.rate}
        stacks = training.request("sample", options.timeout_s + UPDATE_TIMEOUT_S, **limit)
        self.curves.last_update()
        self.stacks, self.native = CallStacks.read(stacks, options.rate), False
        self.processes |= processes_of(self.pid)
        self.not_seen.append(f"native code and other processes: {why}")
        return began, time.monotonic()

    def record_kernels(self, training: ProfiledTraining) -> GpuTime | None:
        """Record the kernels of a GPU, where the network is on one."""
        if not uses_gpu(training.config.device):
            return None
        self.echo("recording: the GPU's kernels")
        try:
            gpu = GpuTime.read(training.request("kernels", KERNELS_LIMIT_S, **KERNELS))
        except ConfigError:
            raise
        except SparringError as error:
            self.not_seen.append(f"kernels of the GPU: {error}")
            return None
        self.curves.last_update()
        if not gpu.kernels:
            self.not_seen.append(NONE_SEEN)
        return gpu if gpu.kernels else None

    def read_speeds(self, undisturbed: Span, sampled: Span) -> tuple[RunSpeed, RunSpeed]:
        """Return the speed without sampling, and during it."""
        self.echo("reading: curves")
        during = self._wait_for_speed(*sampled)
        before = self.curves.speed(*undisturbed)
        return (before if before.updates else during), during

    def _wait_for_speed(self, began: float, ended: float) -> RunSpeed:
        """If no update ended in that time, wait for the next one."""
        while time.monotonic() < ended + LATE_S:
            self.curves.last_update()
            time.sleep(POLL_S)
        self.curves.last_update()
        speed = self.curves.speed(began, ended)
        until = time.monotonic() + UPDATE_TIMEOUT_S
        while not speed.updates and time.monotonic() < until:
            self.check_running()
            time.sleep(POLL_S)
            self.curves.last_update()
            speed = self.curves.speed(began, time.monotonic())
        return speed

    def result(
        self, config: TrainConfig, speeds: tuple[RunSpeed, RunSpeed], sampled: Span, **facts: Any
    ) -> ProfileResult:
        speed, during = speeds
        not_seen = [*self.not_seen, *self._not_sampled(config)]
        not_seen += [] if speed.updates else [NO_UPDATE]
        children = {stack.process for stack in self.stacks.stacks} - {self.pid}
        evidence = Evidence(
            config=config,
            phases=dict(speed.phases),
            decisions_per_s=speed.decisions_per_s,
            samples_per_s=speed.samples_per_s,
            simulations_per_s=speed.simulations_per_s,
            seconds=max(sampled[1] - sampled[0], 1e-9),
            stacks=self.stacks.of_processes({self.pid}),
            child_stacks=self.stacks.of_processes(children),
            processes=self.processes,
            cpu_cores=self.cores[0] or speed.cpu_cores,
            cores=cores(),
            load=self.cores[1],
            path=Overview(self.folder).path_taken,
            not_seen=tuple(not_seen),
        )
        evidence = replace(evidence, **facts)
        cost = sampling_cost(*speeds)
        return ProfileResult(evidence, cost, self.options.rate, self.native, during.updates)

    def _not_sampled(self, config: TrainConfig) -> list[str]:
        found = [THREADS] if config.threads != 1 else []
        nameless = self.stacks.share(lambda stack: stack.frames[-1].name == NO_SYMBOL)
        if nameless > 0.01:
            found.append(
                f"names: {nameless:.0%} of the samples are in libraries without symbols, shown "
                f"as {NO_SYMBOL}"
            )
        if config.cluster:
            found.append("processes on other machines of the cluster")
        return found

    def wait(
        self, doing: str, seconds: float, updates: int, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait for so many seconds or updates, and report progress."""
        first, until = self.curves.last_update(), time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0 and not stop():
            self.check_running()
            update = self.curves.last_update()
            missing = first + updates - update
            if updates and missing <= 0:
                return
            left = f"{missing} update{'s' * (missing > 1)}" if updates else f"{left_s:.0f} s"
            self.echo(f"{doing}: update {update}, {left} left")
            time.sleep(min(POLL_S, left_s))


def sampling_cost(before: RunSpeed, sampled: RunSpeed) -> float | None:
    """Return the share of the speed that sampling cost, None if too few updates tell."""
    if min(before.updates, sampled.updates) < MIN_UPDATES or not before.decisions_per_s:
        return None
    return 1 - sampled.decisions_per_s / before.decisions_per_s
