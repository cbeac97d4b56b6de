"""Summaries of all runs, cached until their files change."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sparring.errors import SparringError
from sparring.games.flags import initial_flags, read_rules
from sparring.games.rules import Rules, game_names
from sparring.league.results import ALONE
from sparring.store.files import TEMP
from sparring.store.folders import CONFIG, sorted_runs
from sparring.training.records import labels, metrics
from sparring.training.records.overview import CURVES_S, DECISIONS, Overview, is_run
from sparring.training.records.overview import told as told_in_line
from sparring.training.records.run import EVENTS, LOCK, RESULTS, is_locked
from sparring.training.records.strength import measure_name
from sparring.web.runs_folder import RunsFolder

SIGNATURE_FILES = (CONFIG, metrics.FILE, f"{metrics.FILE}-wal", EVENTS, RESULTS, labels.FILE)
"""Files whose change makes a summary out of date."""
SIZE_CACHE_S = 30.0
"""Time for which a run's size on disk is cached."""
ERROR_CACHE_S = 30.0
"""Time for which a damaged run is cached: its curves may only have been locked."""
MAX_EVALUATIONS = 60
"""Points of the sparkline in a list."""
Signature = tuple[Any, ...]


class RunSummary(Overview):
    """Summary of a run; reads only the last value of its decisions."""

    def read_curves(self) -> dict[str, metrics.Curve]:
        """Read evaluations and the last number of decisions."""
        found = metrics.read(self.path, "eval/*", timeout_s=CURVES_S)
        return {**metrics.read_last(self.path, DECISIONS, timeout_s=CURVES_S), **found}

    def known(self) -> dict[str, Any]:
        """Return everything but the size, which needs a walk through the folder."""
        strength, found = self.strength, list(self.evaluated.items())
        picked = np.unique(np.linspace(0, len(found) - 1, MAX_EVALUATIONS).astype(int))
        shown = [found[at] for at in picked.tolist() if 0 <= at < len(found)]
        return {
            "name": self.name,
            "game": self.game,
            "title": game_title(self.game),
            "algo": self.algo,
            "state": self.state,
            "trouble": self.trouble,
            "minutes": self.minutes,
            "updates": self.updates,
            "decisions": self.decisions,
            "strength": strength and strength.value,
            "low": strength and strength.low,
            "high": strength and strength.high,
            "measure": "score" if self.against == ALONE else "win share",
            "against": measure_name(self.against),
            "not_measured": self.not_measured,
            "opponents": list(self.opponents),
            "parity": self.parity,
            "progress": self.progress,
            "date": self.date.isoformat(timespec="seconds"),
            "note": self.labels.note,
            "tags": list(self.labels.tags),
            "evaluations": {
                "update": [at for at, _ in shown],
                "strength": [one.value for _, one in shown],
            },
        }

    def unknown(self) -> dict[str, Any]:
        """Return the summary of a run that cannot be read."""
        missing = dict.fromkeys(("low", "high", "parity", "progress"))
        curve: dict[str, Any] = {"opponents": [], "evaluations": {"update": [], "strength": []}}
        shown = {key: value for key, value in super().unknown().items() if key != "run"}
        told = {"title": "?", "measure": "win share", "against": ""}
        return {**shown, **told, **missing, **curve}

    @property
    def progress(self) -> float | None:
        """Share of the budget that is used, 0 to 1; None without a budget."""
        done = {
            "updates": float(self.updates),
            "decisions": float(self.decisions),
            "minutes": self.minutes,
        }
        for budget, reached in done.items():
            if planned := self.planned(budget):
                return min(reached / planned, 1.0)
        return None

    @property
    def parity(self) -> float | None:
        """Win share among equal players."""
        if self.game not in game_names():
            return None
        with suppress(SparringError):
            seats = read_rules(self.game, initial_flags(self.config.get("set", ()))).seats
            return 1 / seats if seats > 1 else None
        return None


def game_title(game: str) -> str:
    return Rules(game).title if game in game_names() else game


def signature(run: Path) -> Signature:
    """Return a value that changes whenever the files of a run change."""
    found: list[Any] = [is_locked(run / LOCK)]
    for name in SIGNATURE_FILES:
        try:
            facts = (run / name).stat()
            found.append((facts.st_mtime_ns, facts.st_size))
        except OSError:
            found.append(None)
    return tuple(found)


class RunSummaries:
    """Cache of summaries; thread-safe."""

    def __init__(self, folder: RunsFolder) -> None:
        self.folder = folder
        self._known: dict[Path, tuple[Signature, float, dict[str, Any]]] = {}
        self._sizes: dict[Path, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def all(self) -> list[dict[str, Any]]:
        """Return all runs, newest first."""
        found = [path for path in sorted_runs(self.folder.root) if self.shows(path)]
        with self._lock:
            for gone in self._known.keys() - set(found):
                del self._known[gone]
        return [self.one(path) for path in reversed(found)]

    def shows(self, path: Path) -> bool:
        """Whether a folder is a visible run."""
        hidden = path.name.startswith((TEMP, "."))
        return not hidden and self.folder.contains(path) and is_run(path)

    def one(self, run: Path) -> dict[str, Any]:
        """Return the summary of one run, read again if its files changed."""
        now = signature(run)
        with self._lock:
            before = self._known.get(run)
        if before and before[0] == now and time.monotonic() < before[1]:
            return before[2]
        summary = self.read(run)
        due = time.monotonic() + ERROR_CACHE_S if summary["trouble"] else math.inf
        with self._lock:
            self._known[run] = (now, due, summary)
        return summary

    def read(self, run: Path) -> dict[str, Any]:
        """Read a run, unless it contains a link out of the folder."""
        summary = RunSummary(run)
        try:
            self.folder.check_links(run)
        except (OSError, SparringError) as wrong:
            return {**summary.unknown(), "state": "damaged", "trouble": told_in_line(wrong)}
        return {**summary.plain(), "size": self.size(summary)}

    def size(self, summary: RunSummary) -> int:
        """Return the bytes of a run, cached for a while."""
        when, size = self._sizes.get(summary.path, (-SIZE_CACHE_S, 0))
        if time.monotonic() - when < SIZE_CACHE_S:
            return size
        size = summary.size
        self._sizes[summary.path] = (time.monotonic(), size)
        return size
