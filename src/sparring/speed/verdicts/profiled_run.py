"""Time shares of a profiled training, and the types `Verdict` and `Candidate`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from linecache import getline
from typing import Any

from sparring.phases import SEARCHING
from sparring.speed.code import (
    LIBRARY,
    LOOP,
    OURS,
    USER,
    WAITING,
    last_user_frame,
    location_of,
    origin_of,
    owner,
    phase_of,
    work_of,
)
from sparring.speed.evidence import CallStack, Evidence, Frame
from sparring.speed.rounds import has_replay
from sparring.training.planning.custom import by_factory
from sparring.training.planning.participants import GIVEN

STEPPING, GAMES, RESET = "stepping", "games", "reset"
INFERENCE, OPPONENTS, PAST = "inference", "opponents", "past selves"
CALLBACK, SAVING, RECORDING = "callback", "saving", "recording"
SHOWING, LEAGUE = "display", "league"
"""Phases that the code names, by `with self.phases(...)` or a decorator."""
ENV = "environment"
"""A step in the user's code: no named phase."""
USER_PHASES = (STEPPING, RESET, CALLBACK, OPPONENTS)
"""Phases that call the user's code; everything below that call is the user's."""
ENV_LIBRARIES = frozenset({"gymnasium", "gym", "pettingzoo", "stable_baselines3"})
"""Packages between the pool and the step of a custom environment."""
WORKER = "worker"


@dataclass(frozen=True)
class Verdict:
    """A bottleneck, its remedy, and the expected gain."""

    cause: str
    """Short name, such as "slow environment", or `CANNOT_TELL`."""
    text: str
    """One sentence: where the time goes, why, and the remedy."""
    share: float
    """Share of the time that it concerns."""
    gain: float | None = None
    """Expected gain: 0.45 for 45 % more decisions per second; None if unknown."""
    timed: bool = False
    """Whether the gain was timed with the change in place; otherwise the share gives it."""
    do: str = ""
    """Options to type, or the change in the user's code."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """Changed settings, as `merged` takes them; empty if the remedy is in the user's code."""


@dataclass(frozen=True)
class Candidate:
    """A change of settings that may help, before it is timed."""

    cause: str
    share: float
    """Share of the time that it concerns."""
    change: Mapping[str, Any]
    why: str
    """First half of the sentence: where the time goes and why."""
    advice: str
    """Second half: the remedy."""
    estimated: float | None = None
    """Gain to report where nothing can be timed; None: then it is not recommended."""
    hope: float = 0.0
    """Optimistic gain; the largest is timed first."""
    alters: bool = False
    """Whether it changes what is learned, not only how fast."""
    rows: int = 0
    """Samples that a rollout must hold for the change to have an effect."""

    def verdict(self, gain: float | None, *, timed: bool) -> Verdict:
        gained = f"; {expected(gain, timed=timed)}" if gain is not None else ""
        text = f"{self.why}: {self.advice}{gained}"
        return Verdict(self.cause, text, self.share, gain, timed, typed(self.change), self.change)


def estimated(
    cause: str,
    text: str,
    share: float,
    part: float,
    *,
    do: str = "",
    change: Mapping[str, Any] | None = None,
) -> Verdict:
    """Return a verdict whose gain is estimated: a part of its share would be saved."""
    gain = without(share, part)
    text = f"{text}; {expected(gain, timed=False)}"
    return Verdict(cause, text, share, gain, do=do or typed(change or {}), change=change or {})


@dataclass(frozen=True)
class ClassifiedStack:
    """A stack with its phase and kind of work."""

    phase: str
    work: str
    """Kind of work of the user's code, "" if unknown."""
    user_frames: tuple[Frame, ...]
    """The part of the stack that is the user's code."""
    samples: int

    @property
    def in_env(self) -> bool:
        return self.phase in (ENV, RESET)


def classify(stack: CallStack) -> ClassifiedStack:
    """Find the innermost phase of sparring on a stack, and the kind of work."""
    phase, below = "", 0
    for at, frame in enumerate(stack.frames):
        if phase in USER_PHASES and is_user_frame(frame, phase):
            break  # from here on it is the user's code, also where it calls sparring
        found = phase_of(frame)
        if found and not (phase == OPPONENTS and found in SEARCHING):
            phase, below = found, at
    user_frames = from_user_on(stack.frames[below:])
    if phase == STEPPING and (user_frames or calls_env(stack.frames[-1])):
        phase = ENV
    return ClassifiedStack(phase, work_of(user_frames), user_frames, stack.samples)


def is_user_frame(frame: Frame, phase: str) -> bool:
    """Whether a function is the user's, or of a library between the pool and the user's step."""
    file_owner, origin = origin_of(frame.file)
    return file_owner == USER or (phase in (STEPPING, RESET) and origin in ENV_LIBRARIES)


