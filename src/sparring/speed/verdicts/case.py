"""What all causes look at: what was seen, read once, and the facts that settings decide."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from linecache import getline
from typing import Any

from sparring.speed.code import (
    LIBRARY,
    LOOP,
    OURS,
    USER,
    WAITING,
    hottest,
    owner,
    phase_of,
    place_of,
    within,
    work_of,
)
from sparring.speed.evidence import Evidence, Frame, Stack
from sparring.speed.rounds import has_replay
from sparring.training.planning.custom import by_factory
from sparring.training.planning.participants import GIVEN

STEPPING, GAMES, RESET = "stepping", "games", "reset"
INFERENCE, OPPONENTS, PAST = "inference", "opponents", "past selves"
CALLBACK, SAVING, RECORDING = "callback", "saving", "recording"
SHOWING, LEAGUE = "display", "league"
"""Phases that the code names, by `with self.phases(...)` or by a mark."""
ENV = "environment"
"""A step in somebody's code: no phase of ours."""
THEIRS = (STEPPING, RESET, CALLBACK, OPPONENTS)
"""Phases in which somebody's code is called, and all below it is theirs."""
ENV_LIBRARIES = frozenset({"gymnasium", "gym", "pettingzoo", "stable_baselines3"})
"""Packages that stand between the pool and somebody's step."""
WORKER = "worker"


@dataclass(frozen=True)
class Verdict:
    """A cause, and what following the advice is expected to bring."""

    cause: str
    """In a word or two, such as "slow environment"; or `CANNOT_TELL`."""
    text: str
    """One sentence: where the time goes, why, what to do."""
    share: float
    """Of the time."""
    gain: float | None = None
    """Expected: 0.45 for 45 % more decisions per second; None where nobody knows."""
    timed: bool = False
    """Whether that was timed with the change in place; otherwise it is reckoned from the share."""
    do: str = ""
    """What to type, or to change in your own code."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """The settings that would be another, as `merged` takes them; empty where it is code."""


@dataclass(frozen=True)
class Candidate:
    """A change of settings that might help, before it is timed."""

    cause: str
    share: float
    """Of the time that it bears on."""
    change: Mapping[str, Any]
    why: str
    """Where the time goes and why, the beginning of a sentence."""
    advice: str
    """What to do, its end."""
    reckoned: float | None = None
    """The gain to speak of where nothing can be timed; None: then it is not recommended."""
    hope: float = 0.0
    """How much it might bring: what is worth timing first."""
    alters: bool = False
    """It changes what is learned from a decision, not only how fast."""
    rows: int = 0
    """Samples that a rollout must hold for the change to mean something."""

    def verdict(self, gain: float | None, *, timed: bool) -> Verdict:
        hope = f"; {expected(gain, timed=timed)}" if gain is not None else ""
        text = f"{self.why}: {self.advice}{hope}"
        return Verdict(self.cause, text, self.share, gain, timed, typed(self.change), self.change)


def reckoned(
    cause: str,
    text: str,
    share: float,
    part: float,
    *,
    do: str = "",
    change: Mapping[str, Any] | None = None,
) -> Verdict:
    """Return a verdict whose gain follows from its share, of which a part would go."""
    gain = without(share, part)
    told = f"{text}; {expected(gain, timed=False)}"
    return Verdict(cause, told, share, gain, do=do or typed(change or {}), change=change or {})


@dataclass(frozen=True)
class Sight:
    """A stack as it was understood."""

    phase: str
    work: str
    """What kind of work somebody else's code does there, "" if none that is known."""
    theirs: tuple[Frame, ...]
    """Their code's part of the stack."""
    samples: int

    @property
    def in_env(self) -> bool:
        return self.phase in (ENV, RESET)


def read(stack: Stack) -> Sight:
    """Say where a stack is: in the innermost phase that is ours."""
    phase, below = "", 0
    for at, frame in enumerate(stack.frames):
        if phase in THEIRS and is_theirs(frame, phase):
            break  # from here on it is their code, whatever of ours it calls
        if found := phase_of(frame):
            phase, below = found, at
    theirs = behind(stack.frames[below:])
    if phase == STEPPING and (theirs or calls_env(stack.frames[-1])):
        phase = ENV
    return Sight(phase, work_of(theirs), theirs, stack.samples)


def is_theirs(frame: Frame, phase: str) -> bool:
    """Whether a function is somebody's, or a library that stands before their step."""
    whose, where = within(frame.file)
    return whose == USER or (phase in (STEPPING, RESET) and where in ENV_LIBRARIES)


