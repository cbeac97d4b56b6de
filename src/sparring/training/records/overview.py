"""A run as others see it: what it is, how it stands, how strong it got. Needs no torch."""

from __future__ import annotations

import fcntl
import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sparring.errors import ConfigError, SparringError
from sparring.league.results import ALONE
from sparring.pools.foreign.rules import ForeignRules
from sparring.store.files import NO_LOCKS, TEMP
from sparring.store.folders import CHECKPOINTS, CONFIG, sorted_runs
from sparring.training.records import metrics
from sparring.training.records.run import EVENTS, LOCK, NETWORK, RESULTS
from sparring.training.status import PREVIOUS_BEST

STATES = ("running", "done", "stopped", "failed", "damaged")
STOPPED, FAILURES = "stopped", ("diverged", "failed")
"""Events, and ways to end, that are not as planned; so are the names of signals."""
STRENGTH, DECISIONS = "eval/strength", "charts/decisions"
NEARLY = 0.98
"""Share of the planned minutes after which an old run without results counts as done."""


@dataclass(frozen=True)
class Overview:
    """What can be told about a run from its folder."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's name, as commands take it."""
        return self.path.absolute().name

    @cached_property
    def config(self) -> dict[str, Any]:
        """Its settings, nothing if they cannot be read."""
        try:
            return tomllib.loads((self.path / CONFIG).read_text())
        except (OSError, ValueError):
            return {}

    @cached_property
    def curves(self) -> dict[str, metrics.Curve]:
        """Its decisions and evaluations over time, nothing if they cannot be read."""
        try:
            return metrics.read(self.path, DECISIONS, "eval/*")
        except SparringError:
            return {}

    @cached_property
    def results(self) -> dict[str, Any]:
        """What was measured at its end, nothing before that."""
        found = read_json(self.path / RESULTS)
        return found if isinstance(found, dict) else {}

    @cached_property
    def state(self) -> str:
        """One of STATES."""
        if is_held(self.path / LOCK):
            return "running"
        if not self.config:
            return "damaged"
        last = (events_of(self.path) or [{}])[-1]
        ended = str(last["why"] if last.get("event") == "ended" else self.results.get("ended", ""))
        if last.get("event") in FAILURES or ended in FAILURES:
            return "failed"
        if ended or last.get("event") == STOPPED:
            ended = ended or STOPPED
            return "stopped" if ended == STOPPED or ended.startswith("SIG") else "done"
        return "done" if self.reached_its_end else "stopped"

    @property
    def reached_its_end(self) -> bool:
        """Whether it trained as long as it was to; for runs that do not say how they ended."""
        updates, minutes = self.config.get("updates", 0), self.config.get("minutes", 0.0)
        if updates:
            return self.updates >= int(updates)
        return bool(minutes) and self.minutes >= NEARLY * minutes

    @property
    def game(self) -> str:
        """What is learned."""
        return str(self.config.get("game", "?"))

    @property
    def algo(self) -> str:
        """What learns."""
        return str(self.config.get("algo", "ppo" if self.config else "?"))

    @property
    def updates(self) -> int:
        """How often it has learned."""
        return max((int(at.max()) for at, _, _ in self.curves.values()), default=0)

    @property
    def minutes(self) -> float:
        """How long it has trained."""
        return max((float(s.max()) / 60 for _, s, _ in self.curves.values()), default=0.0)

    @property
    def decisions(self) -> int:
        """How many of its own it has learned from."""
        return last_number(self.curves, DECISIONS)

    @property
    def opponents(self) -> tuple[str, ...]:
        """Whom its strength is measured against."""
        return opponents_of(self.curves)

    @property
    def strength(self) -> float | None:
        """Its mean win share, or score: as measured at the end, else the best evaluation."""
        final = final_strength(self.results, self.opponents)
        if final is not None or STRENGTH not in self.curves:
            return final
        values = self.curves[STRENGTH][2]
        there = values[np.isfinite(values)]
        return float(there.max()) if len(there) else None

    @cached_property
    def network(self) -> dict[str, Any]:
        """How large its network is, {} of a run that does not say."""
        found = read_json(self.path / NETWORK)
        return found if isinstance(found, dict) else {}

    @property
    def parameters(self) -> int | None:
        """Numbers that it learns."""
        found = self.network.get("parameters")
        return found if isinstance(found, int) else None

    @cached_property
    def size(self) -> int:
        """Bytes on the disk."""
        return size_of(self.path)

    @property
    def date(self) -> datetime:
        """When it began."""
        with suppress(OSError):
            return datetime.fromtimestamp((self.path / CONFIG).stat().st_mtime)
        return datetime.fromtimestamp(0)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "run": str(self.path),
            "name": self.name,
            "game": self.game,
            "algo": self.algo,
            "state": self.state,
            "minutes": self.minutes,
            "updates": self.updates,
            "decisions": self.decisions,
            "strength": self.strength,
            "parameters": self.parameters,
            "macs": self.network.get("macs"),
            "size": self.size,
            "date": self.date.isoformat(timespec="seconds"),
        }