def from_user_on(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames from the first one of the user, or of an environment library, on."""
    for at, frame in enumerate(frames):
        file_owner, origin = origin_of(frame.file)
        if file_owner == USER or (file_owner == LIBRARY and origin in ENV_LIBRARIES):
            return tuple(frames[at:])
    return ()


def calls_env(frame: Frame) -> bool:
    """Whether a function of sparring waits for an environment that is not in Python."""
    line = getline(frame.file, frame.line) if owner(frame) == OURS else ""
    return "env.step(" in line or "env.reset(" in line


def is_busy(stack: CallStack) -> bool:
    """Whether a thread is busy, and not waiting for a lock that the sampler takes for work."""
    return not any("acquire_lock" in frame.name for frame in stack.frames)


class ProfiledRun:
    """A profiled training: shares of its time, and facts of its settings."""

    def __init__(self, evidence: Evidence) -> None:
        """Classify the stacks."""
        self.evidence, self.config = evidence, evidence.config
        stacks, kinds = evidence.stacks.stacks, evidence.processes
        threads: Counter[tuple[int, str]] = Counter()
        for stack in stacks:
            if any(phase_of(frame) == LOOP for frame in stack.frames):
                threads[stack.process, stack.thread] += stack.samples
        main = threads.most_common(1)[0][0] if threads else None
        self.main_stacks = [classify(s) for s in stacks if (s.process, s.thread) == main]
        others = [s for s in stacks if main and s.process == main[0] and s.thread != main[1]]
        self.other_threads = [classify(s) for s in others if is_busy(s)]
        """Stacks of other threads of the training process, which compete for the interpreter."""
        children = evidence.child_stacks.stacks
        self.worker_stacks = [classify(s) for s in children if kinds.get(s.process) == WORKER]
        self.wall = max(sum(stack.samples for stack in self.main_stacks), 1)
        """Samples of the main thread, which is sampled all the time, also where it waits."""

    def phase(self, *names: str) -> float:
        """Share of the time in some phases, by the learner's timers."""
        return sum(self.evidence.phases.get(name, 0.0) for name in names)

    def share(self, condition: Callable[[ClassifiedStack], bool]) -> float:
        """Share of the time whose stacks fulfill a condition."""
        return sum(stack.samples for stack in self.main_stacks if condition(stack)) / self.wall

    def at(self, *phases: str) -> float:
        """Share of the time in some phases, by the sampled stacks."""
        return self.share(lambda stack: stack.phase in phases)

    def doing(self, work: str, *phases: str) -> float:
        """Share of the time that the user's code spends on a kind of work."""
        return self.share(lambda stack: stack.work == work and stack.phase in phases)

    def env_share(self) -> float:
        return self.at(ENV, RESET)

    def env_waits(self) -> float:
        """Share of the time that environments wait for something: a clock, a disk, a server."""
        evidence, known = self.evidence, self.doing(WAITING, ENV, RESET)
        if evidence.cpu_cores and evidence.load < 0.25 * evidence.cores:
            # Cores were free and idle: the environments did not compute.
            return max(known, self.env_share() - evidence.cpu_cores)
        return known

    def where(self, condition: Callable[[ClassifiedStack], bool]) -> str:
        """Return the user's function with most samples of a condition, "" if there is none."""
        functions: Counter[tuple[str, str]] = Counter()
        lines: Counter[Frame] = Counter()
        for stack in (*self.main_stacks, *self.worker_stacks):
            frame = last_user_frame(stack.user_frames) if condition(stack) else None
            if frame is not None:
                functions[frame.file, frame.name] += stack.samples
                lines[frame] += stack.samples
        if not functions:
            return ""
        most = functions.most_common(1)[0][0]
        return location_of(next(f for f, _ in lines.most_common() if (f.file, f.name) == most))

    @property
    def custom_env(self) -> bool:
        """Whether the training has a custom environment."""
        return by_factory(self.config) or bool(self.env_share())

    @property
    def on_gpu(self) -> bool:
        return bool(self.evidence.gpu)

    @property
    def threads(self) -> int:
        return self.config.threads or os.cpu_count() or 1

    @property
    def repeatable(self) -> bool:
        """Whether another process can repeat the training from its settings alone."""
        given = any(word.startswith(GIVEN) for word in self.config.opponents)
        return not given and not self.config.cluster

    @property
    def batch(self) -> tuple[str, str, int]:
        """Section, name and value of the minibatch size; 0 for custom learners."""
        config = self.config
        if self.has_replay:
            return "replay", "batch", config.replay.batch
        if config.algo in ("ppo", "dqn", "gumbel"):
            return config.algo, "minibatch", getattr(config, config.algo).minibatch
        return "", "", 0

    @property
    def has_replay(self) -> bool:
        return has_replay(self.config)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def counted(number: int, what: str) -> str:
    """Return a number with its noun: "1 worker", "2 workers"."""
    return f"{number} {what}{'s' * (number != 1)}"


def expected(gain: float, *, timed: bool) -> str:
    """Return the expected gain as text, with its source."""
    return f"expected +{100 * gain:.0f} %" + (" (timed here)" if timed else " (estimated)")


def without(share: float, part: float = 1.0) -> float:
    """Return the gain if a part of a share of the time is saved (Amdahl's law)."""
    gone = min(max(share * part, 0.0), 0.98)
    return gone / (1 - gone)


def typed(change: Mapping[str, Any]) -> str:
    """Return a change of settings as options of `sparring train`."""
    words = []
    for key, value in change.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        for name, one in inner:
            words.append(f"--{option(key.replace('_', '-'), name.replace('_', '-'), one)}")
    return " ".join(words)


def option(key: str, name: str, value: Any) -> str:
    """Return one setting as an option; switches are pairs (--x, --no-x)."""
    if isinstance(value, bool):
        word = (name or key) if value else f"no-{name or key}"
        return f"{key}.{word}" if name else word
    shown = " ".join(map(str, value)) if isinstance(value, tuple | list) else value
    return f"{key}.{name} {shown}" if name else f"{key} {shown}"
