"""What was seen of a training: settings, phases, stacks, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

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
    """Say what a process is for that a training has started."""
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
        """Whether it is not Python."""
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

    @property
    def samples(self) -> int:
        """In all."""
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
    """Such as products, games, optimiser or copies."""
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
