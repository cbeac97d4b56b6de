"""What the last evaluation of a run found, from its curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparring.training.records import metrics
from sparring.training.records.overview import opponents_of

FIGURES = ("win", "low", "high", "score")


def last_evaluation(run: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of the last evaluation by opponent; {} where there is none to be read."""
    try:
        curves = metrics.read(run, "eval/*")
    except (metrics.MetricsError, OSError):
        return {}
    found = {
        name: {
            figure: float(curves[f"eval/{name}/{figure}"][2][-1])
            for figure in FIGURES
            if len(curves.get(f"eval/{name}/{figure}", ((), (), ()))[2])
        }
        for name in opponents_of(curves)
    }
    return {name: figures for name, figures in found.items() if figures}
