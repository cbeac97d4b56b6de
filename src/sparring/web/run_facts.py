"""Everything about one run: settings with their help, checkpoints, phases, results, advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.config.help import all_help
from sparring.config.tables import flat
from sparring.store.folders import BEST
from sparring.training.records.overview import Overview, read_json, size_of
from sparring.training.records.run import NETWORK, ORIGIN, PHASE, RESULTS, word_of
from sparring.training.records.told import names_of
from sparring.web.folder import MANIFEST, numbered
from sparring.web.modules import why_not_played

MACHINE = "machine.json"
PROFILE = "profile.json"
"""What `sparring profile` leaves: in the run's folder, or beside it under the run's name."""
PROFILED = "sparring profile"
OF_THIS_MACHINE = ("runs", "config")
"""Settings that name places on this machine."""


def facts_of(run: Path) -> dict[str, Any]:
    """Return what a run's folder says besides its curves."""
    seen = Overview(run)
    events = seen.events
    return {
        "settings": settings_of(seen.config),
        "checkpoints": or_empty(checkpoints_of, run, seen),
        "events": events,
        "phases": or_empty(phases_of, seen.config, events),
        "results": read_json(run / RESULTS),
        "machine": read_json(run / MACHINE),
        "network": read_json(run / NETWORK),
        "origin": read_json(run / ORIGIN),
        "unplayable": why_not_played(seen.game),
        "league": (run / "league.sqlite").is_file(),
        "profile": or_empty(profile_of, run) or None,
    }


def or_empty(work: Callable[..., Any], *given: Any) -> Any:
    """Return what can be told about a part of a run, [] if its files hold something else."""
    try:
        return work(*given)
    except Exception:  # the rest of the page does not depend on it
        return []


def settings_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every setting with what it means and what it usually is."""
    usual = TrainConfig(game="")
    texts = all_help(usual)
    defaults = flat(plain_fields(usual))
    found = []
    for name, value in flat(config).items():
        if name in OF_THIS_MACHINE:
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
    """Return a configuration as a run's file has it."""
    from sparring.training.planning.settings import written

    return written(config)


def checkpoints_of(run: Path, seen: Overview) -> list[dict[str, Any]]:
    """Return the checkpoints that are there, the newest first."""
    best = read_json(run / BEST)
    chosen = best.get("checkpoint") if isinstance(best, dict) else None
    found = []
    for number, folder in numbered(run):
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
    """Return the phases of a run as they were written, with when each began."""
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
    """Return what the newest profile of a run says, if somebody made one."""
    beside = f"profile-{word_of(run.name)}*/{PROFILE}"
    files = [*run.glob(PROFILE), *run.glob(f"*/{PROFILE}"), *run.parent.glob(beside)]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        found = read_json(file) if not file.is_symlink() else None
        if isinstance(found, dict) and str(found.get("format", "")).startswith(PROFILED):
            if found.get("target") not in (run.name, str(run)):
                continue
            kept = ("target", "verdicts", "phases", "decisions_per_s", "samples_per_s", "seconds")
            return {key: found.get(key) for key in kept} | {"made": file.stat().st_mtime}
    return None
