"""Monitor of a run's utilization: adds up the work of its updates, compares it to peak rates."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from sparring.errors import SparringError
from sparring.learn.algos import LEARNERS
from sparring.learn.learner import Learner, Report
from sparring.learn.plan import CPU, Plan
from sparring.nets.net import Net
from sparring.training.planning.training import RunPlan
from sparring.training.utilization.advice import advise_minibatch
from sparring.training.utilization.cache import MeasurementCache, has_cache_file
from sparring.training.utilization.minibatch import (
    can_time_minibatches,
    measure_minibatches,
    saved_timings,
)
from sparring.training.utilization.peaks import (
    ComputeDevice,
    can_measure_stepping,
    measure_peaks,
    measure_stepping,
    peak_names,
    saved_peaks,
    saved_stepping,
    stepping_name,
)
from sparring.training.utilization.share import (
    MinibatchTimings,
    Peaks,
    Utilization,
    WorkDone,
    compute_utilization,
)
from sparring.training.utilization.work import WorkPerSample, work_of
from sparring.usage import LoadMonitor

INTERVAL_S = 0.5
"""The share is computed anew after so many seconds of updates, so that short updates stay cheap."""
WINDOW = 16
"""The share is an average over so many intervals."""
MIN_MINUTES = 1.0
"""Shorter runs do not measure the machine: it would take too much of their time."""


@dataclass(frozen=True)
class MeasuredRun:
    """The run whose utilization is measured."""

    plan: Plan
    algo: str
    learner: Learner
    processes: bool = False
    """Other processes play or learn as well."""

    @property
    def device(self) -> ComputeDevice:
        return ComputeDevice(self.plan.device, self.plan.threads)

    @property
    def precision(self) -> str:
        return "bf16" if self.plan.device != CPU and self.plan.collect.bf16 else "float32"

    @property
    def unknown_reason(self) -> str:
        """Why its share cannot be computed, "" if it can."""
        if self.algo not in LEARNERS:
            return "the work of a custom learner cannot be counted"
        return "several processes share the work" if self.processes else ""

    def net(self) -> Net:
        """Return another network of the same architecture, on the CPU."""
        return self.learner.policy().net


class UtilizationMonitor:
    """Computes utilization from updates. Made by `make_monitor`."""

    def __init__(
        self,
        work: WorkPerSample | None,
        peaks: Peaks | None,
        *,
        timings: MinibatchTimings | None = None,
        unknown_reason: str = "",
        on_peaks_exceeded: Callable[[], None] | None = None,
        load: LoadMonitor | None = None,
    ) -> None:
        """Monitor a run, from its work and the machine's peaks.

        on_peaks_exceeded: called once if the run is faster than the peaks.
        load: measures how much of the cores other programs use.
        """
        self.work, self.peaks, self.timings = work, peaks, timings
        self.unknown_reason = unknown_reason
        self._on_peaks_exceeded, self._load = on_peaks_exceeded, load
        self._metrics = {role: metric_names(role) for role in (work.inference if work else ())}
        self._current = WorkDone()
        self._intervals: deque[WorkDone] = deque(maxlen=WINDOW)
        self._opponent_rows: int | None = None
        self._utilization: Utilization | None = None

    def add_update(
        self, reports: Sequence[Report], seconds: float, phases: Mapping[str, float]
    ) -> Utilization | None:
        """Add an update; return the utilization of the last ones, None if there is none yet.

        The first update compiles and warms up, so it does not count.
        """
        if self.unknown_reason:
            if self._utilization is None:
                self._utilization = Utilization(float("nan"), unknown_reason=self.unknown_reason)
            return self._utilization
        if self.work is None or self.peaks is None:
            return None
        before, self._opponent_rows = self._opponent_rows, sum(r.opponent_rows for r in reports)
        if before is None:
            return None
        self._add(reports, seconds, phases)
        self._current.rows += self._opponent_rows - before
        if self._utilization is None or self._current.seconds >= INTERVAL_S:
            self._utilization = self._compute(self.work, self.peaks)
        return self._utilization

    def _add(self, reports: Sequence[Report], seconds: float, phases: Mapping[str, float]) -> None:
        """Add the work of all members in an update, without the rows of frozen opponents."""
        done, work = self._current, self.work
        assert work
        done.seconds += seconds
        for name, spent in phases.items():
            done.phases[name] = done.phases.get(name, 0.0) + spent
        for report in reports:
            stats = report.stats
            # A search steps a game for every position that it evaluates.
            decisions = stats.get("learning/decisions", 0.0)
            done.rows += stats.get("learning/evaluations", decisions)
            for role, (samples_name, steps_name, examples_name) in self._metrics.items():
                samples = stats.get(samples_name, 0.0)
                if not samples:
                    continue
                trained = work.trained_samples(role, samples, stats.get(steps_name, 0.0))
                # Examples are trained on in every epoch, too.
                trained *= 1 + stats.get(examples_name, 0.0) / samples
                done.samples[role] = done.samples.get(role, 0.0) + samples
                done.trained[role] = done.trained.get(role, 0.0) + trained

    def _compute(self, work: WorkPerSample, peaks: Peaks) -> Utilization:
        """Close the current interval; return the utilization of the last intervals."""
        self._intervals.append(self._current)
        self._current, total = WorkDone(), WorkDone.total(self._intervals)
        result = compute_utilization(total, work, peaks)
        if result.exceeds_peaks and self._on_peaks_exceeded and len(self._intervals) == WINDOW:
            self._on_peaks_exceeded()
            self._on_peaks_exceeded = None
        if self._load and (contention := self._load.contention()):
            return replace(result, contention=contention)
        if self.timings is None or result.unknown_reason:
            return result
        update_share = total.phases.get("update", 0.0) / total.seconds
        advice = advise_minibatch(self.timings.now, self.timings.ratios, update_share)
        return replace(result, advice=advice)


def metric_names(role: str) -> tuple[str, str, str]:
    """Return the metrics with a role's samples, optimizer steps and examples."""
    suffix = f"/{role}" if role else ""
    return (
        f"learning/samples{suffix}",
        f"learning/optimizer_steps{suffix}",
        f"learning/examples{suffix}",
    )


