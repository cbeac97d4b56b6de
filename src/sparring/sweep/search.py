"""Runs trials until trials or time are used up, and confirms the best with fresh seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from sparring.config import TrainConfig
from sparring.league.intervals import welch_95
from sparring.league.statistics import Estimate, improvement_estimate
from sparring.sweep.file import NEAREST, SweepFile
from sparring.sweep.sampling import propose
from sparring.sweep.settings import config_at
from sparring.sweep.space import nearest_trained
from sparring.sweep.storage import CONFIRM, SweepFolder, TrialLog
from sparring.sweep.trials import (
    BEST,
    DONE,
    PRESET,
    RUNNING,
    Evaluation,
    Executor,
    Judge,
    Trial,
    TrialJob,
    never_prune,
    prune_reason,
)
from sparring.training.planning.custom import rules_of
from sparring.training.planning.settings import budget_of

START_S = 8.0
"""Seconds to start a process: libraries, games, graphs."""
FRESH = 1_000_000
"""Offset from the seeds of the search to those of the confirmation."""
FINAL_GAMES = 2048
"""Games of a confirmation run against each opponent, unless the file sets them: the differences
between seeds are larger than the error of this many games."""
KEEP = "keep the preset"
OnTrial = Callable[[Trial], None]


def run_trials(
    file: SweepFile,
    folder: SweepFolder,
    records: TrialLog,
    executor: Executor,
    more: Callable[[int], list[Trial]],
    *,
    on_trial: OnTrial,
    judge: Judge = never_prune,
) -> None:
    """Run trials until `more` returns none; log all when they start and end.

    more: returns the next trials, at most this many. on_trial: called with every finished trial.
    """
    running: dict[int, Trial] = {}
    while True:
        batch = more(executor.free) if executor.free else []
        for trial in batch:
            folder.clear_run(run_name(trial))  # of an interrupted session
            running[trial.number] = trial
            records.put(trial)
        if batch:
            executor.begin([job_of(file, folder, trial) for trial in batch], judge)
        elif not running:
            return
        for trial in executor.wait():
            del running[trial.number]
            records.put(trial)
            on_trial(trial)


def run_name(trial: Trial) -> str:
    if side := trial.extra.get("side"):
        return f"{side}-{trial.number // 2 + 1}"
    return f"trial-{trial.number:04d}"


def job_of(file: SweepFile, folder: SweepFolder, trial: Trial) -> TrialJob:
    """Return the job of a trial; confirmation runs play many final games."""
    name, confirms = run_name(trial), "side" in trial.extra
    config = config_at(file, trial.settings, seed=trial.seed, name=name, folder=str(folder.path))
    if trial.init:
        config = replace(config, init=str(folder.run_path(Path(trial.init).name)))
    if confirms and "final_games" not in file.settings.get("eval", {}):
        games = min(config.eval.final_games, FINAL_GAMES)
        config = replace(config, eval=replace(config.eval, final_games=games))
    return TrialJob(trial, config, confirms)


@dataclass
class TrialSearch:
    """A running search."""

    file: SweepFile
    folder: SweepFolder
    executor: Executor
    config: TrainConfig
    """Settings of the file, without values of the ranges."""
    reserve: Callable[[float], float] = lambda _usual_s: 0.0
    """Seconds to reserve for the confirmation, given those of a trial."""
    wanted: int = 0
    """Expected number of trials, if the file does not set it."""
    on_trial: OnTrial = lambda _trial: None
    """Called with every finished trial."""

    def __post_init__(self) -> None:
        self.records: TrialLog = self.folder.trials
        self._again = self.records.lost
        self._started, self._spent = time.perf_counter(), self.folder.spent_s

    def run(self) -> list[Trial]:
        """Search until there are enough trials, or no time for another one."""
        where = (self.file, self.folder, self.records, self.executor)
        run_trials(*where, self._next, on_trial=self._ended, judge=self._judge)
        return self.records.ended

    @property
    def spent_s(self) -> float:
        return self._spent + time.perf_counter() - self._started

    def _next(self, room: int) -> list[Trial]:
        """Return the trials to start together: interrupted ones first, then new ones."""
        batch, self._again = self._again[:room], self._again[room:]
        wanted = self.file.search.trials
        while len(batch) < room:
            number = max([-1, *self.records.trials, *(trial.number for trial in batch)]) + 1
            if (wanted and number >= wanted) or not self._has_time():
                break
            batch.append(self._fresh(number, batch))
        return batch

    def _fresh(self, number: int, batch: Sequence[Trial]) -> Trial:
        """Return a new trial."""
        search, waiting = self.file.search, {trial.number for trial in self._again}
        known = {**self.records.trials, **{trial.number: trial for trial in batch}}
        shared = self.executor.shared if batch else ()
        settings = propose(
            self.file.ranges,
            [trial for at, trial in known.items() if at not in waiting],
            kind=search.sampler,
            seed=search.seed,
            number=number,
            wanted=search.trials or self.wanted,
            fixed={name: batch[0].settings[name] for name in shared},
        )
        seed = int(self.file.settings.get("seed", 0)) + number
        return Trial(number, settings, RUNNING, seed=seed, init=self._first_weights(settings))

    def _first_weights(self, settings: dict[str, Any]) -> str:
        """Return the run with the initial weights of a trial, "" for none."""
        if self.file.search.warm_start != NEAREST:
            return ""
        mine = config_at(self.file, settings)
        fitting = [
            trial
            for trial in self.records.ended
            if trial.state == DONE and same_net(mine, config_at(self.file, trial.settings))
        ]
        found = nearest_trained(settings, fitting, self.file.ranges)
        return found.run if found else ""

    def _has_time(self) -> bool:
        minutes = self.file.search.minutes
        if not minutes:
            return True
        known = [trial.seconds for trial in self.records.ended if trial.state == DONE]
        kind, amount = budget_of(self.config)
        usual_s = median(known) if known else amount * 60 * (kind == "minutes")
        needed = START_S + usual_s + self.reserve(usual_s)
        return self.spent_s + needed <= minutes * 60

    def _judge(self, _number: int, curve: Sequence[Evaluation]) -> str:
        by = int(budget_of(self.config)[0] != "minutes")  # then at equal decisions
        return prune_reason(curve, self.records.ended, warm_up=self.file.search.prune, by=by)

    def _ended(self, trial: Trial) -> None:
        self.folder.save_seconds(self.spent_s)
        self.on_trial(trial)


def same_net(one: TrainConfig, two: TrainConfig) -> bool:
    """Whether two configurations have networks of the same shape."""
    nets = [(config.net, config.algo, config.hierarchy, config.roles) for config in (one, two)]
    if nets[0] != nets[1]:
        return False
    if one.set == two.set:
        return True
    mine, theirs = rules_of(one), rules_of(two)  # flags may change observations and actions
    sizes = [(rules.actions, rules.box, rules.features) for rules in (mine, theirs)]
    return sizes[0] == sizes[1]


@dataclass(frozen=True)
class Confirmation:
    """Results of the confirmation with fresh seeds."""

    best: tuple[float, ...]
    """Values of the best setting by seed."""
    preset: tuple[float, ...]
    """Values of the file's settings with the same seeds."""
    runs: tuple[str, ...]
    failed: tuple[str, ...] = ()
    """Errors of failed runs."""

    @property
    def difference(self) -> Estimate:
        there = self.best and self.preset
        return difference_of(self.best, self.preset) if there else Estimate(0.0)

    @property
    def stronger(self) -> Estimate:
        """Probability that a run of the best setting is stronger than one of the preset."""
        there = self.best and self.preset
        return improvement_estimate(self.best, self.preset) if there else Estimate(0.5)

    @property
    def is_better(self) -> bool:
        """Whether the whole interval is above 0, and no run of the best setting failed."""
        return not self.missing and self.difference.low is not None and self.difference.low > 0

    @property
    def missing(self) -> str:
        """A failed run of the best setting; without it the values would be biased."""
        return next((line for line in self.failed if line.startswith(f"{BEST}-")), "")

    def plain(self) -> dict[str, Any]:
        found = {"difference": self.difference.plain(), "stronger": self.stronger.plain()}
        return {**asdict(self), **found, "better": self.is_better, "verdict": self.verdict}

    @property
    def verdict(self) -> str:
        if not self.best or not self.preset:
            why = self.failed[0] if self.failed else "nothing was trained"
            return f"the best setting was not confirmed: {why}; {KEEP}"
        by = self.difference
        shown = f"{by.value:+.4g}"
        if by.low is not None and by.high is not None:
            shown += f" ({by.low:+.4g} .. {by.high:+.4g})"
        if self.missing:
            return f"the best setting is not reliable: {self.missing}; without it {shown}; {KEEP}"
        if by.low is None or by.high is None:
            return f"one seed cannot tell whether the best setting is better: {shown}; {KEEP}"
        seeds = f"over {len(self.best)} fresh seeds"
        if self.is_better:
            return f"the best setting is better than the preset by {shown} {seeds}"
        how = "worse" if by.high < 0 else "not shown to be better"
        return f"the best setting is {how} than the preset: {shown} {seeds}; {KEEP}"