def behind(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The part of a stack that is somebody else's: from the first such function on.

    Libraries that our own code calls are ours as well, but not those that stand before a step.
    """
    for at, frame in enumerate(frames):
        whose, where = within(frame.file)
        if whose == USER or (whose == LIBRARY and where in ENV_LIBRARIES):
            return tuple(frames[at:])
    return ()


def calls_env(frame: Frame) -> bool:
    """Whether a function of ours waits for an environment that is not in Python."""
    line = getline(frame.file, frame.line) if owner(frame) == OURS else ""
    return "env.step(" in line or "env.reset(" in line


def is_busy(stack: Stack) -> bool:
    """Whether a thread is at work, and not in a lock that a sampler takes for work."""
    return not any("acquire_lock" in frame.name for frame in stack.frames)


class Case:
    """A training that was looked at: shares of its time, and what its settings decide."""

    def __init__(self, evidence: Evidence) -> None:
        """Read the stacks."""
        self.evidence, self.config = evidence, evidence.config
        stacks, does = evidence.stacks.stacks, evidence.processes
        threads: Counter[tuple[int, str]] = Counter()
        for stack in stacks:
            if any(phase_of(frame) == LOOP for frame in stack.frames):
                threads[stack.process, stack.thread] += stack.samples
        main = threads.most_common(1)[0][0] if threads else None
        self.sights = [read(s) for s in stacks if (s.process, s.thread) == main]
        others = [s for s in stacks if main and s.process == main[0] and s.thread != main[1]]
        self.others = [read(s) for s in others if is_busy(s)]
        """Of other threads of the same process, which want the interpreter as well."""
        beside = evidence.beside.stacks
        self.stepped = [read(s) for s in beside if does.get(s.process) == WORKER]
        """Of the processes that step environments, where those were looked at."""
        self.wall = max(sum(sight.samples for sight in self.sights), 1)
        """Samples of the training thread, which is there all the time, also where it waits."""

    def phase(self, *names: str) -> float:
        """Share of the time in some phases, as the learner's timers have it."""
        return sum(self.evidence.phases.get(name, 0.0) for name in names)

    def share(self, met: Callable[[Sight], bool]) -> float:
        """Share of the time whose stacks are so."""
        return sum(sight.samples for sight in self.sights if met(sight)) / self.wall

    def at(self, *phases: str) -> float:
        """Share of the time in some phases, as stacks have it."""
        return self.share(lambda sight: sight.phase in phases)

    def doing(self, work: str, *phases: str) -> float:
        """Share of the time that somebody's code spends with a kind of work."""
        return self.share(lambda sight: sight.work == work and sight.phase in phases)

    def env_share(self) -> float:
        return self.at(ENV, RESET)

    def env_waits(self) -> float:
        """Share of the time that environments wait for something: a clock, a disk, a server."""
        evidence, known = self.evidence, self.doing(WAITING, ENV, RESET)
        if evidence.cpu_cores and evidence.load < 0.25 * evidence.cores:
            # Cores were free, and nobody worked: whatever it was, it was no arithmetic.
            return max(known, self.env_share() - evidence.cpu_cores)
        return known

    def where(self, met: Callable[[Sight], bool]) -> str:
        """The user's function in which most of it happens, "" if none is known."""
        found: Counter[tuple[str, str]] = Counter()
        lines: Counter[Frame] = Counter()
        for sight in (*self.sights, *self.stepped):
            own = hottest(sight.theirs) if met(sight) else None
            if own is not None:
                found[own.file, own.name] += sight.samples
                lines[own] += sight.samples
        if not found:
            return ""
        most = found.most_common(1)[0][0]
        return place_of(next(f for f, _ in lines.most_common() if (f.file, f.name) == most))

    @property
    def custom_env(self) -> bool:
        """Whether an environment of somebody's own is trained on."""
        return by_factory(self.config) or bool(self.env_share())

    @property
    def on_gpu(self) -> bool:
        return bool(self.evidence.gpu)

    @property
    def threads(self) -> int:
        return self.config.threads or os.cpu_count() or 1

    @property
    def repeatable(self) -> bool:
        """Whether another process can play the same: nothing came from a program alone."""
        given = any(word.startswith(GIVEN) for word in self.config.opponents)
        return not given and not self.config.cluster

    @property
    def batch(self) -> tuple[str, str, int]:
        """Where the size of an optimizer step is set, and what it is; 0 where nobody knows."""
        config = self.config
        if self.remembers:
            return "replay", "batch", config.replay.batch
        if config.algo in ("ppo", "dqn"):
            return config.algo, "minibatch", getattr(config, config.algo).minibatch
        return "", "", 0

    @property
    def remembers(self) -> bool:
        return has_replay(self.config)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def counted(number: int, what: str) -> str:
    """So many of something: "1 worker", "2 workers"."""
    return f"{number} {what}{'s' * (number != 1)}"


def expected(gain: float, *, timed: bool) -> str:
    """What is to be hoped for, in words, and where that comes from."""
    return f"expected +{100 * gain:.0f} %" + (" (timed here)" if timed else " (reckoned)")


def without(share: float, part: float = 1.0) -> float:
    """The gain when a part of a share of the time goes, as Amdahl reckons it."""
    gone = min(max(share * part, 0.0), 0.98)
    return gone / (1 - gone)


def typed(change: Mapping[str, Any]) -> str:
    """A change of settings as options of `sparring train`."""
    words = []
    for key, value in change.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        for name, one in inner:
            words.append(f"--{option(key.replace('_', '-'), name.replace('_', '-'), one)}")
    return " ".join(words)


def option(key: str, name: str, value: Any) -> str:
    """One setting as an option; switches are pairs."""
    if isinstance(value, bool):
        word = (name or key) if value else f"no-{name or key}"
        return f"{key}.{word}" if name else word
    shown = " ".join(map(str, value)) if isinstance(value, tuple | list) else value
    return f"{key}.{name} {shown}" if name else f"{key} {shown}"
