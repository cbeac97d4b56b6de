"""Facts of one run: settings with their help, checkpoints, phases, results, profile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.config.options import all_help, flat
from sparring.draw.charts.axes import By, Floats
from sparring.errors import ConfigError
from sparring.league.ladder import describe_league as league_described
from sparring.league.ladder import make_payoff
from sparring.store.folders import BEST
from sparring.store.standings import spread_snapshots, standings_of
from sparring.training.records.comparison import Comparison, RunGroup, compare
from sparring.training.records.comparison_report import described, measure_of, notes
from sparring.training.records.diff import names_of
from sparring.training.records.overview import Overview, read_json, size_of
from sparring.training.records.run import NETWORK, ORIGIN, PHASE, RESULTS, folder_word
from sparring.web.description import unplayable_reason
from sparring.web.responses import ConflictError, NotFoundError
from sparring.web.runs_folder import MANIFEST, list_checkpoints

MACHINE = "machine.json"
PROFILE = "profile.json"
"""File of `sparring profile`: in the run's folder, or next to it under the run's name."""
PROFILED = "sparring profile"
MACHINE_SETTINGS = ("runs", "config")
"""Settings that are paths of this machine."""


def facts_of(run: Path) -> dict[str, Any]:
    """Return everything about a run but its curves."""
    overview = Overview(run)
    events = overview.events
    return {
        "settings": settings_of(overview.config),
        "checkpoints": or_empty_list(checkpoints_of, run, overview),
        "events": events,
        "phases": or_empty_list(phases_of, overview.config, events),
        "results": read_json(run / RESULTS),
        "machine": read_json(run / MACHINE),
        "network": read_json(run / NETWORK),
        "origin": read_json(run / ORIGIN),
        "unplayable": unplayable_reason(overview.game),
        "league": (run / "league.sqlite").is_file(),
        "profile": or_empty_list(profile_of, run) or None,
    }


def or_empty_list(work: Callable[..., Any], *given: Any) -> Any:
    """Return a part of the facts, [] if its files are damaged."""
    try:
        return work(*given)
    except Exception:  # the rest of the page does not depend on it
        return []


def settings_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every setting with its help and default."""
    default_config = TrainConfig(game="")
    texts = all_help(default_config)
    defaults = flat(plain_fields(default_config))
    found = []
    for name, value in flat(config).items():
        if name in MACHINE_SETTINGS:
            continue
        known = name in defaults
        found.append(
            {
                "name": name,
                "value": value,
                "default": defaults.get(name),
                "changed": bool(known and defaults[name] != value),
                "help": texts.get(name, ""),
            }
        )
    return found


def plain_fields(config: Any) -> dict[str, Any]:
    """Return a configuration as in a run's file."""
    from sparring.training.planning.settings import written

    return written(config)


def checkpoints_of(run: Path, seen: Overview) -> list[dict[str, Any]]:
    """Return the checkpoints, newest first."""
    best = read_json(run / BEST)
    chosen = best.get("checkpoint") if isinstance(best, dict) else None
    found = []
    for number, folder in list_checkpoints(run):
        manifest = read_json(folder / MANIFEST)
        meta = manifest.get("meta") if isinstance(manifest, dict) else None
        if not isinstance(meta, dict):
            continue
        found.append(
            {
                "number": number,
                "update": meta.get("update"),
                "decisions": meta.get("decisions"),
                "best": number == chosen,
                "strength": seen.evaluated[number].value if number in seen.evaluated else None,
                "size": size_of(folder),
                "seconds": (folder / MANIFEST).stat().st_mtime,
            }
        )
    return found


def phases_of(config: dict[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the configured phases of a run, with the start of each."""
    phases = [phase for phase in config.get("phases", ()) if isinstance(phase, dict)]
    begun = {
        event.get("phase"): {key: event.get(key) for key in ("update", "seconds", "decisions")}
        for event in events
        if event.get("event") == PHASE and isinstance(event.get("phase"), int)
    }
    return [
        {"number": at, "name": name, "began": begun.get(at), "terms": phase}
        for at, (name, phase) in enumerate(zip(names_of(phases), phases, strict=True), start=1)
    ]


def profile_of(run: Path) -> dict[str, Any] | None:
    """Return the newest profile of a run, if any."""
    beside = f"profile-{folder_word(run.name)}*/{PROFILE}"
    files = [*run.glob(PROFILE), *run.glob(f"*/{PROFILE}"), *run.parent.glob(beside)]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        found = read_json(file) if not file.is_symlink() else None
        if isinstance(found, dict) and str(found.get("format", "")).startswith(PROFILED):
            if found.get("target") not in (run.name, str(run)):
                continue
            kept = ("target", "verdicts", "phases", "decisions_per_s", "samples_per_s", "seconds")
            return {key: found.get(key) for key in kept} | {"made": file.stat().st_mtime}
    return None


MAX_IN_MATRIX = 12
"""Snapshots of a league's matrix, spread over the run."""


def league_facts(run: Path) -> dict[str, Any]:
    """Return the players of a run's league, their ratings and the payoff matrix."""
    try:
        standings = standings_of(run)
    except ConfigError:
        raise NotFoundError(
            f"{run.name} has no league; train one: sparring train GAME --opponents past"
        ) from None
    except sqlite3.Error:
        raise ConflictError(f"the league of {run.name} cannot be read") from None
    matrix = make_payoff(standings, spread_snapshots(standings, MAX_IN_MATRIX))
    return {
        "run": run.name,
        **league_described(standings),
        "payoff": {
            "names": list(matrix.names),
            "share": matrix.share.tolist(),
            "low": numbers(matrix.low),
            "high": numbers(matrix.high),
        },
    }


def comparison_facts(runs: Sequence[Path], by: str) -> dict[str, Any]:
    """Return the comparison of runs as `sparring compare` does, with its curves."""
    found = compare(runs, by)
    plain = described(found, ())
    for group in plain["groups"]:
        for entry in group["runs"]:
            entry["run"] = Path(entry["run"]).name
    return {
        **plain,
        "measure": measure_of(found),
        "parity": 1 / found.rules.seats if found.rules.seats > 1 else None,
        "notes": notes(found),
        "curves": {
            by: [curve_of(found, group, by) for group in found.groups] for by in found.budgets
        },
    }


def curve_of(found: Comparison, group: RunGroup, by: By) -> dict[str, Any]:
    """Return the strength of a group over its cost, with the interval."""
    band = group.over(by, seed=found.seed)
    return {
        "group": group.name,
        "x": band.x.tolist(),
        "value": band.values.tolist(),
        "low": numbers(band.low),
        "high": numbers(band.high),
    }


def numbers(values: Floats | None) -> list[Any] | None:
    return None if values is None else values.tolist()
