"""Charts of `sparring bench scaling`: speed over games, one line per number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparring.commands.bench.shared import title
from sparring.draw.charts.axes import Axis, Form
from sparring.draw.charts.chart import Chart, Series
from sparring.draw.charts.curves import color_of
from sparring.draw.charts.page import ChartPage
from sparring.speed.scaling import ScalingRow

MIB = 2**20


def make_page(report: dict[str, Any], rows: Sequence[ScalingRow], advice: str) -> ChartPage:
    """Return charts of speed, busy cores and memory."""
    games = sorted({row.point.games for row in rows})
    axis = Axis("games", len(games), tuple(f"{count:,}" for count in games))
    training, machine = report["training"], report["machine"]
    facts = (
        f"{training['algo']}, network on {training['device']}, games on {training['pool']}",
        f"median and range of {report['passes']} passes",
        f"{machine['cpu']}, {machine['cores']} cores",
    )

    def chart(
        name: str, value: Callable[[ScalingRow], list[float]], form: Form, *, wide: bool
    ) -> Chart:
        lines = tuple(
            line(at, key, [row for row in rows if line_of(row) == key], games, value)
            for at, key in enumerate(dict.fromkeys(map(line_of, rows)))
        )
        return Chart(name, lines, form, wide=wide, from_zero=True)

    charts = [
        chart(
            f"Decisions per second: {advice.partition(';')[0]}",
            lambda row: row.rates,
            "rate",
            wide=True,
        ),
        chart(
            "Cores busy", lambda row: [r.cpu_cores for r in row.measurements], "number", wide=False
        ),
        chart("Memory, MiB", memory, "rate", wide=False),
    ]
    if any(measurement.gpu_busy for row in rows for measurement in row.measurements):
        charts.append(
            chart(
                "GPU busy",
                lambda r: [one.gpu_busy for one in r.measurements],
                "percent",
                wide=False,
            )
        )
    return ChartPage(f"{title(report)}: speed by games", facts, tuple(charts), axis)


def memory(row: ScalingRow) -> list[float]:
    """Return the memory of a point: of the GPU if it uses one."""
    on_gpu = [measurement.gpu_bytes / MIB for measurement in row.measurements]
    return on_gpu if any(on_gpu) or row.session is None else [row.session.memory_bytes / MIB]


def line_of(row: ScalingRow) -> tuple[int, int]:
    return row.point.threads, row.point.workers


def line(
    at: int,
    key: tuple[int, int],
    rows: Sequence[ScalingRow],
    games: Sequence[int],
    value: Callable[[ScalingRow], list[float]],
) -> Series:
    """Return the line of a number of threads and workers; unmeasured points leave a gap."""
    threads, workers = key
    name = f"{threads} thread{'s' * (threads != 1)}" + (f", {workers} workers" if workers else "")
    measured = [row for row in rows if row.measurements]
    x = np.array([games.index(row.point.games) + 0.5 for row in measured])
    values = [value(row) for row in measured]
    color, dashed = color_of(at)
    middle, low, high = (
        np.array([float(how(v)) for v in values]) for how in (np.median, np.min, np.max)
    )
    return Series(name, color, x, middle, low, high, dashed)
