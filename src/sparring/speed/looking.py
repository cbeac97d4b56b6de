"""Looking at a training, one of our own or somebody's run that is going on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.machine import cores
from sparring.speed.evidence import EVALUATION, TRAINING, Evidence, Stacks, processes_of
from sparring.speed.kernels import IDLE, GpuTime
from sparring.speed.own import OwnTraining
from sparring.speed.progress import Pace, Progress
from sparring.speed.sampler import NO_SYMBOL, CannotLookError, NoNativeError, Spy
from sparring.training.planning.place import uses_gpu
from sparring.training.planning.settings import members_of
from sparring.training.records.overview import Overview
from sparring.usage import Usage, running, usage

POLL_S = 0.2
WARM_S = 3.0
"""A training is under way after so long: graphs are captured, memory is in use, caches are warm."""
LEAST_S, MOST_S = 1.0, 5.0
"""How long it is watched without sampling."""
LATE_S = 1.2
"""How long curves may take until they can be read."""
PATIENCE_S = 60.0
"""How long it is waited for an update to end, where none did while it was looked at."""
LEAST_UPDATES = 3
"""Fewer say nothing about the cost of looking."""
KERNELS_S, KERNELS_UPDATES = 0.5, 2
"""How long kernels are recorded at least."""
KERNELS_LIMIT_S = 180.0
LONGEST_S = 3600.0
"""How long updates are waited for that were asked for by number."""

BESIDE = "evaluations beside training: left out, in so short a time they would weigh too much"

Say = Callable[[str], None]


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
    def limit_s(self) -> float:
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


@dataclass(frozen=True)
class _Plain:
    """A stretch in which nobody looks: only then rates and cores are the training's own."""

    began: float
    ended: float
    used: tuple[Usage, Usage]

    @property
    def cores(self) -> tuple[float, float]:
        """Cores that were busy with it, and with others."""
        before, after = self.used
        return after.cores_since(before, max(self.ended - self.began, 1e-9))


@dataclass
class _Sampled:
    """A stretch in which stacks were sampled."""

    pid: int
    stacks: Stacks
    blind: list[str]
    native: bool
    began: float
    ended: float
    family: dict[int, str]


def look_at_own(config: TrainConfig, wish: Wish, say: Say) -> Seen:
    """Train with settings for a moment and look at it."""
    blind = [BESIDE] if not config.eval.off else []
    if config.population > 1 or config.seeds > 1 or config.vary:
        blind.append("one run was trained where the settings ask for several")
    with OwnTraining(config) as training:
        progress = Progress(training.folder)
        training.warm_up(progress, min(WARM_S, wish.seconds), say)
        plain = watch_plain(training.pid, progress, wish, say, training.check)
        sampled = sample_own(training, progress, wish, say)
        gpu = record_kernels(training, progress, say, blind)
        say("reading: curves")
        paces = paces_of(progress, plain, sampled, training.check)
        evidence = gathered(members_of(config)[0], paces, plain, sampled, blind)
        evidence = replace(evidence, path=Overview(training.folder).path_taken)
    if gpu is not None:
        evidence = replace(evidence, gpu=gpu.shares, kernels=gpu.kernels)
    return Seen(evidence, cost_of(*paces), wish.rate, sampled.native, paces[1].updates)


def look_at_run(folder: Path, config: TrainConfig, pid: int, wish: Wish, say: Say) -> Seen:
    """Look at a run that is going on; it is not told, and goes on."""

    def check() -> None:
        if not running(pid):
            raise SparringError(f"{folder} ended while it was looked at; try one that goes on")
        if not folder.is_dir():
            raise SparringError(f"{folder} was taken away while it was looked at")

    progress = Progress(folder)
    plain = watch_plain(pid, progress, wish, say, check)
    sampled = sample(pid, progress, wish, say, check)
    say("reading: curves")
    before = replace(plain, began=plain.ended - (sampled.ended - sampled.began))
    paces = paces_of(progress, before, sampled, check)
    busy = paces[0].gpu_busy
    blind = []
    if busy is not None:
        blind.append(
            "kernels of the GPU: they are only seen in a training that profile starts itself"
        )
    evidence = gathered(config, paces, plain, sampled, blind)
    if busy is not None:
        evidence = replace(evidence, gpu={"at work": busy, IDLE: max(1 - busy, 0.0)})
    evidence = replace(evidence, attached=True, path=Overview(folder).path_taken)
    return Seen(evidence, cost_of(*paces), wish.rate, sampled.native, paces[1].updates)


def sample_own(training: OwnTraining, progress: Progress, wish: Wish, say: Say) -> _Sampled:
    """Sample a training of our own: from outside if that is possible, otherwise from within."""
    try:
        return sample(training.pid, progress, wish, say, training.check)
    except CannotLookError as wrong:
        why = str(wrong)
    say("sampling: from within")
    began = time.monotonic()
    limit = {"seconds": wish.limit_s, "updates": wish.updates, "rate": wish.rate}
    seen = training.ask("sample", wish.limit_s + PATIENCE_S, **limit)
    progress.look()
    return _Sampled(
        training.pid,
        Stacks.read(seen, wish.rate),
        [f"native code and other processes: {why}"],
        native=False,
        began=began,
        ended=time.monotonic(),
        family=processes_of(training.pid),
    )


def sample(
    pid: int, progress: Progress, wish: Wish, say: Say, check: Callable[[], None]
) -> _Sampled:
    """Sample a process from outside, with what it has started."""
    try:
        return sample_once(pid, progress, wish, say, check)
    except NoNativeError as wrong:
        found = sample_once(pid, progress, replace(wish, native=False), say, check)
        found.blind = [f"native code: {wrong}"]
        return found


