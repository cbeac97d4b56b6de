"""Named configurations: what is trained, each run in a process of its own, and what came out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from sparring.machine import cores
from sparring.messages import Message
from sparring.processes import Child
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
from sparring.training.records.run import LOCK, finite, is_held
from sparring.training.records.strength import MIN_MILLIONS, gained_per
from sparring.training.train import check_given, complete

STATE = "trained.json"
PATIENCE_S = 60.0
"""How long a run that was asked to stop may take to save itself."""
REACHED = "target reached"
STOPPING = b"\nstopping: the run under way saves itself; once more ends at once\n"
NAMES = r"[A-Za-z0-9_][\w.+-]{0,59}"
OF_THE_BENCH = ("name", "runs", "population", "vary", "json", "dry_run")
"""Settings that the bench says itself."""
MAX_SEEDS = 64


class HaltedError(SparringError):
    """A run was stopped from beside; it is saved."""


@dataclass
class BenchProgress:
    """What a bench has behind it: a file in its folder, written after every run."""

    folder: Path
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: the settings, and what is known once it has ended."""

    @classmethod
    def read(cls, folder: Path) -> BenchProgress:
        path = folder / STATE
        if not path.exists():
            return cls(folder)
        try:
            return cls(folder, dict(json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError, TypeError) as wrong:
            raise ConfigError(f"{path} cannot be read: {wrong}; choose another --out") from None

    def check_same(self, run: Planned) -> None:
        """Refuse to take a run for finished that was trained otherwise."""
        path = self.folder / run.name
        if run.name not in self.runs:
            if path.exists():
                raise ConfigError(
                    f"{path} is there, and no run of this bench; choose another --out"
                )
            return
        then, now = flat(self.runs[run.name]["settings"]), flat(plain_settings(run))
        changed = [key for key in {**then, **now} if then.get(key) != now.get(key)]
        if changed:
            told = ", ".join(f"{k} was {then.get(k)}, is {now.get(k)}" for k in changed[:4])
            raise ConfigError(
                f"{path} was trained with other settings: {told}; choose another --out, or put "
                "them back"
            )

    def ended(self, run: Planned) -> bool:
        """Whether a run needs no more training: it is measured, or has failed, and lies there."""
        known = self.runs.get(run.name, {})
        return ("failed" in known or "facts" in known) and (self.folder / run.name).is_dir()

    def note(self, run: Planned, **known: Any) -> None:
        self.runs[run.name] = {"settings": plain_settings(run), **known}
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(finite(self.runs), indent=1, allow_nan=False) + "\n"
        write_atomic(self.folder / STATE, text.encode())


def plain_settings(run: Planned) -> dict[str, Any]:
    """Return the settings as JSON has them, without where they are kept."""
    table = written(run.config)
    kept = {key: value for key, value in table.items() if key != "runs"}
    plain: dict[str, Any] = json.loads(json.dumps(finite(kept)))
    return plain


def train_run(run: Planned, progress: BenchProgress, told: Callable[[float, float], None]) -> None:
    """Train one run in a process of its own and note what came out.

    told: called with the share that is done and the decisions per second. Raises HaltedError if
    the run was stopped; what else goes wrong with it is noted, and the next one may begin.
    """
    prepare_folder(run, progress)
    progress.note(run)
    last: Mapping[str, Any] = {}
    with process_of(run) as child:
        for said in child:
            if said.name == "progress":
                told(said.payload["share"], said.payload["decisions_per_s"])
            else:
                last = said.payload
        last = last or {"failed": child.exit_reason()}
    if "stopped" in last:
        raise HaltedError(f"{last['stopped']}: {run.name} is saved and will go on")
    if "failed" in last:
        progress.note(run, failed=last["failed"])
        return
    progress.note(run, facts={**last, **facts_of(Path(run.config.runs) / run.name)})


def prepare_folder(run: Planned, progress: BenchProgress) -> None:
    """Make room for a run that was begun and never saved; one with a checkpoint goes on."""
    folder = progress.folder / run.name
    if not folder.is_dir():
        return
    if is_held(folder / LOCK):
        raise ConfigError(f"{folder} is being trained by another process; wait for it or stop it")
    if checkpoints.newest_valid(folder / CHECKPOINTS) is None:
        remove_folder(folder)


@contextmanager
def process_of(run: Planned) -> Iterator[Child]:
    """Start the process of a run; whatever happens here, it has ended afterwards.

    If this one is interrupted, the run is asked to save itself before.
    """
    with Child("sparring.speed.run_process", threads=run.config.threads or cores()) as child:
        child.send(Message("train", written(run.config)))
        try:
            yield child
        except BaseException:
            os.write(2, STOPPING)
            child.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(PATIENCE_S)
            raise


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
class Planned:
    """One run that is to be trained."""

    config_name: str
    config: TrainConfig

    @property
    def name(self) -> str:
        return self.config.name


@dataclass(frozen=True)
class Named:
    """A file of configurations, read and complete."""

    configs: dict[str, TrainConfig]
    seeds: int
    targets: tuple[float, ...]

    def runs(self, folder: Path) -> list[Planned]:
        """All runs, the first seed of each, then the second: a busy hour meets all alike."""
        return [
            Planned(
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


def read_named(file: str, *, minutes: float = 0.0, seeds: int = 0) -> Named:
    """Read the file; everything that would be refused later is refused now.

    minutes, seeds: go before what the file says.
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
    for name, own in inner.items():
        where = f"{file}: configs.{name}"
        with said_by(where):
            configs[name] = complete_one(name, table, own, list(targets), minutes)
    reached = dict.fromkeys(float(t) for one in configs.values() for t in one.eval.target)
    return Named(configs, seeds, tuple(sorted(reached)))


def complete_one(
    name: str,
    common: Mapping[str, Any],
    own: Mapping[str, Any],
    targets: Sequence[float],
    minutes: float,
) -> TrainConfig:
    """Return the settings of one configuration, checked."""
    if not re.fullmatch(NAMES, name) or name == LATEST:
        raise ConfigError("the name must be up to 60 letters, digits and _ - + .")
    algo = str(own.get("algo", common.get("algo", "ppo")))
    unrelated = set(OF_ALGORITHMS) - set(sections_of(algo, mode_of({**common, **own})))
    shared = {key: value for key, value in common.items() if key not in unrelated}
    table = joined(shared, own)
    for key in (*OF_THE_BENCH, "seeds"):
        if key in table:
            raise ConfigError(
                f"{key} has no place here: every configuration is trained alone, "
                "once for each of the file's seeds, in the folder of the bench"
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
        raise ConfigError("eval.off: what is not measured cannot be compared; leave it out")
    budget_of(config)
    check_processes(config)
    resolve([config], played=False)
    return config


def cost(runs: Sequence[Planned]) -> str:
    """Say how long training will take, as far as that is known."""
    if not runs:
        return "nothing is left to train"
    budgets = [budget_of(run.config) for run in runs]
    timed = [amount for kind, amount in budgets if kind == "minutes"]
    told = [f"{sum(timed):.3g} minutes of training"] if timed else []
    counted = len(budgets) - len(timed)
    if counted:
        told.append(f"{counted} by a count, whose time nobody knows yet")
    return f"{len(runs)} runs to train: {' and '.join(told)}, and after each its last games"
