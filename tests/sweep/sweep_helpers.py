"""A sweep without trainings: a function of the settings is what comes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.sweep.file import SweepFile, read_sweep
from sparring.sweep.search import TrialSearch
from sparring.sweep.settings import config_at
from sparring.sweep.storage import SweepFolder
from sparring.sweep.training import OnEvaluation, train_jobs
from sparring.sweep.trials import (
    DONE,
    PRUNED,
    Evaluation,
    Judge,
    Trial,
    TrialJob,
    TrialRefusedError,
    failed,
)

HEAD = """
game = "tic_tac_toe"
updates = 3
device = "cpu"
threads = 1
"""
Objective = Callable[[TrainConfig], Sequence[float]]
"""The values of a trial's evaluations; none: it fails."""


class TrainingStoppedError(Exception):
    """The process that searches ends here."""


class Function:
    """Whoever trains, by a function; the jobs end in the order in which they began."""

    shared: Sequence[str] = ()

    def __init__(self, objective: Objective, *, at_once: int = 1, most: int = 1000) -> None:
        """Take a function. most: jobs after which the whole process is gone."""
        self.objective, self.at_once, self.most = objective, at_once, most
        self.waiting: list[tuple[TrialJob, Judge]] = []
        self.batches: list[list[TrialJob]] = []

    @property
    def free(self) -> int:
        return self.at_once - len(self.waiting)

    def begin(self, jobs: Sequence[TrialJob], judge: Judge) -> None:
        assert len(jobs) <= self.free
        self.batches.append(list(jobs))
        self.waiting += [(job, judge) for job in jobs]

    def wait(self) -> list[Trial]:
        job, judge = self.waiting.pop(0)
        self.most -= 1
        if self.most < 0:
            raise TrainingStoppedError
        curve: list[Evaluation] = []
        for step, value in enumerate(self.objective(job.config), start=1):
            curve.append((float(step), 1000.0 * step, value))
            why = judge(job.trial.number, curve)
            if why:
                return [replace(job.trial, state=PRUNED, value=value, curve=tuple(curve), why=why)]
        if not curve:
            return [failed(job.trial, "nothing came of it")]
        last = curve[-1][2]
        run = f"{job.config.runs}/{job.config.name}"
        ended = replace(job.trial, state=DONE, value=last, low=last, high=last, curve=tuple(curve))
        return [replace(ended, seconds=1.0, run=run)]

    def close(self) -> None:
        self.waiting.clear()


def write_sweep(folder: Path, ranges: str, search: str = "", head: str = HEAD) -> Path:
    """Write the file of a sweep."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tried.toml"
    path.write_text(f"{head}\n[sweep]\n{search}\n[sweep.ranges]\n{ranges}\n")
    return path


def search_with(
    place: Path, path: Path, executor: Any, *, reserve_s: float = 0.0
) -> tuple[list[Trial], TrialSearch]:
    """Search by a file in a folder, which may hold trials already."""
    file: SweepFile = read_sweep(str(path))
    folder = SweepFolder(place)
    if not folder.is_sweep:
        SweepFolder.make(place, path.read_bytes(), {})
    config = config_at(file, {})
    search = TrialSearch(file, folder, executor, config, reserve=lambda _: reserve_s)
    return search.run(), search


def told(trials: Sequence[Trial]) -> list[tuple[Mapping[str, Any], str, float | None]]:
    """What trials were and what came of them."""
    return [(trial.settings, trial.state, trial.value) for trial in trials]


class Direct:
    """Trains one job after the other in this process: the slow and obvious way."""

    at_once = 1
    shared: Sequence[str] = ()

    def __init__(self, raised: str) -> None:
        self._raised = raised
        self._waiting: list[tuple[TrialJob, Judge]] = []

    @property
    def free(self) -> int:
        """One, unless it is busy."""
        return 1 - len(self._waiting)

    def begin(self, jobs: Sequence[TrialJob], judge: Judge) -> None:
        """Take a job."""
        if len(jobs) > self.free:
            raise ConfigError(f"{len(jobs)} trials at once in one process; give one")
        self._waiting += [(job, judge) for job in jobs]

    def wait(self) -> list[Trial]:
        """Train it to its end."""
        job, judge = self._waiting.pop()
        curve: list[Evaluation] = []
        told: OnEvaluation = lambda _, point: curve.append(point)  # noqa: E731
        judged: dict[int, str] = {}

        def hopeless(number: int) -> str:
            if len(curve) not in judged:
                judged[len(curve)] = judge(number, curve) if curve else ""
            return judged[len(curve)]

        threads = job.config.threads or os.cpu_count() or 1
        try:
            return train_jobs([job], self._raised, told, hopeless, threads=threads)
        except TrialRefusedError as wrong:
            return [failed(job.trial, str(wrong))]

    def close(self) -> None:
        """Forget what has not begun."""
        self._waiting.clear()
