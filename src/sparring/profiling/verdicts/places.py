"""Where the training thread is on every stack: in whose code, doing what for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from linecache import getline

from sparring.profiling.evidence import Evidence, Frame, Stack
from sparring.profiling.verdicts.frames import (
    LIBRARY,
    NATIVE,
    OURS,
    USER,
    WAITING,
    hottest,
    ours,
    owner,
    place_of,
    within,
    work_of,
)

ENV, RESET, AROUND_ENV = "environment", "reset", "around the environment"
GAMES, WORKERS = "games", "workers"
INFERENCE, OPPONENTS, SLOTS = "inference", "opponents", "past selves"
UPDATE, ADVANTAGE = "update", "advantage"
CALLBACK, SAVING, RECORDING, SHOWING = "callback", "saving", "recording", "display"
EVALUATION, ELSEWHERE = "evaluation", "elsewhere"

MARKS: tuple[tuple[str, frozenset[str], str], ...] = (
    ("pools/foreign/", frozenset({"play", "_step", "step"}), AROUND_ENV),
    ("pools/foreign/", frozenset({"start", "_start", "_reset", "_end"}), RESET),
    ("pools/workers/", frozenset(), WORKERS),
    ("pools/native.py", frozenset(), GAMES),
    ("pools/cuda", frozenset(), GAMES),
    ("learn/collect.py", frozenset({"_ask", "_receive"}), AROUND_ENV),
    ("learn/collect.py", frozenset({"_answer", "answer"}), INFERENCE),
    ("learn/collect.py", frozenset({"_answer_other"}), OPPONENTS),
    ("learn/opponents.py", frozenset({"answer"}), SLOTS),
    ("learn/transitions.py", frozenset(), ADVANTAGE),
    ("learn/descent.py", frozenset(), UPDATE),
    ("learn/off_policy.py", frozenset({"_learn", "descend"}), UPDATE),
    ("learn/", frozenset({"learn", "update"}), UPDATE),
    ("learn/", frozenset({"snapshot"}), SAVING),
    ("training/loop.py", frozenset({"_call"}), CALLBACK),
    ("training/loop.py", frozenset({"save", "_save_last"}), SAVING),
    ("training/loop.py", frozenset({"_await_answers", "_measure"}), EVALUATION),
    ("training/member.py", frozenset({"record"}), RECORDING),
    ("training/member.py", frozenset({"save", "wait_for_save", "save_last"}), SAVING),
    ("training/records/", frozenset(), RECORDING),
    ("training/display/", frozenset(), SHOWING),
)
"""Files, functions in them (none: all), and what it means to be below them."""
NESTED = {OPPONENTS: {INFERENCE, SLOTS}}
"""What does not count any more below a place: an opponent's network is the opponent's."""
ROOTS = ("training/loop.py", "measuring/rounds.py", "learn/")
"""Files of ours that are on every stack of a thread that trains."""
WORKER = "pools/workers/process.py"


@dataclass(frozen=True)
class Sight:
    """A stack as it was understood."""

    place: str
    work: str
    """What kind of work somebody else's code does there, "" if none that is known."""
    theirs: tuple[Frame, ...]
    """Their code's part of the stack."""
    samples: int


def read(stack: Stack) -> Sight:
    """Say where a stack is."""
    place, below = ELSEWHERE, 0
    for at, frame in enumerate(stack.frames):
        path = ours(frame)
        if not path:
            if place in (AROUND_ENV, RESET, CALLBACK, OPPONENTS) and owner(frame) == USER:
                break  # from here on it is their code, whatever of ours it calls
            if place in (AROUND_ENV, RESET) and within(frame.file)[1] in ENV_LIBRARIES:
                break
            continue
        found = marked(path, frame.name)
        if found and found not in NESTED.get(place, ()):
            place, below = found, at
    theirs = behind(stack.frames[below:])
    if place == AROUND_ENV and (theirs or calls_env(stack.frames[-1])):
        place = ENV
    return Sight(place, work_of(theirs), theirs, stack.samples)


ENV_LIBRARIES = frozenset({"gymnasium", "gym", "pettingzoo", "stable_baselines3"})
"""Packages that stand between the pool and somebody's step."""


def marked(path: str, name: str) -> str:
    """What it means to be in a function of ours."""
    for start, names, place in MARKS:
        if path.startswith(start) and (not names or name in names):
            return place
    return ""


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


class Places:
    """Where the training thread was, as shares of the time."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        stacks = evidence.stacks.stacks
        threads: Counter[tuple[int, str]] = Counter()
        for stack in stacks:
            if any(ours(frame).startswith(ROOTS) for frame in stack.frames):
                threads[stack.process, stack.thread] += stack.samples
        main = threads.most_common(1)[0][0] if threads else None
        self.sights = [read(s) for s in stacks if (s.process, s.thread) == main]
        self.workers = [
            read(s) for s in stacks if any(ours(frame) == WORKER for frame in s.frames)
        ]
        """Of the processes that step environments, where those were looked at."""
        self.process = main[0] if main else 0

    @cached_property
    def seen(self) -> int:
        """Samples of the training thread."""
        return sum(sight.samples for sight in self.sights)

    @cached_property
    def wall(self) -> float:
        """Samples that it would have, had it never waited.

        A sampler that is a little late is not taken for a thread that waits.
        """
        could = self.evidence.stacks.rate * self.evidence.seconds
        return could if could and self.seen < 0.8 * could else float(max(self.seen, 1))

    @property
    def waits(self) -> float:
        """Share of the time in which the training thread waited."""
        return 1 - self.seen / self.wall if self.sights else 0.0

    def share(self, met: Callable[[Sight], bool]) -> float:
        """Share of the time that was spent so."""
        return sum(sight.samples for sight in self.sights if met(sight)) / self.wall

    def at(self, *places: str) -> float:
        """Share of the time at some places."""
        return self.share(lambda sight: sight.place in places)

    def doing(self, work: str, *places: str) -> float:
        """Share of the time that somebody's code spends with a kind of work."""
        return self.share(lambda sight: sight.work == work and sight.place in places)

    def env_share(self) -> float:
        """Share of the time in environments, with what the thread waited for in them."""
        inside = self.at(ENV, RESET)
        stepping = self.evidence.phases.get("stepping", 0.0)
        idle = stepping - self.at(ENV, RESET, AROUND_ENV, GAMES, WORKERS)
        if inside and self.waits > 0.1 and idle > 0.1:
            inside += min(idle, self.waits)
        return inside

    def env_waits(self) -> float:
        """Share of the time that environments wait for something: a clock, a disk, a server."""
        asleep = self.doing(WAITING, ENV, RESET)
        return min(asleep + max(self.env_share() - self.at(ENV, RESET), 0.0), 1.0)

    def where(self, met: Callable[[Sight], bool]) -> str:
        """The user's function in which most of it happens, "" if none is known."""
        found: Counter[tuple[str, str]] = Counter()
        frames: dict[tuple[str, str], Frame] = {}
        lines: Counter[Frame] = Counter()
        for sight in self.sights or self.workers:
            own = hottest(sight.theirs) if met(sight) else None
            if own is not None:
                found[own.file, own.name] += sight.samples
                lines[own] += sight.samples
        for frame, _ in reversed(lines.most_common()):
            frames[frame.file, frame.name] = frame
        return place_of(frames[found.most_common(1)[0][0]]) if found else ""

    def native(self) -> bool:
        """Whether native functions are among the stacks."""
        return any(
            owner(frame) == NATIVE
            for stack in self.evidence.stacks.stacks
            for frame in stack.frames
        )
