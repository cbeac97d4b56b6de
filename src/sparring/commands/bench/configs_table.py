"""The table of `sparring bench configs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from sparring.commands.bench.report import short
from sparring.commands.shared.printing import make_table
from sparring.draw.charts.axes import label
from sparring.draw.columns import Columns
from sparring.league.statistics import estimate, interquartile_mean
from sparring.machine import show_size

MEDIANS = ("minutes", "decisions", "decisions_per_s", "samples_per_s", "cpu_cores", "gpu_busy")
GAINS = ("score_per_hour", "score_per_million")


def summaries(
    facts: Mapping[str, Sequence[Mapping[str, Any]]], targets: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """Return a configuration's numbers over its runs."""
    return {name: summary(runs, targets) for name, runs in facts.items()}


def summary(runs: Sequence[Mapping[str, Any]], targets: Sequence[float]) -> dict[str, Any]:
    """Return medians of speeds, the largest memory, and what was gained."""
    if not runs:
        return {"runs": 0}
    gains: dict[str, float | None] = {}
    for name in GAINS:
        known = [run[name] for run in runs if run[name] is not None]
        gains[name] = float(interquartile_mean(known)) if len(known) == len(runs) else None
    return {
        "runs": len(runs),
        **{name: median(run[name] for run in runs) for name in MEDIANS},
        "memory_bytes": max(run["memory_bytes"] for run in runs),
        "gpu_bytes": max(run["gpu_bytes"] for run in runs),
        **gains,
        "strength": strength(runs),
        "targets": {str(target): time_to(runs, target) for target in targets},
    }


def strength(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the interquartile mean over runs; the interval of a single one is of its games."""
    known = [run["strength"] for run in runs if run["strength"] is not None]
    if not known:
        return {"value": None, "low": None, "high": None, "over": "nothing"}
    if len(known) == 1:
        ends = {"low": runs[0]["strength_low"], "high": runs[0]["strength_high"]}
        return {"value": known[0], **ends, "over": "games"}
    return {**estimate(interquartile_mean, known).plain(), "over": "seeds"}


def time_to(runs: Sequence[Mapping[str, Any]], target: float) -> dict[str, Any]:
    """Return the median of the seconds until a target was reached, and how many runs did."""
    times = [run["targets"][key] for run in runs if (key := str(float(target))) in run["targets"]]
    return {"seconds": median(times) if times else None, "reached": len(times), "runs": len(runs)}


def config_table(found: Mapping[str, Mapping[str, Any]], targets: Sequence[float]) -> Columns:
    """Return a line per configuration."""
    gpu = any(one.get("gpu_bytes") for one in found.values())
    goals = {str(target): f"to {target:g}" for target in targets}
    numbers = (
        *("runs", "decisions/s", "samples/s", "CPU cores"),
        *(("GPU busy", "GPU memory") if gpu else ()),
        *("memory", "strength", "95 %", *goals.values(), "score/h", "score/M"),
    )
    least = ("samples/s", "memory", "CPU cores", "score/M", "runs")
    table = make_table(("configuration", *numbers), numbers=numbers, least=least)
    table.caption = (
        "medians over runs; memory: the most of the training process; strength: interquartile mean "
        "over runs, its interval over seeds, or over games where there is one run; to X: time "
        "until the lower end of the interval was there; score/h, score/M: score gained from the "
        "first evaluation to the last, per hour and per million decisions"
    )
    table.caption_justify = "left"
    for name, one in found.items():
        if not one["runs"]:
            table.add_row(name, "0", "–")
            continue
        table.add_row(name, str(one["runs"]), *cells(one, goals, gpu=gpu))
    return table


def cells(one: Mapping[str, Any], goals: Mapping[str, str], *, gpu: bool) -> list[str]:
    """Return a configuration's numbers as text."""
    strong = one["strength"]
    busy = [f"{one['gpu_busy']:.0%}" if one["gpu_busy"] else "–", show_size(one["gpu_bytes"])]
    return [
        short(one["decisions_per_s"]),
        short(one["samples_per_s"]),
        f"{one['cpu_cores']:.1f}",
        *(busy if gpu else ()),
        show_size(one["memory_bytes"]),
        number(strong["value"], 3),
        "–" if strong["low"] is None else f"{strong['low']:.3f} .. {strong['high']:.3f}",
        *(time_cell(one["targets"][goal]) for goal in goals),
        number(one["score_per_hour"]),
        number(one["score_per_million"]),
    ]


def number(value: float | None, digits: int | None = None) -> str:
    """Return a number as text, a dash where there is none."""
    if value is None:
        return "–"
    return label(value, "number") if digits is None else f"{value:.{digits}f}"


def time_cell(found: Mapping[str, Any]) -> str:
    """Return the time to a target, and how many runs got there if not all did."""
    if found["seconds"] is None:
        return "–"
    share = f" ({found['reached']} of {found['runs']})" if found["reached"] < found["runs"] else ""
    return f"{found['seconds'] / 60:.1f} min{share}"
