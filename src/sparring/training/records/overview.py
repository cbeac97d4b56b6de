"""A run as others see it: what it is, how it stands, how strong it got. Needs no torch."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sparring.errors import ConfigError, SparringError
from sparring.games.flags import initial_flags, read_rules
from sparring.games.rules import Rules, game_names
from sparring.league.results import ALONE
from sparring.pools.custom.cache import RANDOM
from sparring.pools.custom.rules import CustomRules
from sparring.store.files import TEMP
from sparring.store.folders import (
    BEST,
    CHECKPOINTS,
    CONFIG,
    is_file,
    is_folder,
    mode_of,
    sorted_runs,
)
from sparring.store.text_files import read_json as parse_json
from sparring.store.text_files import read_toml
from sparring.training.budget import COUNTED
from sparring.training.records import exploited, labels, metrics
from sparring.training.records.exploited import Exploited
from sparring.training.records.run import EVENTS, LOCK, NETWORK, RESULTS, is_locked
from sparring.training.records.strength import (
    Strength,
    best_opponent,
    measure_name,
    opponents_of,
    strength_in,
    strengths_over,
)

T = TypeVar("T")
UNMEASURED = "unmeasured"
"""The state of a run that trained to its end and was not measured there as it should have been."""
STATES = ("running", "done", UNMEASURED, "stopped", "failed", "damaged")
STOPPED, FAILURES = "stopped", ("diverged", "failed")
"""Events, and ways to end, that are not as planned; so are the names of signals."""
DECISIONS = "charts/decisions"
CURVES_S = 2.0
"""Processor time that looking at a run's curves may take; a long run's take a tenth of it."""
MAX_FILES = 100_000
"""Of a folder whose size is asked for; a run has hundreds."""
LONGEST_TROUBLE = 200
MAX_PLANNED = 1e18
"""Updates, decisions or minutes that a run can be given."""
EPOCH = datetime.fromtimestamp(0).isoformat(timespec="seconds")
NEARLY = 0.98
"""Share of the planned minutes after which an old run without results counts as done."""


@dataclass(frozen=True)
class Overview:
    """What can be told about a run from its folder, whatever lies in there.

    A file that cannot be read counts as missing, and `trouble` says why.
    """

    path: Path
    noted: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """What is wrong with files that were read so far, by their names."""

    @property
    def name(self) -> str:
        return self.path.absolute().name

    def read(self, name: str, parse: Callable[[Path], Any], kind: type[T]) -> T:
        """Return what a file holds, something empty without one; damage is noted."""
        try:
            found = parse(self.path / name)
            if isinstance(found, kind):
                return found
            raise ValueError(f"it holds no {kind.__name__}")
        except FileNotFoundError:
            return kind()
        except Exception as error:  # of others' files; parsers were not written for all of them
            self.note(name, told(error))
            return kind()

    def note(self, name: str, why: str) -> None:
        """Note what is wrong with a file; the first finding counts."""
        self.noted.setdefault(name, why)

    @property
    def trouble(self) -> str:
        """Why the run is damaged, in one line; "" if it is not."""
        _ = self.config, self.events, self.results, self.curves
        _ = self.planned("updates"), self.planned("minutes"), self.labels
        _ = self.exploitations
        why = next((f"{name}: {text}" for name, text in self.noted.items()), "")
        return why or ("" if self.config else f"{CONFIG} is empty")

    @cached_property
    def config(self) -> dict[str, Any]:
        """Its settings, nothing if they cannot be read."""
        return self.read(CONFIG, read_toml, dict)

    @cached_property
    def curves(self) -> dict[str, metrics.Curve]:
        """Its decisions and evaluations over time, nothing if they cannot be read."""
        try:
            return self.read_curves()
        except metrics.MetricsError as error:
            self.note(metrics.FILE, told(error.__cause__ or error))  # without where the run lies
            return {}

    def read_curves(self) -> dict[str, metrics.Curve]:
        return metrics.read(self.path, DECISIONS, "eval/*", timeout_s=CURVES_S)

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """What came from beside while the run went on."""
        found = self.read(EVENTS, parse_json, list)
        return [event for event in found if isinstance(event, dict)]

    @cached_property
    def results(self) -> dict[str, Any]:
        """What was measured at its end, nothing before that."""
        found: dict[str, Any] = self.read(RESULTS, parse_json, dict)
        table = found.get("results") or {}
        if isinstance(table, dict) and all(isinstance(row, dict) for row in table.values()):
            return found
        self.note(RESULTS, "its results are no table")
        return {}

    @cached_property
    def state(self) -> str:
        if is_locked(self.path / LOCK):
            return "running"
        if self.trouble:
            return "damaged"
        last, ended = (self.events or [{}])[-1], self.ended
        if last.get("event") in FAILURES or ended in FAILURES:
            return "failed"
        if ended or last.get("event") == STOPPED:
            ended = ended or STOPPED
            early = ended == STOPPED or ended.startswith("SIG")
            return "stopped" if early else UNMEASURED if self.not_measured else "done"
        # It was killed: while it trained, or in the last evaluation, or it is of an old version.
        if not self.reached_its_end:
            return "stopped"
        return "done" if self.results.get("results") and not self.not_measured else UNMEASURED

    @property
    def ended(self) -> str:
        """Why it ended, as its last event says or its results; "" if they do not."""
        last = (self.events or [{}])[-1]
        why = last.get("why", "") if last.get("event") == "ended" else ""
        return str(why or self.results.get("ended", ""))

    @property
    def not_measured(self) -> str:
        """What kept the run from being measured at its end, "" if nothing did."""
        why = " ".join(str(self.results.get("not_measured") or "").split())
        return why if len(why) <= LONGEST_TROUBLE else f"{why[:LONGEST_TROUBLE]}..."

    def planned(self, budget: str) -> float:
        """Return how far the run was to go, 0.0 if it has no such end."""
        value = self.config.get(budget, 0)
        if isinstance(value, int | float) and abs(value) <= MAX_PLANNED:
            return float(value)
        self.note(CONFIG, f"{budget} is no number within {MAX_PLANNED:g}")
        return 0.0

    @property
    def reached_its_end(self) -> bool:
        """Whether it trained as long as it was to; for runs that do not say how they ended."""
        updates, minutes = self.planned("updates"), self.planned("minutes")
        if updates:
            return self.updates >= updates
        return bool(minutes) and self.minutes >= NEARLY * minutes

    @property
    def game(self) -> str:
        return str(self.config.get("game", "?"))

    @property
    def algo(self) -> str:
        return str(self.config.get("algo", "ppo" if self.config else "?"))

    @property
    def updates(self) -> int:
        return max((int(at.max()) for at, _, _ in self.curves.values()), default=0)

    @property
    def minutes(self) -> float:
        longest = max((float(s.max()) / 60 for _, s, _ in self.curves.values()), default=0.0)
        return longest if math.isfinite(longest) else 0.0

    @property
    def decisions(self) -> int:
        """How many of its own it has learned from."""
        return last_number(self.curves, DECISIONS)

    @property
    def opponents(self) -> tuple[str, ...]:
        return opponents_of(self.curves)

    @cached_property
    def against(self) -> str:
        """Whom the strength of this game is measured against; "" if that cannot be told yet."""
        if self.game in game_names():
            with suppress(SparringError):
                return best_opponent(
                    read_rules(self.game, initial_flags(self.config.get("set", ())))
                )
            return ""
        met = {*self.met, *self.opponents}  # of an environment of somebody's own
        return ALONE if ALONE in met else RANDOM if met else ""

    @property
    def zero_sum(self) -> bool:
        """Whether what one seat wins the other loses; then scores only say who was met."""
        return self.game in game_names() and Rules(self.game).zero_sum

    @property
    def met(self) -> Mapping[str, Any]:
        """What was measured at its end, by opponent."""
        return self.results.get("results") or {}

    @property
    def final(self) -> Strength | None:
        return strength_in(self.met, self.against)

    @cached_property
    def evaluated(self) -> dict[int, Strength]:
        """Its strength in evaluations on the way, by update."""
        return strengths_over(self.curves, self.against)

    @cached_property
    def strength(self) -> Strength | None:
        """How strong it is: as measured at the end, else in the newest evaluation."""
        return self.final or next(reversed(self.evaluated.values()), None)

    @cached_property
    def exploitations(self) -> list[Exploited]:
        """What `sparring exploit` measured of it."""
        return self.read(exploited.FILE, lambda file: exploited.read_exploited(file.parent), list)

    @cached_property
    def exploited(self) -> Exploited | None:
        """How much the checkpoint that its name means loses to the strongest response."""
        return self._strongest(seeing=False)

    @cached_property
    def seeing(self) -> Exploited | None:
        """The same of responses that see what is hidden: what seeing is worth."""
        return self._strongest(seeing=True)

    def _strongest(self, *, seeing: bool) -> Exploited | None:
        best = self.read(BEST, parse_json, dict)
        checkpoint = exploited.named_checkpoint(self.path, best)
        return exploited.strongest(self.exploitations, checkpoint, seeing=seeing)

    @cached_property
    def labels(self) -> labels.Labels:
        """The note and the tags that people gave it."""
        read = labels.read_labels
        return self.read(labels.FILE, lambda file: read(file.parent), labels.Labels)

    @cached_property
    def network(self) -> dict[str, Any]:
        """How large its network is, {} of a run that does not say."""
        return self.read(NETWORK, parse_json, dict)

    @property
    def parameters(self) -> int | None:
        """Numbers that it learns."""
        found = self.network.get("parameters")
        return found if isinstance(found, int) else None

    @property
    def path_taken(self) -> str:
        """How its network is computed, in a line; "" of a run that does not say."""
        found = self.network.get("path")
        return found if isinstance(found, str) else ""

    @cached_property
    def size(self) -> int:
        return size_of(self.path)

    @property
    def date(self) -> datetime:
        with suppress(OSError, ValueError, OverflowError):  # or in a year that there is not
            return datetime.fromtimestamp((self.path / CONFIG).stat().st_mtime)
        return datetime.fromtimestamp(0)

    def plain(self) -> dict[str, Any]:
        """As JSON has it. A run of which something cannot be told is damaged, whatever it is."""
        try:
            return self.known()
        except Exception as error:  # one odd folder must not hide all others
            return {**self.unknown(), "state": "damaged", "trouble": told(error)}

    def known(self) -> dict[str, Any]:
        return {
            "run": str(self.path),
            "name": self.name,
            "game": self.game,
            "algo": self.algo,
            "state": self.state,
            "trouble": self.trouble,
            "not_measured": self.not_measured,
            "minutes": self.minutes,
            "updates": self.updates,
            "decisions": self.decisions,
            "strength": self.strength and self.strength.value,
            "measure": measure_name(self.against),
            "exploited": self.exploited and asdict(self.exploited),
            "seeing": self.seeing and asdict(self.seeing),
            "parameters": self.parameters,
            "macs": self.network.get("macs"),
            "path": self.path_taken,
            "size": self.size,
            "date": self.date.isoformat(timespec="seconds"),
            "note": self.labels.note,
            "tags": list(self.labels.tags),
        }

    def unknown(self) -> dict[str, Any]:
        numbers = {"minutes": 0.0, "updates": 0, "decisions": 0, "strength": None, "measure": ""}
        rest = {"parameters": None, "macs": None, "path": "", "size": 0, "date": EPOCH}
        rest |= {"exploited": None, "seeing": None}
        named = {"run": str(self.path), "name": self.name, "game": "?", "algo": "?"}
        empty = {"note": "", "tags": [], "not_measured": ""}
        return {**named, **numbers, **rest, **empty}


def overviews(root: Path) -> list[Overview]:
    """Return the runs in a folder, the newest first; what is being removed is none."""
    found = [path for path in sorted_runs(root) if not path.name.startswith(TEMP)]
    return [Overview(path) for path in reversed(found) if is_run(path)]


def is_run(folder: Path) -> bool:
    """Whether a folder is a run and nothing that only looks a little like one."""
    if not (mode_of(folder / CONFIG) and is_folder(folder / CHECKPOINTS)):
        return False
    written = any(is_file(folder / name) for name in (metrics.FILE, "machine.json"))
    return written or "game" in Overview(folder).config


def newest_meta(run: Path) -> dict[str, Any]:
    """Return what a run's newest checkpoint says besides tensors; {} without one."""
    # Named here, because the store's own name for it comes with torch.
    for manifest in sorted((run / CHECKPOINTS).glob("*/manifest.json"), reverse=True):
        found = read_json(manifest)
        if isinstance(found, dict) and isinstance(found.get("meta", {}), dict):
            meta: dict[str, Any] = found.get("meta", {})
            return meta
    return {}