def sample_once(
    pid: int, progress: Progress, wish: Wish, say: Say, check: Callable[[], None]
) -> _Sampled:
    """Let py-spy look for as long as is wished."""
    family = processes_of(pid)
    with Spy(pid, wish.limit_s, wish.rate, native=wish.native, pausing=wish.pausing) as spy:
        spy.wait_begun()
        began = time.monotonic()
        watch(
            progress,
            wish.limit_s,
            say,
            check,
            doing="sampling",
            updates=wish.updates,
            over=lambda: spy.ended,
        )
        ended = time.monotonic()
        family |= processes_of(pid)
        stacks = spy.stacks()
    blind = [] if wish.native else ["native code: it was not asked for, --native on looks there"]
    return _Sampled(pid, stacks, blind, wish.native, began, ended, family)


def watch_plain(
    pid: int, progress: Progress, wish: Wish, say: Say, check: Callable[[], None]
) -> _Plain:
    """Let it train for a while, and see what it uses."""
    family = training_only(processes_of(pid))
    began, before = time.monotonic(), usage(family)
    seconds = min(max(wish.limit_s / 4, LEAST_S), MOST_S)
    updates = max(wish.updates // 4, LEAST_UPDATES) if wish.updates else 0
    watch(progress, seconds, say, check, doing="watching", updates=updates)
    return _Plain(began, time.monotonic(), (before, usage(family)))


def training_only(family: dict[int, str]) -> list[int]:
    return [pid for pid, does in family.items() if does != EVALUATION]


def watch(
    progress: Progress,
    seconds: float,
    say: Say,
    check: Callable[[], None],
    *,
    doing: str,
    updates: int = 0,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Let time pass, or so many updates, and look how it goes on."""
    first, until = progress.look(), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not over():
        check()
        update = progress.look()
        missing = first + updates - update
        if updates and missing <= 0:
            return
        to_go = f"{missing} update{'s' * (missing > 1)}" if updates else f"{left:.0f} s"
        say(f"{doing}: update {update}, {to_go} left")
        time.sleep(min(POLL_S, left))


def read_pace(progress: Progress, began: float, ended: float, check: Callable[[], None]) -> Pace:
    """Return how fast it was; where no update ended in that time, wait for the next one."""
    while time.monotonic() < ended + LATE_S:
        progress.look()
        time.sleep(POLL_S)
    progress.look()
    pace = progress.pace(began, ended)
    until = time.monotonic() + PATIENCE_S
    while not pace.updates and time.monotonic() < until:
        check()
        time.sleep(POLL_S)
        progress.look()
        pace = progress.pace(began, time.monotonic())
    return pace


def record_kernels(
    training: OwnTraining, progress: Progress, say: Say, blind: list[str]
) -> GpuTime | None:
    """Record what the GPU does, where the network is on one."""
    if not uses_gpu(training.config.device):
        return None
    say("recording: the GPU's kernels")
    limit = {"seconds": KERNELS_S, "updates": KERNELS_UPDATES}
    try:
        found = training.ask("kernels", KERNELS_LIMIT_S, **limit)
    except ConfigError:
        raise
    except SparringError as wrong:
        blind.append(f"kernels of the GPU: {wrong}")
        return None
    progress.look()
    gpu = GpuTime.read(found)
    if not gpu.kernels:
        blind.append("kernels of the GPU: torch's profiler has seen none; is CUPTI installed?")
        return None
    return gpu


def paces_of(
    progress: Progress, plain: _Plain, sampled: _Sampled, check: Callable[[], None]
) -> tuple[Pace, Pace]:
    """Return how fast it was before it was sampled, and meanwhile."""
    meanwhile = read_pace(progress, sampled.began, sampled.ended, check)
    before = progress.pace(plain.began, plain.ended)
    return (before if before.updates else meanwhile), meanwhile


def gathered(
    config: TrainConfig,
    paces: tuple[Pace, Pace],
    plain: _Plain,
    sampled: _Sampled,
    blind: list[str],
) -> Evidence:
    met, pid = sampled.stacks, sampled.pid
    pace, own = paces[0], plain.cores
    blind = [*sampled.blind, *blind, *unseen(config, sampled)]
    if not pace.updates:
        blind.append("phases and rates: no update ended while it was looked at; raise --seconds")
    return Evidence(
        config=config,
        phases=dict(pace.phases),
        decisions_per_s=pace.decisions_per_s,
        samples_per_s=pace.samples_per_s,
        seconds=max(sampled.ended - sampled.began, 1e-9),
        stacks=met.of_processes({pid}),
        beside=met.of_processes({one.process for one in met.stacks} - {pid}),
        processes={sampled.pid: TRAINING, **sampled.family},
        cpu_cores=own[0] or pace.cpu_cores,
        cores=cores(),
        load=own[1],
        blind=tuple(blind),
    )


def unseen(config: TrainConfig, sampled: _Sampled) -> list[str]:
    found = []
    if config.threads != 1:
        found.append(
            "threads of native code: those that step games and multiply have no Python stack, so "
            "that only the thread which waits for them is sampled"
        )
    nameless = sampled.stacks.share(lambda stack: stack.frames[-1].name == NO_SYMBOL)
    if nameless > 0.01:
        found.append(
            f"names: {nameless:.0%} of the samples are in libraries without symbols, which stand "
            f"as {NO_SYMBOL}"
        )
    if config.cluster:
        found.append("processes on other machines of the cluster")
    return found


def cost_of(before: Pace, sampled: Pace) -> float | None:
    """Return the share of the speed that was lost while stacks were sampled."""
    if min(before.updates, sampled.updates) < LEAST_UPDATES or not before.decisions_per_s:
        return None
    return 1 - sampled.decisions_per_s / before.decisions_per_s