def difference_of(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Return the difference of means with Welch's 95 % interval."""
    value, half = fmean(ours) - fmean(theirs), welch_95(ours, theirs)
    return Estimate(value) if half is None else Estimate(value, value - half, value + half)


def confirm(
    file: SweepFile,
    folder: SweepFolder,
    executor: Executor,
    best: Trial,
    on_trial: OnTrial = lambda _trial: None,
) -> Confirmation:
    """Train the best setting and the file's settings with seeds that the search did not use.

    Finished confirmation runs of the same setting are not repeated.
    """
    records = folder.confirming
    if any(known.extra.get("of") != best.settings for known in records.trials.values()):
        remove_confirmation(folder)
        records = folder.confirming
    runs, there = confirmation_trials(file, best), {ended.number for ended in records.ended}
    waiting = [trial for trial in runs if trial.number not in there]

    def more(room: int) -> list[Trial]:
        batch, waiting[:] = waiting[:room], waiting[room:]
        return batch

    run_trials(file, folder, records, executor, more, on_trial=on_trial)
    return summarize([records.trials[trial.number] for trial in runs])


def summarize(trials: Sequence[Trial]) -> Confirmation:
    values: dict[str, list[float]] = {BEST: [], PRESET: []}
    for trial in trials:
        if trial.state == DONE and trial.value is not None:
            values[trial.extra["side"]].append(trial.value)
    return Confirmation(
        best=tuple(values[BEST]),
        preset=tuple(values[PRESET]),
        runs=tuple(trial.run for trial in trials if trial.run),
        failed=tuple(f"{run_name(trial)}: {trial.why}" for trial in trials if trial.state != DONE),
    )


def confirmation_trials(file: SweepFile, best: Trial) -> list[Trial]:
    """Return the confirmation runs: for each seed the best setting and the file's settings."""
    first = int(file.settings.get("seed", 0)) + FRESH
    found: list[Trial] = []
    for seed in range(file.search.confirm):
        for side, settings in ((BEST, best.settings), (PRESET, {})):
            extra = {"side": side, "of": best.settings}
            found.append(Trial(len(found), settings, RUNNING, seed=first + seed, extra=extra))
    return found


def remove_confirmation(folder: SweepFolder) -> None:
    """Remove the confirmation runs of another setting."""
    for trial in folder.confirming.trials.values():
        folder.clear_run(run_name(trial))
    (folder.path / CONFIRM).unlink(missing_ok=True)