def overviews(root: Path) -> list[Overview]:
    """Return the runs in a folder, the newest first; what is being removed is none."""
    found = [path for path in sorted_runs(root) if not path.name.startswith(TEMP)]
    return [Overview(path) for path in reversed(found) if is_run(path)]


def is_run(folder: Path) -> bool:
    """Whether a folder is a run and nothing that only looks a little like one."""
    if not ((folder / CONFIG).is_file() and (folder / CHECKPOINTS).is_dir()):
        return False
    written = any((folder / name).is_file() for name in (metrics.FILE, "machine.json"))
    return written or "game" in Overview(folder).config


def is_held(lock: Path) -> bool:
    """Whether a process trains the run; nothing is made or changed to find out."""
    try:
        handle = os.open(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as wrong:
        if wrong.errno not in NO_LOCKS:
            raise
    finally:
        os.close(handle)
    return False


def final_strength(results: Mapping[str, Any], opponents: tuple[str, ...]) -> float | None:
    """Return the strength that results.json tells, against the given opponents or all of them.

    Evaluations on the way may meet fewer opponents than the end does; with the same ones the
    numbers can be compared.
    """
    table: Mapping[str, Any] = results.get("results") or {}
    try:
        if ALONE in table:
            return float(table[ALONE]["score"])
        met = opponents if opponents and set(opponents) <= table.keys() else tuple(table)
        return sum(float(table[name]["win"]) for name in met) / len(met) if met else None
    except (KeyError, TypeError, ValueError):
        return None


def opponents_of(curves: Mapping[str, metrics.Curve]) -> tuple[str, ...]:
    """Return the opponents of a run's evaluations, without its own past."""
    words = (name.split("/") for name in curves)
    ends = ("win", "score")
    found = dict.fromkeys("/".join(w[1:-1]) for w in words if w[0] == "eval" and w[-1] in ends)
    return tuple(name for name in found if name and name != PREVIOUS_BEST)


def newest_meta(run: Path) -> dict[str, Any]:
    """Return what a run's newest checkpoint says besides tensors; {} without one."""
    # Named here, because the store's own name for it comes with torch.
    for manifest in sorted((run / CHECKPOINTS).glob("*/manifest.json"), reverse=True):
        found = read_json(manifest)
        if isinstance(found, dict):
            meta: dict[str, Any] = found.get("meta", {})
            return meta
    return {}


def own_rules(run: Path) -> ForeignRules:
    """Return what a run plays by on an environment of somebody's own, without making it."""
    described = newest_meta(run).get("foreign")
    if not described:
        raise ConfigError(f"{run} has no checkpoint that says what its environment is like")
    return ForeignRules(**described)


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return what came from beside while the run went on."""
    found = read_json(folder / EVENTS)
    return [event for event in found if isinstance(event, dict)] if isinstance(found, list) else []


def last_number(curves: Mapping[str, metrics.Curve], name: str) -> int:
    """Return a counter's last value."""
    values = curves[name][2] if name in curves else np.empty(0)
    there = values[np.isfinite(values)]
    return int(there[-1]) if len(there) else 0


def size_of(folder: Path) -> int:
    """Return the bytes of everything in a folder; links count as links."""
    total = 0
    for here, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # it may be gone by now
                total += Path(here, name).lstat().st_size
    return total


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, None without one that can be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
