"""Runs of a bench, each trained in a process of its own, and what is known about them then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparring.config.options import flat
from sparring.errors import ConfigError, SparringError
from sparring.league.results import ALONE
from sparring.machine import cores
from sparring.messages import Message
from sparring.processes import Child
from sparring.speed.named import Planned
from sparring.store import checkpoint as checkpoints
from sparring.store.files import remove_folder, write_atomic
from sparring.store.folders import CHECKPOINTS
from sparring.training.planning.settings import written
from sparring.training.records import metrics
from sparring.training.records.comparison import Entry
from sparring.training.records.overview import Overview, events_of
from sparring.training.records.run import LOCK, finite, is_held
from sparring.training.records.strength import LEAST_MILLIONS, gained_per

STATE = "trained.json"
PATIENCE_S = 60.0
"""How long a run that was asked to stop may take to save itself."""
REACHED = "target reached"
STOPPING = b"\nstopping: the run under way saves itself; once more ends at once\n"


class HaltedError(SparringError):
    """A run was stopped from beside; it is saved."""


@dataclass
class Progress:
    """What a bench has behind it: a file in its folder, written after every run."""

    folder: Path
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: the settings, and what is known once it has ended."""

    @classmethod
    def read(cls, folder: Path) -> Progress:
        path = folder / STATE
        if not path.exists():
            return cls(folder)
        try:
            return cls(folder, dict(json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError, TypeError) as wrong:
            raise ConfigError(f"{path} cannot be read: {wrong}; choose another --out") from None

    def demand_same(self, run: Planned) -> None:
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


def train_run(run: Planned, progress: Progress, told: Callable[[float, float], None]) -> None:
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
                told(said.facts["share"], said.facts["decisions_per_s"])
            else:
                last = said.facts
        last = last or {"failed": child.last_words()}
    if "stopped" in last:
        raise HaltedError(f"{last['stopped']}: {run.name} is saved and will go on")
    if "failed" in last:
        progress.note(run, failed=last["failed"])
        return
    progress.note(run, facts={**last, **facts_of(Path(run.config.runs) / run.name)})


def prepare_folder(run: Planned, progress: Progress) -> None:
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
    with Child("sparring.speed.one_run", threads=run.config.threads or cores()) as child:
        child.tell(Message("train", written(run.config)))
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
    entry = Entry(run, {}, (run.against,), run.against == ALONE)
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


def score_per_million(entry: Entry) -> float | None:
    """Score gained between the first evaluation and the last, per million decisions."""
    decisions, score = entry.evaluations("score", "decisions")
    return None if entry.run.zero_sum else gained_per(decisions / 1e6, score, LEAST_MILLIONS)


def strength_of(run: Overview) -> dict[str, float | None]:
    """Return the strength after training, and the 95 % interval that its last games give."""
    found = run.strength
    ends = ("value", "strength"), ("low", "strength_low"), ("high", "strength_high")
    return {key: getattr(found, end, None) for end, key in ends}
