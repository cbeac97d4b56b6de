"""What was seen of a training: settings, phases, stacks, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.usage import PROC, below

TRAINING, EVALUATION, OTHER = "training", "evaluation", "other process"
DOES = {
    "sparring.training.evaluate": EVALUATION,
    "sparring.pools.workers.process": "worker",
    "sparring.cluster.actors.actor": "actor",
    "sparring.cluster.replicas.replica": "replica",
}
"""What the processes are for that a training starts, by their module."""


def processes_of(pid: int) -> dict[int, str]:
    """Return a process and all that it has started, with what they do."""
    return {pid: TRAINING} | {one: does(one) for one in below(pid)}


def does(pid: int) -> str:
    with suppress(OSError):
        words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return next((DOES[word] for word in words if word in DOES), OTHER)
    return OTHER


@dataclass(frozen=True)
class Frame:
    """A function on a stack."""

    name: str
    file: str
    """As the program knows it; a library's name where the code is native."""
    line: int = 0

    @property
    def native(self) -> bool:
        return not self.file.endswith(".py") and not self.file.startswith("<")

    @property
    def place(self) -> str:
        """The file as a person knows it: from its package on."""
        return short_place(self.file)


@dataclass(frozen=True)
class Stack:
    """A stack that was met, the outermost function in front."""

    frames: tuple[Frame, ...]
    samples: int
    thread: str = ""
    process: int = 0


@dataclass(frozen=True)
class Stacks:
    """All stacks that were met.

    The training's main thread is there all the time, also where it waits, so that shares of its
    samples are shares of the time; other threads only while they work.
    """

    stacks: tuple[Stack, ...] = ()
    rate: int = 100
    """Samples per second and thread."""

    @classmethod
    def of(cls, counted: Mapping[tuple[tuple[Frame, ...], str, int], int], rate: int) -> Stacks:
        """Return stacks that were counted, by frames, thread and process; the commonest first."""
        found = (Stack(frames, times, *of) for (frames, *of), times in counted.items())  # type: ignore[arg-type]
        return cls(tuple(sorted(found, key=lambda one: -one.samples)), rate)

    def of_processes(self, pids: Container[int]) -> Stacks:
        return Stacks(tuple(one for one in self.stacks if one.process in pids), self.rate)

    def plain(self, file: str = "file") -> dict[str, Any]:
        """As JSON has it, with every frame named once. file: or place, as a person knows it."""
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
    def read(cls, plain: Mapping[str, Any], rate: int) -> Stacks:
        frames = [Frame(*one) for one in plain["frames"]]
        stacks = [
            Stack(**{**row, "frames": tuple(frames[at] for at in row["frames"])})
            for row in plain["stacks"]
        ]
        return cls(tuple(stacks), rate)

    @property
    def samples(self) -> int:
        return sum(stack.samples for stack in self.stacks)

    def share(self, met: Callable[[Stack], bool]) -> float:
        """Share of the samples whose stack is so."""
        found = sum(stack.samples for stack in self.stacks if met(stack))
        return found / max(self.samples, 1)


@dataclass(frozen=True)
class Kernel:
    """A kind of work on a GPU: all launches of one kernel."""

    name: str
    kind: str
    """Such as products, games, optimizer or copies."""
    seconds: float
    launches: int


@dataclass(frozen=True)
class Evidence:
    """All that a verdict may rest on."""

    config: TrainConfig
    """The settings of what was looked at."""
    phases: Mapping[str, float]
    """Shares of the time by phase, as the learner's timers have them."""
    decisions_per_s: float
    samples_per_s: float
    seconds: float
    """Of training, while it was looked at."""
    stacks: Stacks = field(default_factory=Stacks)
    """Of the training process, its main thread and those that work for it."""
    beside: Stacks = field(default_factory=Stacks)
    """Of the processes that it has started: workers, actors, replicas, evaluation."""
    processes: Mapping[int, str] = field(default_factory=dict)
    """What the processes of these stacks do: "training", "worker", "actor", "evaluation", ..."""
    cpu_cores: float = 0.0
    """Cores that were busy with it."""
    cores: int = 1
    """That it may use."""
    load: float = 0.0
    """What others wanted of the cores at the same time, in cores."""
    gpu: Mapping[str, float] = field(default_factory=dict)
    """Shares of the GPU's time by kind of kernel, and "idle"; empty without one."""
    kernels: tuple[Kernel, ...] = ()
    """What a GPU was busy with, the longest first; empty where nobody could look."""
    path: str = ""
    """How its networks are computed, in a line."""
    attached: bool = False
    """It was somebody's run that was going on, not one of ours."""
    blind: tuple[str, ...] = ()
    """What could not be seen, and why, in words."""

    @property
    def everything(self) -> Stacks:
        return Stacks((*self.stacks.stacks, *self.beside.stacks), self.stacks.rate)


PACKAGES = ("site-packages", "dist-packages")
"""Folders whose members are packages."""


@lru_cache(maxsize=4096)
def short_place(file: str) -> str:
    """A file's name from its package on; of a library, and of a file in no package, its own."""
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
