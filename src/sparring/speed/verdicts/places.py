"""Where the training thread is on every stack: in whose code, doing what for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from linecache import getline

from sparring.speed.evidence import Evidence, Frame, Stack
from sparring.speed.verdicts.frames import (
    LIBRARY,
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
EVALUATION, LEAGUE, ELSEWHERE = "evaluation", "league", "elsewhere"

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
    ("learn/backends/", frozenset(), UPDATE),
    ("learn/", frozenset({"learn", "update"}), UPDATE),
    ("learn/", frozenset({"snapshot"}), SAVING),
    ("training/loop.py", frozenset({"_call"}), CALLBACK),
    ("training/loop.py", frozenset({"save", "_save_last"}), SAVING),
    ("training/loop.py", frozenset({"_await_answers", "_measure"}), EVALUATION),
    ("training/league", frozenset(), LEAGUE),
    ("training/member.py", frozenset({"record"}), RECORDING),
    ("training/member.py", frozenset({"save", "wait_for_save", "save_last"}), SAVING),
    ("training/records/", frozenset(), RECORDING),
    ("training/display/", frozenset(), SHOWING),
)
"""Files, functions in them (none: all), and what it means to be below them."""
NESTED = {OPPONENTS: {INFERENCE, SLOTS}}
"""What does not count any more below a place: an opponent's network is the opponent's."""
ROOTS = ("training/loop.py", "speed/rounds.py", "learn/")
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
    name = name.rpartition(".")[2]  # some samplers say whose method it is
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


def is_busy(stack: Stack) -> bool:
    """Whether a thread is at work, and not in a lock that a sampler takes for work."""
    return not any("acquire_lock" in frame.name for frame in stack.frames)


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
        self.threads = [
            read(s)
            for s in stacks
            if main and s.process == main[0] and s.thread != main[1] and is_busy(s)
        ]
        """Of other threads of the same process, which want the interpreter as well."""
        self.workers = [
            read(s)
            for s in evidence.beside.stacks
            if any(ours(frame) == WORKER for frame in s.frames)
        ]
        """Of the processes that step environments, where those were looked at."""

    @cached_property
    def wall(self) -> int:
        """Samples of the training thread, which is there all the time, also where it waits."""
        return max(sum(sight.samples for sight in self.sights), 1)

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
        """Share of the time in environments."""
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
        frames: dict[tuple[str, str], Frame] = {}
        lines: Counter[Frame] = Counter()
        for sight in (*self.sights, *self.workers):
            own = hottest(sight.theirs) if met(sight) else None
            if own is not None:
                found[own.file, own.name] += sight.samples
                lines[own] += sight.samples
        for frame, _ in reversed(lines.most_common()):
            frames[frame.file, frame.name] = frame
        return place_of(frames[found.most_common(1)[0][0]]) if found else ""