def custom_rules(run: Path) -> CustomRules:
    """Return what a run plays by on an environment of somebody's own, without making it."""
    described = newest_meta(run).get("foreign")
    if not described:
        raise ConfigError(f"{run} has no checkpoint that says what its environment is like")
    return CustomRules(**described)


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return what came from beside while a run went on."""
    return Overview(folder).events


def last_number(curves: Mapping[str, metrics.Curve], name: str) -> int:
    values = curves[name][2] if name in curves else np.empty(0)
    there = values[np.isfinite(values)]
    return int(there[-1]) if len(there) else 0


def size_of(folder: Path) -> int:
    """Return the bytes of everything in a folder, up to MAX_FILES of them; links count as links.

    Not `os.walk`, which calls itself for every folder in a folder.
    """
    total, looked_at, waiting = 0, 0, [str(folder)]
    while waiting and looked_at < MAX_FILES:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:  # it may be gone by now
            for entry in entries:
                looked_at += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, None without one that can be read."""
    try:
        return parse_json(path)
    except (OSError, ValueError):
        return None


def told(error: BaseException) -> str:
    """Return in one short line why something cannot be read."""
    text = getattr(error, "strerror", None) or str(error)
    line = " ".join(str(text).split()) or type(error).__name__
    if isinstance(error, KeyError):
        line = f"it has no {line}"
    return line if len(line) <= LONGEST_TROUBLE else f"{line[:LONGEST_TROUBLE]}..."


