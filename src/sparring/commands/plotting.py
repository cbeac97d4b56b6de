"""A run's curves, as files in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparring.draw.charts.curves import Page, make_charts
from sparring.draw.charts.html import draw_html
from sparring.draw.charts.png import draw_png
from sparring.errors import SparringError
from sparring.games.flags import latest, read_rules
from sparring.store.files import write_atomic
from sparring.training import metrics
from sparring.training.run import Run


def plot_run(run_folder: str | Path, out: Path | None = None) -> tuple[Path, Path]:
    """Write plot.png and plot.html into the run's folder, or another one; return both."""
    found = Run.open(run_folder)
    curves = metrics.read(found.path)
    charts = make_charts(curves, fair_share=fair_share(found.config))
    name, minutes = found.path.absolute().name, minutes_of(curves) or 1.0
    page = Page(name, facts(found, curves), tuple(charts), minutes)
    folder = out or found.path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        png, html = folder / "plot.png", folder / "plot.html"
        write_atomic(png, draw_png(page))
        write_atomic(html, draw_html(page).encode())
    except OSError as wrong:
        raise SparringError(
            f"cannot write into {folder}: {wrong.strerror or wrong}; choose another with --out"
        ) from wrong
    return png, html


def fair_share(config: Mapping[str, Any]) -> float | None:
    """Return the share of wins among equals, if the configuration says which game it is."""
    with suppress(SparringError):
        seats = read_rules(str(config.get("game", "")), latest(config.get("set", ()))).seats
        return 1 / seats if seats > 1 else None
    return None


def facts(found: Run, curves: Mapping[str, metrics.Curve]) -> tuple[str, ...]:
    """Return what the numbers depend on: how long, how much, and where."""
    told = []
    if curves:
        told.append(f"{minutes_of(curves):.1f} minutes of training")
        told.append(f"{updates_of(curves):,} updates")
    with suppress(OSError, ValueError):
        machine = json.loads((found.path / "machine.json").read_text())
        told.append(f"{machine['cpu']}, {machine['cores']} cores")
        told += machine.get("gpus", [])
        commit = f" at {machine['commit']}" if machine["commit"] else ""
        told.append(f"sparring {machine['sparring']}{commit}")
    return tuple(told)


def minutes_of(curves: Mapping[str, metrics.Curve]) -> float:
    """Return how long the run has trained."""
    return max((float(seconds.max()) / 60 for _, seconds, _ in curves.values()), default=0.0)


def updates_of(curves: Mapping[str, metrics.Curve]) -> int:
    """Return how often the run has learned."""
    return max((int(updates.max()) for updates, _, _ in curves.values()), default=0)