def monitor_run(run: RunPlan, plan: Plan, learner: Learner, *, quiet: bool) -> UtilizationMonitor:
    """Return the monitor of a run. Only long runs that print measure the machine first."""
    kind, amount = run.budget
    measure = not quiet and kind == "minutes" and amount >= MIN_MINUTES
    return make_monitor(measured_run(run, plan, learner), measure=measure, echo=echo)


def measured_run(run: RunPlan, plan: Plan, learner: Learner) -> MeasuredRun:
    return MeasuredRun(plan, run.algo, learner, processes=run.processes)


def echo(text: str) -> None:
    with suppress(OSError):  # stderr is closed
        print(text, file=sys.stderr, flush=True)


def make_monitor(
    run: MeasuredRun, *, measure: bool = False, echo: Callable[[str], None] | None = None
) -> UtilizationMonitor:
    """Return a run's monitor, from cached measurements.

    measure: missing measurements are taken first, which takes about two seconds.
    echo: prints a line before that.
    """
    if run.unknown_reason:
        return UtilizationMonitor(None, None, unknown_reason=run.unknown_reason)
    if not measure and not has_cache_file():
        return UtilizationMonitor(None, None)
    cache, plan = MeasurementCache(), run.plan
    stale = [name for name in needed_entries(run) if cache.measured_under_load(name)]
    if measure:
        cache.drop(stale)
    if measure and not is_measured(run, cache):
        if echo:
            again = " again, because it was busy when it was measured before" if stale else ""
            echo(f"measuring this machine with these settings{again}: about two seconds")
        # Without memory to measure, the run goes on without a share.
        with suppress(torch.OutOfMemoryError, MemoryError, SparringError):
            measure_all(run, cache)
    rates, stepping = saved_peaks(run.device, cache), saved_stepping(plan, cache)
    products = rates.get(run.precision)
    if products is None or (stepping is None and can_measure_stepping(plan)):
        return UtilizationMonitor(None, None)
    net = run.net()
    work = work_of(plan, run.algo, net, stepping.density if stepping else 1.0)
    if work is None:
        return UtilizationMonitor(
            None, None, unknown_reason="the multiply-adds of this network cannot be counted"
        )
    peaks = Peaks(
        products,
        stepping.rate if stepping else None,
        apart=plan.device != CPU and plan.games_on == CPU,
    )
    return UtilizationMonitor(
        work,
        peaks,
        timings=saved_timings(plan, net, cache) if can_time_minibatches(plan, run.algo) else None,
        on_peaks_exceeded=lambda: cache.drop(needed_entries(run)),
        load=LoadMonitor(),
    )


def needed_entries(run: MeasuredRun) -> list[str]:
    names = [peak_names(run.device)[run.precision]]
    if can_measure_stepping(run.plan):
        names.append(stepping_name(run.plan))
    return names


def is_measured(run: MeasuredRun, cache: MeasurementCache) -> bool:
    plan = run.plan
    if any(name not in cache.entries for name in needed_entries(run)):
        return False
    if not can_time_minibatches(plan, run.algo):
        return True
    return saved_timings(plan, run.net(), cache) is not None


def measure_all(run: MeasuredRun, cache: MeasurementCache) -> float:
    """Take all missing measurements; return the seconds that it took."""
    started, plan = time.perf_counter(), run.plan
    measure_peaks(run.device, cache)
    measure_stepping(plan, cache)
    if can_time_minibatches(plan, run.algo):
        measure_minibatches(plan, run.learner, run.net(), cache)
    if plan.device != CPU:
        torch.cuda.empty_cache()
    return time.perf_counter() - started
