"""Evidence of a profile: settings, phases, sampled stacks, GPU kernels, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.usage import PROC, descendants

TRAINING, EVALUATION, OTHER = "training", "evaluation", "other process"
PROCESS_KINDS = {
    "sparring.training.evaluate": EVALUATION,
    "sparring.pools.workers.process": "worker",
    "sparring.cluster.actors.actor": "actor",
    "sparring.cluster.replicas.replica": "replica",
}
"""Kinds of the processes that a training starts, by module."""


def processes_of(pid: int) -> dict[int, str]:
    """Return a process and its descendants, with their kinds."""
    return {pid: TRAINING} | {child: process_kind(child) for child in descendants(pid)}


def process_kind(pid: int) -> str:
    with suppress(OSError):
        words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return next((PROCESS_KINDS[word] for word in words if word in PROCESS_KINDS), OTHER)
    return OTHER


@dataclass(frozen=True)
class Frame:
    """A function on a stack."""

    name: str
    file: str
    """Path of a Python file; name of a library where the code is native."""
    line: int = 0

    @property
    def native(self) -> bool:
        return not self.file.endswith(".py") and not self.file.startswith("<")

    @property
    def short_file(self) -> str:
        """Path from the package on."""
        return shorten_path(self.file)


@dataclass(frozen=True)
class CallStack:
    """A stack that was sampled, outermost function first."""

    frames: tuple[Frame, ...]
    samples: int
    thread: str = ""
    process: int = 0


@dataclass(frozen=True)
class CallStacks:
    """All sampled stacks.

    The main thread of the training is sampled all the time, also where it waits, so that shares of
    its samples are shares of the time; other threads only while they work.
    """

    stacks: tuple[CallStack, ...] = ()
    rate: int = 100
    """Samples per second and thread."""

    @classmethod
    def of(cls, counted: Mapping[tuple[tuple[Frame, ...], str, int], int], rate: int) -> CallStacks:
        """Return stacks from counts by (frames, thread, process), most frequent first."""
        found = (CallStack(frames, times, *of) for (frames, *of), times in counted.items())  # type: ignore[arg-type]
        return cls(tuple(sorted(found, key=lambda one: -one.samples)), rate)

    def of_processes(self, pids: Container[int]) -> CallStacks:
        return CallStacks(tuple(one for one in self.stacks if one.process in pids), self.rate)

    def plain(self, file: str = "file") -> dict[str, Any]:
        """Return JSON with every frame listed once. file: the attribute, or `short_file`."""
        numbers: dict[Frame, int] = {}
        rows = [
            {
                "frames": [numbers.setdefault(frame, len(numbers)) for frame in stack.frames],
                "samples": stack.samples,
                "thread": stack.thread,
                "process": stack.process,
            }
            for stack in self.stacks
        ]
        frames = [[frame.name, getattr(frame, file), frame.line] for frame in numbers]
        return {"frames": frames, "stacks": rows}

    @classmethod
    def read(cls, plain: Mapping[str, Any], rate: int) -> CallStacks:
        frames = [Frame(*one) for one in plain["frames"]]
        stacks = [
            CallStack(**{**row, "frames": tuple(frames[at] for at in row["frames"])})
            for row in plain["stacks"]
        ]
        return cls(tuple(stacks), rate)

    @property
    def samples(self) -> int:
        return sum(stack.samples for stack in self.stacks)

    def share(self, condition: Callable[[CallStack], bool]) -> float:
        """Share of the samples whose stack fulfills a condition."""
        found = sum(stack.samples for stack in self.stacks if condition(stack))
        return found / max(self.samples, 1)


@dataclass(frozen=True)
class KernelTime:
    """Total time of one GPU kernel over all its launches."""

    name: str
    kind: str
    """Kind of work, such as products, games, optimizer or copies."""
    seconds: float
    launches: int


@dataclass(frozen=True)
class Evidence:
    """Everything that verdicts are computed from."""

    config: TrainConfig
    """Settings of the profiled training."""
    phases: Mapping[str, float]
    """Shares of the time by phase, from the learner's timers."""
    decisions_per_s: float
    samples_per_s: float
    seconds: float
    """Length of the profile."""
    stacks: CallStacks = field(default_factory=CallStacks)
    """Stacks of the training process, all threads."""
    child_stacks: CallStacks = field(default_factory=CallStacks)
    """Stacks of its child processes: workers, actors, replicas, evaluation."""
    processes: Mapping[int, str] = field(default_factory=dict)
    """Kind of each process: "training", "worker", "actor", "evaluation", ..."""
    cpu_cores: float = 0.0
    """Cores busy with the training."""
    cores: int = 1
    """Cores that it may use."""
    load: float = 0.0
    """Cores that other programs wanted at the same time."""
    simulations_per_s: float = 0.0
    """Of the learner's searches; 0 without search."""
    gpu: Mapping[str, float] = field(default_factory=dict)
    """Shares of the GPU's time by kind of kernel, and "idle"; empty without a GPU."""
    kernels: tuple[KernelTime, ...] = ()
    """GPU kernels by total time, longest first; empty where they were not recorded."""
    path: str = ""
    """How its networks are computed, as one line."""
    attached: bool = False
    """Whether it is a run of the user that was training, not one started for the profile."""
    not_seen: tuple[str, ...] = ()
    """What the profile does not show, and why, as texts."""

    @property
    def all_stacks(self) -> CallStacks:
        return CallStacks((*self.stacks.stacks, *self.child_stacks.stacks), self.stacks.rate)


PACKAGES = ("site-packages", "dist-packages")
"""Folders that contain packages."""


@lru_cache(maxsize=4096)
def shorten_path(file: str) -> str:
    """Return a path from its package on; the file name of a library, or of a file in no package."""
    path = Path(file)
    if not file.endswith(".py") or not path.is_absolute():
        return file.rpartition("/")[2] if file.startswith("/") else file
    parts = path.parts
    for at in range(len(parts) - 1, 0, -1):
        if parts[at - 1] in PACKAGES or parts[at - 1].startswith("python3."):
            return "/".join(parts[at:])
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return path.relative_to(folder).as_posix()
