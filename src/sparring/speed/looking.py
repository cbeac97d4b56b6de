"""Looking at a training, one of our own or somebody's run that is going on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.machine import cores
from sparring.speed.custom import CustomTraining
from sparring.speed.evidence import EVALUATION, Evidence, Stacks, processes_of
from sparring.speed.kernels import IDLE, GpuTime
from sparring.speed.progress import Pace, Progress
from sparring.speed.sampler import NO_SYMBOL, CannotLookError, NoNativeError, Spy
from sparring.training.planning.place import uses_gpu
from sparring.training.planning.settings import members_of
from sparring.training.records.overview import Overview
from sparring.usage import running, usage

POLL_S = 0.2
WARM_S = 3.0
"""A training is under way after so long: graphs are captured, memory is in use, caches are warm."""
MIN_S, MAX_S = 1.0, 5.0
"""How long it is watched without sampling."""
LATE_S = 1.2
"""How long curves may take until they can be read."""
PATIENCE_S = 60.0
"""How long it is waited for an update to end, where none did while it was looked at."""
MIN_UPDATES = 3
"""Fewer say nothing about the cost of looking."""
KERNELS = {"seconds": 0.5, "updates": 2}
"""How long kernels are recorded at least."""
KERNELS_LIMIT_S = 180.0
LONGEST_S = 3600.0
"""How long updates are waited for that were asked for by number."""

BESIDE = "evaluations beside training: left out, in so short a time they would weigh too much"
SEVERAL = "one run was trained where the settings ask for several"
NOT_ASKED = "native code: it was not asked for, --native on looks there"
NO_UPDATE = "phases and rates: no update ended while it was looked at; raise --seconds"
NO_KERNELS = "kernels of the GPU: they are only seen in a training that profile starts itself"
NONE_SEEN = "kernels of the GPU: torch's profiler has seen none; is CUPTI installed?"
THREADS = (
    "threads of native code: those that step games and multiply have no Python stack, so "
    "that only the thread which waits for them is sampled"
)

Echo = Callable[[str], None]
Span = tuple[float, float]
"""When something began and ended, by the monotonic clock."""


@dataclass(frozen=True)
class Wish:
    """How to look."""

    seconds: float = 20.0
    rate: int = 100
    native: bool = True
    pausing: bool = True
    """Stop the process for the moment of every look; native code cannot be seen otherwise."""
    updates: int = 0
    """Sample for so many instead of seconds."""

    @property
    def timeout_s(self) -> float:
        """Seconds after which sampling ends in any case."""
        return LONGEST_S if self.updates else self.seconds


@dataclass(frozen=True)
class Seen:
    """What was seen, and what looking has cost."""

    evidence: Evidence
    cost: float | None = None
    """Share of the decisions per second that were lost while stacks were sampled; None: unknown.
    It is as noisy as the machine, and may be below 0."""
    rate: int = 0
    """Samples per second, 0 where nothing was sampled."""
    native: bool = False
    updates: int = 0
    """Those that ended while stacks were sampled."""


def look_at_custom(config: TrainConfig, wish: Wish, echo: Echo) -> Seen:
    """Train with settings for a moment and look at it."""
    with CustomTraining(config) as training:
        look = Look(training.pid, training.folder, wish, echo, training.check)
        training.warm_up(look.progress, min(WARM_S, wish.seconds), echo)
        plain = look.watch()
        try:
            sampled = look.sample()
        except CannotLookError as wrong:
            sampled = look.sample_within(training, str(wrong))
        if not config.eval.off:
            look.blind.append(BESIDE)
        if config.population > 1 or config.seeds > 1 or config.vary:
            look.blind.append(SEVERAL)
        gpu = look.kernels(training)
        paces = look.paces(plain, sampled)
        facts = {"gpu": gpu.shares, "kernels": gpu.kernels} if gpu else {}
        return look.seen(members_of(config)[0], paces, sampled, **facts)


def look_at_run(folder: Path, config: TrainConfig, pid: int, wish: Wish, echo: Echo) -> Seen:
    """Look at a run that is going on; it is not told, and goes on."""

    def check() -> None:
        if not running(pid):
            raise SparringError(f"{folder} ended while it was looked at; try one that goes on")
        if not folder.is_dir():
            raise SparringError(f"{folder} was taken away while it was looked at")

    look = Look(pid, folder, wish, echo, check)
    _, ended = look.watch()
    sampled = look.sample()
    paces = look.paces((ended - (sampled[1] - sampled[0]), ended), sampled)
    busy, facts = paces[0].gpu_busy, {}
    if busy is not None:
        look.blind.append(NO_KERNELS)
        facts["gpu"] = {"at work": busy, IDLE: max(1 - busy, 0.0)}
    return look.seen(config, paces, sampled, attached=True, **facts)


class Look:
    """A look at a process that trains: watched, sampled, and read off its curves."""

    def __init__(
        self, pid: int, folder: Path, wish: Wish, echo: Echo, check: Callable[[], None]
    ) -> None:
        """echo: prints progress. check: raises if the training is over."""
        self.pid, self.wish, self.echo, self.check = pid, wish, echo, check
        self.folder, self.progress = folder, Progress(folder)
        self.native, self.stacks = wish.native, Stacks()
        self.family = processes_of(pid)
        self.cores = 0.0, 0.0
        """That were busy with it, and with others."""
        self.blind: list[str] = []

    def watch(self) -> Span:
        """Let it train for a while: only where nobody looks, rates and cores are its own."""
        wish = self.wish
        family = [pid for pid, does in processes_of(self.pid).items() if does != EVALUATION]
        began, before = time.monotonic(), usage(family)
        updates = max(wish.updates // 4, MIN_UPDATES) if wish.updates else 0
        self.pass_time("watching", min(max(wish.timeout_s / 4, MIN_S), MAX_S), updates)
        ended = time.monotonic()
        self.cores = usage(family).cores_since(before, max(ended - began, 1e-9))
        return began, ended

    def sample(self) -> Span:
        """Sample the process from outside, with what it has started."""
        try:
            span, told = self._spy(), [] if self.wish.native else [NOT_ASKED]
        except NoNativeError as wrong:
            self.native, told = False, [f"native code: {wrong}"]
            span = self._spy()
        self.blind += told
        return span

    def _spy(self) -> Span:
        wish = self.wish
        with Spy(
            self.pid, wish.timeout_s, wish.rate, native=self.native, pausing=wish.pausing
        ) as spy:
            spy.wait_begun()
            began = time.monotonic()
            self.pass_time("sampling", wish.timeout_s, wish.updates, over=lambda: spy.ended)
            ended = time.monotonic()
            self.family |= processes_of(self.pid)
            self.stacks = spy.stacks()
        return began, ended

    def sample_within(self, training: CustomTraining, why: str) -> Span:
        """Let a training of our own sample itself, where nobody may look from outside."""
        self.echo("sampling: from within")
        began, wish = time.monotonic(), self.wish
        limit = {"seconds": wish.timeout_s, "updates": wish.updates, "rate": wish.rate}
        plain = training.ask("sample", wish.timeout_s + PATIENCE_S, **limit)
        self.progress.look()
        self.stacks, self.native = Stacks.read(plain, wish.rate), False
        self.family |= processes_of(self.pid)
        self.blind.append(f"native code and other processes: {why}")
        return began, time.monotonic()

    def kernels(self, training: CustomTraining) -> GpuTime | None:
        """Record what the GPU does, where the network is on one."""
        if not uses_gpu(training.config.device):
            return None
        self.echo("recording: the GPU's kernels")
        try:
            gpu = GpuTime.read(training.ask("kernels", KERNELS_LIMIT_S, **KERNELS))
        except ConfigError:
            raise
        except SparringError as wrong:
            self.blind.append(f"kernels of the GPU: {wrong}")
            return None
        self.progress.look()
        if not gpu.kernels:
            self.blind.append(NONE_SEEN)
        return gpu if gpu.kernels else None

    def paces(self, plain: Span, sampled: Span) -> tuple[Pace, Pace]:
        """Return how fast it was before it was sampled, and meanwhile."""
        self.echo("reading: curves")
        meanwhile = self._pace(*sampled)
        before = self.progress.pace(*plain)
        return (before if before.updates else meanwhile), meanwhile

    def _pace(self, began: float, ended: float) -> Pace:
        """Where no update ended in that time, wait for the next one."""
        while time.monotonic() < ended + LATE_S:
            self.progress.look()
            time.sleep(POLL_S)
        self.progress.look()
        pace = self.progress.pace(began, ended)
        until = time.monotonic() + PATIENCE_S
        while not pace.updates and time.monotonic() < until:
            self.check()
            time.sleep(POLL_S)
            self.progress.look()
            pace = self.progress.pace(began, time.monotonic())
        return pace

    def seen(
        self, config: TrainConfig, paces: tuple[Pace, Pace], sampled: Span, **facts: Any
    ) -> Seen:
        """Put together what was seen."""
        pace, meanwhile = paces
        blind = [*self.blind, *self._unseen(config), *([] if pace.updates else [NO_UPDATE])]
        others = {stack.process for stack in self.stacks.stacks} - {self.pid}
        evidence = Evidence(
            config=config,
            phases=dict(pace.phases),
            decisions_per_s=pace.decisions_per_s,
            samples_per_s=pace.samples_per_s,
            seconds=max(sampled[1] - sampled[0], 1e-9),
            stacks=self.stacks.of_processes({self.pid}),
            beside=self.stacks.of_processes(others),
            processes=self.family,
            cpu_cores=self.cores[0] or pace.cpu_cores,
            cores=cores(),
            load=self.cores[1],
            path=Overview(self.folder).path_taken,
            blind=tuple(blind),
        )
        evidence = replace(evidence, **facts)
        return Seen(evidence, cost_of(*paces), self.wish.rate, self.native, meanwhile.updates)

    def _unseen(self, config: TrainConfig) -> list[str]:
        """Say what such sampling does not see."""
        found = [THREADS] if config.threads != 1 else []
        nameless = self.stacks.share(lambda stack: stack.frames[-1].name == NO_SYMBOL)
        if nameless > 0.01:
            found.append(
                f"names: {nameless:.0%} of the samples are in libraries without symbols, which "
                f"stand as {NO_SYMBOL}"
            )
        if config.cluster:
            found.append("processes on other machines of the cluster")
        return found

    def pass_time(
        self, doing: str, seconds: float, updates: int, over: Callable[[], bool] = lambda: False
    ) -> None:
        """Let time pass, or so many updates, and look how it goes on."""
        first, until = self.progress.look(), time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not over():
            self.check()
            update = self.progress.look()
            missing = first + updates - update
            if updates and missing <= 0:
                return
            to_go = f"{missing} update{'s' * (missing > 1)}" if updates else f"{left:.0f} s"
            self.echo(f"{doing}: update {update}, {to_go} left")
            time.sleep(min(POLL_S, left))


def cost_of(before: Pace, sampled: Pace) -> float | None:
    """Return the share of the speed that was lost while stacks were sampled."""
    if min(before.updates, sampled.updates) < MIN_UPDATES or not before.decisions_per_s:
        return None
    return 1 - sampled.decisions_per_s / before.decisions_per_s
