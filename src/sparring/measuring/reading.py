"""What settings did in some seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from sparring.measuring.rounds import Round


@dataclass(frozen=True)
class Opened:
    """What became of settings: decided by the plan, before anything is timed."""

    device: str
    games_on: str
    fused: bool
    threads: int
    games: int
    steps: int
    slots: int
    parameters: int
    seconds: float
    """That making it all took, with the rounds that warmed it up."""
    workers: int = 0
    memory_bytes: int = 0
    """By which the process and those that work for it grew."""
    gpu_bytes: int = 0
    """The same on a GPU."""
    free_bytes: int = 0
    """Memory that is left for others."""
    gpu_free_bytes: int = 0
    """The same on a GPU."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


@dataclass(frozen=True)
class Reading:
    """Rounds of one learner, timed, and the memory that its process held."""

    rounds: tuple[Round, ...]
    memory_bytes: int
    """Of the process and those that work for it, with everything else that is open in it."""
    gpu_bytes: int = 0
    """Most that was in use on a GPU, without what else is open."""

    @property
    def seconds(self) -> float:
        """That were timed."""
        return sum(one.seconds for one in self.rounds)

    @property
    def decisions_per_s(self) -> float:
        """Median over the rounds: one busy moment of the machine does not move it."""
        return median(one.decisions / one.seconds for one in self.rounds)

    @property
    def samples_per_s(self) -> float:
        """Decisions that were learned from, median over the rounds."""
        return median(one.samples / one.seconds for one in self.rounds)

    @property
    def cpu_cores(self) -> float:
        """Cores that were busy with this process and those that work for it."""
        return sum(one.cpu_s for one in self.rounds) / max(self.seconds, 1e-9)

    @property
    def gpu_busy(self) -> float:
        """Share of the time in which the GPU was at work, 0 where nobody knows."""
        return median(one.gpu_busy for one in self.rounds)

    @property
    def phases(self) -> dict[str, float]:
        """Shares of the time by phase."""
        return shares_of([one.phases for one in self.rounds], self.seconds)

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Reading:
        """From what `plain` wrote."""
        rounds = tuple(Round(**one) for one in plain["rounds"])
        return cls(rounds, int(plain["memory_bytes"]), int(plain["gpu_bytes"]))

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def shares_of(phases: Sequence[Mapping[str, float]], seconds: float) -> dict[str, float]:
    """Seconds by phase of several rounds as shares of all the time."""
    names = {name: None for one in phases for name in one}
    return {name: sum(one.get(name, 0.0) for one in phases) / max(seconds, 1e-9) for name in names}
