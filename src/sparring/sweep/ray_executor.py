"""Runs trials as Ray tasks on any machine of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparring.errors import SparringError
from sparring.league.arena import ALONE
from sparring.sweep.training import DIVERGED, DIVERGED_WORDS, reason
from sparring.sweep.trials import DONE, Judge, Trial, TrialJob, failed, objective_value
from sparring.training.records.metrics import read
from sparring.training.records.overview import events_of
from sparring.training.session import LOWERED
from sparring.training.status import PREVIOUS_BEST


class RayExecutor:
    """Trains as many jobs at once as the cluster has CPUs for; the next ones start together.

    Nothing is pruned: evaluations of a task arrive when it has ended.
    """

    shared: Sequence[str] = ()

    def __init__(self, address: str, raised: str, *, at_once: int = 0, threads: int = 1) -> None:
        """Connect. at_once: 0 for as many as there are CPUs for."""
        from sparring.cluster.ray.session import connect

        self._stack, self._raised, self._threads = ExitStack(), raised, threads
        self._cluster = self._stack.enter_context(connect(address))
        room = min(self._cluster.gpus or 1024, self._cluster.cpus // threads)
        self.at_once = at_once or max(int(room), 1)
        self._jobs: list[TrialJob] = []
        self._left = 0
        self._running: Iterator[Any] | None = None

    @property
    def free(self) -> int:
        return 0 if self._running else self.at_once

    def begin(self, jobs: Sequence[TrialJob], judge: Judge) -> None:
        from sparring.cluster.ray.runs import train_runs

        self._jobs, self._left = list(jobs), len(jobs)
        members = [replace(job.config, threads=self._threads) for job in jobs]
        self._running = train_runs(self._cluster, members)

    def wait(self) -> list[Trial]:
        if self._running is None:
            return []
        done = next(self._running)
        job = self._jobs[done.number]
        self._left -= 1
        if not self._left:
            self._running = None
        if done.error:
            return [failed(job.trial, reason(done.error))]
        return [ended_of(job, done.summary, self._raised)]

    def close(self) -> None:
        if self._running is not None:
            getattr(self._running, "close", lambda: None)()
            self._running = None
        self._stack.close()


def ended_of(job: TrialJob, facts: Mapping[str, Any], raised: str) -> Trial:
    """Return the result of a task from the folder of its run."""
    run, seconds = Path(facts["run"]), float(facts["minutes"]) * 60
    trial = replace(job.trial, run=str(run), seconds=seconds, decisions=int(facts["decisions"]))
    if any(event.get("event") in (LOWERED, DIVERGED) for event in events_of(run)):
        return failed(trial, DIVERGED_WORDS)
    try:
        points = evaluations(run)
    except (SparringError, OSError) as error:
        return failed(trial, str(error))
    if not points:
        return failed(trial, "no evaluation came to an end")
    curve = tuple((at, made, objective_value(raised, found)[0]) for at, made, found in points)
    at, made, found = points[-1]
    if job.final and facts["results"]:
        found = {name: facts["results"][name] for name in found if name in facts["results"]}
    value, low, high = objective_value(raised, found)
    trial = replace(trial, seconds=at, decisions=int(made), curve=curve)
    return replace(trial, state=DONE, value=value, low=low, high=high)


def evaluations(run: Path) -> list[tuple[float, float, dict[str, dict[str, float]]]]:
    """Return the evaluations of a run: seconds, decisions, and results by opponent."""
    import numpy as np

    curves: dict[str, Any] = read(run)
    if "eval/strength" not in curves:
        return []
    counted, _, decisions = curves["charts/decisions"]
    met = [
        name.split("/")[1] for name in curves if name.endswith("/score") and name.count("/") == 2
    ]
    met = [name for name in met if name == ALONE or f"eval/{name}/low" in curves]
    found = []
    for update, seconds in zip(*curves["eval/strength"][:2], strict=True):
        results: dict[str, dict[str, float]] = {}
        for name in met:
            for key in ("win", "low", "high", "score"):
                curve = curves.get(f"eval/{name}/{key}")
                if curve is not None and update in curve[0]:
                    at = int(np.flatnonzero(curve[0] == update)[0])
                    results.setdefault(name, {})[key] = float(curve[2][at])
        known = {name: one for name, one in results.items() if name != PREVIOUS_BEST}
        made = float(np.interp(update, counted, decisions))
        found.append((float(seconds), made, known))
    return found