def amount(kind: str, value: float) -> str:
    """Return a budget, or what is used of it, as a person writes it."""
    return f"{value:,.2f}".rstrip("0").rstrip(".") if kind == "minutes" else f"{int(value):,}"


def done_line(run: Overview) -> str:
    """Say that a run is done, and which budget would have it go on."""
    kind = next((kind for kind in COUNTED if run.planned(kind)), "minutes")
    episodes = newest_meta(run.path).get("episodes", 0)
    gone = {
        "updates": run.updates,
        "decisions": run.decisions,
        "episodes": episodes if isinstance(episodes, int) else 0,
        "minutes": run.minutes,
    }[kind]
    planned = run.planned(kind)
    more = amount(kind, 2 * (planned if 2 * planned > gone else gone)).replace(",", "")
    why = " (no progress for as many evaluations as eval.patience says)" * (run.ended == "early")
    return (
        f"done: {amount(kind, gone)} of {amount(kind, planned)} {kind}{why}; "
        f"give more: sparring resume {run.path} --{kind} {more}"
    )


def measured_line(run: Overview, update: int, decisions: int) -> str:
    """Say whose strength is measured: of a run's checkpoints, the best one or the last."""
    named = read_json(run.path / BEST)
    best = named.get("checkpoint") if isinstance(named, dict) else None
    which = "best so far" if best == update else "the last"
    last = max(run.updates, update)
    return f"measured: update {update:,} of {last:,} ({which}), {decisions:,} decisions"
