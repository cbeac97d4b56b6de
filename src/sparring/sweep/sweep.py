"""Runs a sweep: estimates its cost, chooses where trials run, and writes the results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.config import TrainConfig
from sparring.config.ranges import shortened
from sparring.config.tools import SweepConfig
from sparring.errors import ConfigError
from sparring.machine import cores
from sparring.output_files import check_folder
from sparring.store.files import write_atomic
from sparring.sweep.executor import ProcessExecutor, populated
from sparring.sweep.file import SearchConfig, SweepFile, differences, read_sweep, with_options
from sparring.sweep.sampling import importance
from sparring.sweep.search import START_S, Confirmation, OnTrial, TrialSearch, confirm
from sparring.sweep.settings import check_points, preset_of, ranges_shared, write_settings
from sparring.sweep.space import show_setting
from sparring.sweep.storage import FILE, TRIALS, SweepFolder
from sparring.sweep.trials import Executor, Trial, best_of, check_objective
from sparring.training.planning.custom import rules_of
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.settings import budget_of
from sparring.training.records.run import finite

EVALUATION_S = 3.0
"""Seconds of the evaluation at the end of a trial."""
MEASURING_S = 4.0
"""Seconds of the final games of a confirmation run."""
POPULATIONS = "populations"
SWEEPS = Path("sweeps")
PRESET, RESULTS = "best.toml", "results.json"
MEMBERS = 8
"""Default size of a population."""
SAVED_OPTIONS = ("minutes", "trials", "sampler", "at_once", "device", "cluster")
"""Command line options that are saved with a sweep and apply when it is resumed."""


@dataclass(frozen=True)
class TrialPlacement:
    """Where trials run, and how many at once."""

    kind: str
    """processes, populations or cluster."""
    at_once: int
    threads: int
    """Threads of every process."""
    shared: tuple[str, ...] = ()
    """Ranges that have one value for all members of a population."""
    cluster: str = ""

    def executor(self, raised: str) -> Executor:
        if self.cluster:
            from sparring.sweep.ray_executor import RayExecutor

            return RayExecutor(self.cluster, raised, at_once=self.at_once, threads=self.threads)
        return ProcessExecutor(
            raised,
            at_once=self.at_once,
            threads=self.threads,
            populations=self.kind == POPULATIONS,
            shared=self.shared,
        )

    def confirm_s(self, seeds: int, trial_s: float) -> float:
        """Estimate the seconds of a confirmation: best setting and preset, `seeds` runs each.

        trial_s: seconds of a trial with its evaluation. Members of a population are evaluated one
        after the other; with shared ranges, best setting and preset need two populations.
        """
        if not seeds:
            return 0.0
        groups = 2 if self.shared else 1
        rounds = groups * math.ceil(2 * seeds / self.at_once)
        measured = 2 * seeds if self.kind == POPULATIONS else rounds
        return rounds * (trial_s + START_S) + measured * MEASURING_S


@dataclass(frozen=True)
class Cost:
    """Estimated trials and seconds; None if the budget of a trial is not in minutes."""

    trials: int | None
    at_once: int
    each_s: float | None
    """Seconds of a trial."""
    search_s: float | None
    confirm_s: float | None
    """Seconds of the confirmation; None if those of a trial are unknown."""
    why: str = ""

    def plain(self) -> dict[str, Any]:
        parts = (self.search_s, self.confirm_s)
        known = [seconds for seconds in parts if seconds is not None]
        return {**asdict(self), "seconds": sum(known) if len(known) == len(parts) else None}


def cost_of(search: SearchConfig, config: TrainConfig, place: TrialPlacement) -> Cost:
    """Estimate trials and seconds of search and confirmation."""
    kind, amount = budget_of(config)
    trials = search.trials or None
    if kind != "minutes":
        why = f"a trial's budget is {amount:g} {kind}: how long that takes is known after the first"
        limit = search.minutes * 60 if search.minutes else None
        return Cost(trials, place.at_once, None, limit, 0.0 if limit else None, why)
    place = replace(place, at_once=max(place.at_once, 1))
    evaluated = place.at_once if place.kind == POPULATIONS else 1
    trained = amount * 60 + EVALUATION_S * evaluated
    each = trained + START_S
    confirm = place.confirm_s(search.confirm, trained)
    rounds = math.ceil(trials / place.at_once) if trials else math.inf
    if search.minutes:
        rounds = min(rounds, max(int((search.minutes * 60 - confirm) // each), 0))
        trials = int(min(trials or math.inf, rounds * place.at_once))
    return Cost(trials, place.at_once, each, rounds * each, confirm)


@dataclass(frozen=True)
class Sweep:
    """A validated sweep, ready to start or resume."""

    file: SweepFile
    config: TrainConfig
    """Settings of the file, without values of the ranges."""
    folder: SweepFolder
    place: TrialPlacement
    cost: Cost
    options: Mapping[str, Any]
    """Command line options to save."""
    there: Sequence[Trial] = ()
    """Finished trials of earlier sessions."""

    @property
    def trained(self) -> SweepFile:
        """The file with the number of threads of a trial."""
        threads = self.file.settings.get("threads") or self.place.threads
        return replace(self.file, settings={**self.file.settings, "threads": threads})


@dataclass
class SweepResult:
    """Results of a sweep."""

    trials: list[Trial]
    best: Trial | None
    importance: dict[str, float] = field(default_factory=dict)
    confirmed: Confirmation | None = None
    preset: Path | None = None
    pictures: list[Path] = field(default_factory=list)


def prepare(options: SweepConfig) -> Sweep:
    """Validate a sweep; nothing is written yet."""
    given = Path(options.file)
    if given.is_dir():
        if options.out:
            raise ConfigError(f"--out {options.out}: {given} goes on where it is; leave it out")
        folder = SweepFolder(given)
        if not folder.is_sweep:
            raise ConfigError(f"{given} is no sweep: {FILE} is missing; give a TOML file")
        path = given / FILE
    else:
        path = given
        out = options.out or SWEEPS / given.stem
        folder = SweepFolder(check_folder(out, "--out" if options.out else ""))
    file = read_sweep(str(path))
    options = with_saved_options(options, folder)
    before = read_sweep(str(folder.path / FILE)) if folder.is_sweep else None
    file = with_options(file, options)
    if before is not None:
        check_unchanged(before, file, folder)
    elif folder.path.exists() and (not folder.path.is_dir() or any(folder.path.iterdir())):
        raise ConfigError(f"{folder.path} is there already and no sweep; choose another --out")
    config = check_points(file)
    check_objective(file.search.raised, config, rules_of(config), file.where)
    place = choose_placement(file, config, options)
    cost = cost_of(file.search, config, place)
    check_time(file, cost)
    records = folder.trials
    check_tried(list(records.trials.values()), file, folder)
    kept = {name: getattr(options, name) for name in SAVED_OPTIONS}
    return Sweep(file, config, folder, place, cost, kept, records.ended)


def with_saved_options(options: SweepConfig, folder: SweepFolder) -> SweepConfig:
    """Return options with the saved values of those that are not set now."""
    usual = SweepConfig("")
    before = folder.options if folder.is_sweep else {}
    trusted.allow_remembered(folder.path / FILE, before)
    silent = [name for name in SAVED_OPTIONS if getattr(options, name) == getattr(usual, name)]
    return replace(options, **{name: before[name] for name in silent if name in before})


def check_unchanged(before: SweepFile, now: SweepFile, folder: SweepFolder) -> None:
    """Raise if the file of a resumed sweep has changed."""
    saved = {key: value for key, value in folder.options.items() if key in SAVED_OPTIONS}
    found = differences(with_options(before, replace(SweepConfig(""), **saved)), now)
    if found:
        raise ConfigError(
            f"{folder.path} was begun otherwise: {'; '.join(found)}; put it back, or begin another "
            "sweep with --out"
        )


def check_tried(trials: Sequence[Trial], file: SweepFile, folder: SweepFolder) -> None:
    """Raise if a saved trial has a value outside the ranges."""
    for trial in trials:
        for name, value in trial.settings.items():
            if name not in file.ranges or value not in file.ranges[name]:
                raise ConfigError(
                    f"{folder.path / TRIALS}: trial {trial.number} has {name} {shortened(value)}, "
                    "which no range of the sweep has; remove its line"
                )


def check_time(file: SweepFile, cost: Cost) -> None:
    """Raise if not even one trial fits into the time."""
    if file.search.minutes and cost.trials == 0 and cost.each_s:
        needed = (cost.each_s + (cost.confirm_s or 0)) / 60
        raise ConfigError(
            f"{file.where}: {file.search.minutes:g} minutes are too short for one round of trials "
            f"and their confirmation, which take about {needed:.1f}; give more, or trials of fewer "
            "minutes, or confirm = 0"
        )


def choose_placement(file: SweepFile, config: TrainConfig, options: SweepConfig) -> TrialPlacement:
    """Choose where trials run, and how many at once."""
    wanted, most = file.search.at_once, file.search.trials or 1024
    threads = config.threads or (1 if cores() < 4 else 2)
    if options.cluster:
        here = max(1, cores() // threads) if options.cluster == "local" else 0
        return TrialPlacement("cluster", wanted or here, threads, cluster=options.cluster)
    if uses_gpu(config.device):
        shared = tuple(ranges_shared(file) if populated(config) else file.ranges)
        if set(shared) == set(file.ranges):  # a population would be one setting with several seeds
            return TrialPlacement("processes", wanted or 1, config.threads or cores())
        members = wanted or min(MEMBERS, most)
        return TrialPlacement(POPULATIONS, members, config.threads or cores(), shared)
    return TrialPlacement("processes", wanted or max(1, min(cores() // threads, most)), threads)


def run_sweep(
    sweep: Sweep, *, on_trial: OnTrial = lambda _: None, confirmed: OnTrial = lambda _: None
) -> SweepResult:
    """Search, confirm, and write everything down. The callbacks see trials end."""
    folder = sweep.folder
    if not folder.is_sweep:
        SweepFolder.make(folder.path, Path(sweep.file.where).read_bytes(), sweep.options)
    trusted.remember(folder.path / FILE, trusted.strings_in([sweep.file.table, sweep.options]))
    with folder.locked():
        folder.save_options(sweep.options)
        executor = sweep.place.executor(sweep.file.search.raised)
        try:
            return run_search(sweep, executor, on_trial, confirmed)
        finally:
            executor.close()


def run_search(
    sweep: Sweep, executor: Executor, on_trial: OnTrial, confirmed: OnTrial
) -> SweepResult:
    """Search and confirm with an executor, and write the results."""
    file, folder, count = sweep.trained, sweep.folder, sweep.file.search.confirm
    place = replace(sweep.place, at_once=executor.at_once)
    search = TrialSearch(
        file,
        folder,
        executor,
        sweep.config,
        reserve=lambda each: place.confirm_s(count, each),
        wanted=sweep.cost.trials or 0,
        on_trial=on_trial,
    )
    trials = search.run()
    found = SweepResult(trials, best_of(trials), importance(trials, file.ranges))
    if found.best is not None:
        found.preset = write_preset(sweep, found.best, None)
        if count:
            found.confirmed = confirm(file, folder, executor, found.best, confirmed)
            found.preset = write_preset(sweep, found.best, found.confirmed)
        folder.save_seconds(search.spent_s)
    write_results(sweep, found)
    return found


def write_preset(sweep: Sweep, best: Trial, confirmed: Confirmation | None) -> Path:
    """Write the best setting to a file for `sparring train --config`."""
    path = sweep.folder.path / PRESET
    values = ", ".join(f"{name} = {show_setting(value)}" for name, value in best.settings.items())
    said = [f"The best of {sweep.folder.path}, trial {best.number}: {values}"]
    said.append(confirmed.verdict if confirmed else "Not confirmed with fresh seeds.")
    write_settings(path, preset_of(sweep.file, best.settings), said)
    return path


def write_results(sweep: Sweep, found: SweepResult) -> None:
    data = json.dumps(describe(sweep, found), indent=2, allow_nan=False) + "\n"
    write_atomic(sweep.folder.path / RESULTS, data.encode())


def describe(sweep: Sweep, found: SweepResult) -> dict[str, Any]:
    """Return all results as JSON values."""
    found_so = {
        "folder": str(sweep.folder.path),
        "game": sweep.config.game,
        "raise": sweep.file.search.raised,
        "sampler": sweep.file.search.sampler,
        "place": asdict(sweep.place),
        "cost": sweep.cost.plain(),
        "seconds": sweep.folder.spent_s,
        "ranges": {name: str(range_) for name, range_ in sweep.file.ranges.items()},
        "trials": [asdict(trial) for trial in found.trials],
        "best": asdict(found.best) if found.best else None,
        "importance": found.importance,
        "confirmed": found.confirmed.plain() if found.confirmed else None,
        "preset": str(found.preset) if found.preset else None,
        "pictures": [str(path) for path in found.pictures],
    }
    return dict(finite(found_so))
