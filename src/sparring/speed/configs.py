"""Training of named configurations, each run in a child process, and its results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparring import trusted
from sparring.config import TrainConfig
from sparring.config.options import flat, joined
from sparring.config.ranges import is_number
from sparring.errors import ConfigError, SparringError
from sparring.league.results import ALONE
from sparring.store import checkpoint as checkpoints
from sparring.store.files import remove_folder, write_atomic
from sparring.store.folders import CHECKPOINTS, LATEST
from sparring.training.budget import COUNTED
from sparring.training.planning.algorithms import OF_ALGORITHMS, mode_of, sections_of
from sparring.training.planning.checks import check_processes
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import budget_of, read_toml, said_by, written
from sparring.training.records import metrics
from sparring.training.records.comparison import ComparedRun
from sparring.training.records.overview import Overview, events_of
from sparring.training.records.run import LOCK, finite, is_locked
from sparring.training.records.strength import MIN_MILLIONS, gained_per
from sparring.training.train import check_given, complete

STATE = "trained.json"
REACHED = "target reached"
NAMES = r"[A-Za-z0-9_][\w.+-]{0,59}"
BENCH_SETTINGS = ("name", "runs", "population", "vary", "json", "dry_run")
"""Settings that the bench chooses itself."""
MAX_SEEDS = 64


class HaltedError(SparringError):
    """A run was stopped by another process; it is saved."""


@dataclass
class BenchProgress:
    """Finished runs of a bench: a file in its folder, written after every run."""

    folder: Path
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: the settings, and the results once it has ended."""

    @classmethod
    def read(cls, folder: Path) -> BenchProgress:
        path = folder / STATE
        if not path.exists():
            return cls(folder)
        try:
            return cls(folder, dict(json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(f"{path} cannot be read: {error}; choose another --out") from None

    def check_same(self, run: PlannedRun) -> None:
        """Refuse an existing run that was trained with other settings."""
        path = self.folder / run.name
        if run.name not in self.runs:
            if path.exists():
                raise ConfigError(f"{path} exists, but not from this bench; choose another --out")
            return
        then, now = flat(self.runs[run.name]["settings"]), flat(plain_settings(run))
        changed = [key for key in {**then, **now} if then.get(key) != now.get(key)]
        if changed:
            text = ", ".join(f"{k} was {then.get(k)}, is {now.get(k)}" for k in changed[:4])
            raise ConfigError(
                f"{path} was trained with other settings: {text}; choose another --out, or "
                "restore them"
            )

    def has_ended(self, run: PlannedRun) -> bool:
        """Whether a run is measured or has failed, and its folder exists."""
        known = self.runs.get(run.name, {})
        return ("failed" in known or "facts" in known) and (self.folder / run.name).is_dir()

    def save(self, run: PlannedRun, **results: Any) -> None:
        self.runs[run.name] = {"settings": plain_settings(run), **results}
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(finite(self.runs), indent=1, allow_nan=False) + "\n"
        write_atomic(self.folder / STATE, text.encode())


def plain_settings(run: PlannedRun) -> dict[str, Any]:
    """Return the settings as JSON, without the folder of the run."""
    settings = {key: value for key, value in written(run.config).items() if key != "runs"}
    plain: dict[str, Any] = json.loads(json.dumps(finite(settings)))
    return plain


def prepare_folder(run: PlannedRun, progress: BenchProgress) -> None:
    """Remove the folder of a run that never saved a checkpoint; a run with one is resumed."""
    folder = progress.folder / run.name
    if not folder.is_dir():
        return
    if is_locked(folder / LOCK):
        raise ConfigError(f"{folder} is being trained by another process; wait for it or stop it")
    if checkpoints.newest_valid(folder / CHECKPOINTS) is None:
        remove_folder(folder)


def facts_of(folder: Path) -> dict[str, Any]:
    run = Overview(folder)
    entry = ComparedRun(run, {}, (run.against,), run.against == ALONE)
    curves = metrics.read(folder, "charts/*")
    seconds = float(curves["charts/decisions"][1][-1])
    speed = run.decisions / max(seconds, 1e-9)
    return {
        "minutes": run.minutes,
        "decisions": run.decisions,
        "decisions_per_s": speed,
        "samples_per_s": speed
        * typical(curves, "samples_per_s")
        / max(typical(curves, "SPS"), 1e-9),
        "cpu_cores": typical(curves, "cpu_share"),
        "gpu_busy": typical(curves, "gpu_busy"),
        "score_per_hour": entry.score_per_hour,
        "score_per_million": score_per_million(entry),
        **strength_of(run),
        "targets": {
            str(float(event["target"])): float(event["seconds"])
            for event in events_of(folder)
            if event.get("event") == REACHED
        },
    }


def typical(curves: Mapping[str, metrics.Curve], name: str) -> float:
    """Return the median of a chart over the updates, 0 where there is none."""
    values = curves[f"charts/{name}"][2] if f"charts/{name}" in curves else np.empty(0)
    there = values[np.isfinite(values)]
    return float(np.median(there)) if len(there) else 0.0


def score_per_million(entry: ComparedRun) -> float | None:
    """Score gained between the first evaluation and the last, per million decisions."""
    decisions, score = entry.evaluations("score", "decisions")
    return None if entry.run.zero_sum else gained_per(decisions / 1e6, score, MIN_MILLIONS)


def strength_of(run: Overview) -> dict[str, float | None]:
    """Return the strength after training, and the 95 % interval that its last games give."""
    found = run.strength
    ends = ("value", "strength"), ("low", "strength_low"), ("high", "strength_high")
    return {key: getattr(found, end, None) for end, key in ends}


@dataclass(frozen=True)
class PlannedRun:
    """One run of the bench."""

    config_name: str
    config: TrainConfig

    @property
    def name(self) -> str:
        return self.config.name


@dataclass(frozen=True)
class NamedConfigs:
    """A file of configurations, with presets applied."""

    configs: dict[str, TrainConfig]
    seeds: int
    targets: tuple[float, ...]

    def runs(self, folder: Path) -> list[PlannedRun]:
        """Return all runs, seed by seed, so that load on the machine affects all alike."""
        return [
            PlannedRun(
                name,
                replace(
                    config,
                    seed=config.seed + number,
                    name=f"{name}-s{config.seed + number}",
                    runs=str(folder),
                ),
            )
            for number in range(self.seeds)
            for name, config in self.configs.items()
        ]


def read_named(file: str, *, minutes: float = 0.0, seeds: int = 0) -> NamedConfigs:
    """Read the file, and refuse every mistake before anything is trained.

    minutes, seeds: override the file.
    """
    table = read_toml(file)
    trusted.allow_remembered(Path(file), table)
    inner, targets = table.pop("configs", None), table.pop("targets", ())
    if not isinstance(inner, dict) or not all(isinstance(one, dict) for one in inner.values()):
        raise ConfigError(f"{file} has no [configs.NAME] tables; give one for each configuration")
    if not inner:
        raise ConfigError(f"{file}: configs is empty; give a [configs.NAME] table for each")
    seeds = seeds or table.pop("seeds", 1)
    table.pop("seeds", None)
    if not isinstance(seeds, int) or not 1 <= seeds <= MAX_SEEDS:
        raise ConfigError(f"{file}: seeds {seeds!r} must be a whole number from 1 to {MAX_SEEDS}")
    if not isinstance(targets, list | tuple) or not all(map(is_number, targets)):
        raise ConfigError(f"{file}: targets {targets!r} must be a list of numbers")
    configs = {}
    for name, settings in inner.items():
        where = f"{file}: configs.{name}"
        with said_by(where):
            configs[name] = complete_one(name, table, settings, list(targets), minutes)
    all_targets = {float(target) for one in configs.values() for target in one.eval.target}
    return NamedConfigs(configs, seeds, tuple(sorted(all_targets)))


def complete_one(
    name: str,
    common: Mapping[str, Any],
    settings: Mapping[str, Any],
    targets: Sequence[float],
    minutes: float,
) -> TrainConfig:
    """Return the settings of one configuration, checked."""
    if not re.fullmatch(NAMES, name) or name == LATEST:
        raise ConfigError("the name must be up to 60 letters, digits and _ - + .")
    algo = str(settings.get("algo", common.get("algo", "ppo")))
    unrelated = set(OF_ALGORITHMS) - set(sections_of(algo, mode_of({**common, **settings})))
    shared = {key: value for key, value in common.items() if key not in unrelated}
    table = joined(shared, settings)
    for key in (*BENCH_SETTINGS, "seeds"):
        if key in table:
            raise ConfigError(
                f"{key} cannot be set here: the bench trains every configuration once per seed, "
                "in its folder; leave it out"
            )
    if targets:
        table["eval"] = {"target": list(targets), **table.get("eval", {})}
    if minutes:
        table = {key: value for key, value in table.items() if key not in COUNTED}
        table["minutes"] = minutes
    game, file = str(table.pop("game", "")), str(table.pop("config", ""))
    config = complete(game, file, table)
    check_given(config, table)
    if config.eval.off:
        raise ConfigError("eval.off: without evaluations nothing can be compared; leave it out")
    budget_of(config)
    check_processes(config)
    resolve([config], played=False)
    return config


def cost(runs: Sequence[PlannedRun], together: int = 1) -> str:
    """Return how long training will take, as far as it is known."""
    if not runs:
        return "nothing is left to train"
    budgets = [budget_of(run.config) for run in runs]
    timed = [amount for kind, amount in budgets if kind == "minutes"]
    parts = [f"{sum(timed):.3g} minutes of training"] if timed else []
    counted = len(budgets) - len(timed)
    if counted:
        parts.append(f"{counted} with a budget in decisions, updates or episodes")
    at_once = f", {together} at a time" if together > 1 else ""
    return f"{len(runs)} runs to train{at_once}: {' and '.join(parts)}, and the final games of each"
