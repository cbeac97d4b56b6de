"""Trials as work: what is to be trained, who does it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparring.config import TrainConfig
from sparring.sweep.trials import FAILED

Point = tuple[float, float, float]
"""An evaluation: seconds, decisions, value."""
Judge = Callable[[int, Sequence[Point]], str]
"""Says why a trial is hopeless, by its number and its evaluations so far; "" if it is not."""


@dataclass(frozen=True)
class Job:
    """A training that is to be done."""

    number: int
    config: TrainConfig
    """Complete; its name is that of the run's folder."""
    final: bool = False
    """Measure it at the end as `sparring train` does, over many games."""


@dataclass(frozen=True)
class Ended:
    """What came of it."""

    number: int
    state: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    curve: tuple[Point, ...] = ()
    seconds: float = 0.0
    decisions: int = 0
    run: str = ""
    why: str = ""
    noted: str = ""
    """Why it was hopeless on the way, of one that went to the end all the same."""
    refused: bool = False
    """Nothing was trained: the settings were refused, or did not fit."""


class Executor(Protocol):
    """Whoever trains."""

    at_once: int
    shared: Sequence[str]
    """Ranges of which jobs that begin together should have one value."""

    @property
    def free(self) -> int:
        """How many jobs may begin now."""
        ...

    def begin(self, jobs: Sequence[Job], judge: Judge) -> None:
        """Begin some, no more than are free. judge: asked after every evaluation."""
        ...

    def wait(self) -> list[Ended]:
        """Wait until something has ended."""
        ...

    def close(self) -> None:
        """End everything that is under way."""
        ...


def never(_number: int, _curve: Sequence[Point]) -> str:
    """Judge nothing."""
    return ""


def failed(job: Job, why: str, *, refused: bool = False) -> Ended:
    """A job that came to nothing."""
    return Ended(job.number, FAILED, why=why or "it failed without a word", refused=refused)
