"""What a search saw, as charts: over its time, and by the values of every knob."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparring.draw.charts.axes import Axis, label
from sparring.draw.charts.chart import Chart, Estimate, Estimates, Series
from sparring.draw.charts.paper import Page
from sparring.sweep.knobs import Point, switched
from sparring.sweep.race import Look, Outcome
from sparring.sweep.space import Range
from sparring.sweep.strength import Found

BLUE, ORANGE, GREEN, GREY = 0, 1, 2, 7
MOST_ROWS = 14
"""Of those that were timed, the best so many are listed."""


def make_page(title: str, facts: Sequence[str], found: Outcome, knobs: Sequence[Range]) -> Page:
    """Return the charts of a search."""
    timed = [look for look in found.looks if look.gain]
    if not timed:
        return Page(title, tuple(facts), ())
    end = max(found.seconds, timed[-1].at_s) / 60 or 1.0
    charts: list[Chart | Estimates] = [over_time(found, timed, end), listed(found, timed)]
    charts += [card for knob in knobs if (card := by_value(found, timed, knob))]
    return Page(title, tuple(facts), tuple(charts), Axis("minutes", end))


def over_time(found: Outcome, timed: Sequence[Look], end: float) -> Chart:
    """Every point when it was timed, and the best so far."""
    best, x, y = 0.0, [], []
    for look in timed:
        if look.state in ("preset", "faster"):
            x += [look.at_s / 60] * (2 if best else 1)
            y += [best, look.rate] if best else [look.rate]
            best = look.rate
    x += [end] if found.better else [end, end]
    y += [best] if found.better else [best, found.rate]
    others = [look for look in timed if look.point not in (found.preset, found.best)]
    marks = [
        Series("best so far", BLUE, np.array(x), np.array(y)),
        dots("tried", GREY, others),
        dots("preset", ORANGE, [look for look in timed if look.point == found.preset]),
    ]
    if found.better:
        marks.append(dots("chosen", GREEN, [found.look(found.best)]))
    rate = found.preset_rate
    return Chart(
        "Decisions/s of all that was timed",
        tuple(series for series in marks if len(series.x)),
        "rate",
        wide=True,
        from_zero=True,
        guide=rate,
        guide_name=f"preset {label(rate, 'rate')}",
    )


def dots(name: str, colour: int, looks: Sequence[Look]) -> Series:
    """Points without a line."""
    x = np.array([look.at_s / 60 for look in looks])
    return Series(name, colour, x, np.array([look.rate for look in looks]), joined=False)


def listed(found: Outcome, timed: Sequence[Look]) -> Estimates:
    """The best of them, with their intervals."""
    ordered = sorted(timed, key=lambda look: look.rate, reverse=True)[:MOST_ROWS]
    rows = [row(found, look, name_of(look.point, found.preset)) for look in ordered]
    return Estimates("Best first, decisions/s", tuple(rows), "rate", guide=found.preset_rate)


def by_value(found: Outcome, timed: Sequence[Look], knob: Range) -> Estimates | None:
    """The best that was seen with every value of a knob."""
    rows = []
    for value in knob.choices:
        there = [look for look in timed if look.point[knob.name] == value]
        if there:
            best = max(there, key=lambda look: look.rate)
            own = {knob.name: knob.start}
            others = name_of(best.point.turned(own), found.preset)
            beside = "" if others == "preset" else f" with {others}"
            rows.append(row(found, best, f"{switched(value)}{beside}"))
    if len(rows) < 2:
        return None
    return Estimates(f"{knob.name}, decisions/s", tuple(rows), "rate", guide=found.preset_rate)


def row(found: Outcome, look: Look, name: str) -> Estimate:
    """One line."""
    assert look.gain
    colour = {found.best: GREEN, found.preset: ORANGE}.get(look.point, BLUE)
    if look.point == found.preset:
        return Estimate(name, ORANGE, look.rate)
    low, high = (found.preset_rate * (1 + end) for end in (look.gain.low, look.gain.high))
    return Estimate(name, colour, look.rate, low, high)


def name_of(point: Point, preset: Point) -> str:
    """A point as what differs from the preset."""
    return point.beside(preset) or "preset"


def strength_page(title: str, facts: Sequence[str], found: Found) -> Page:
    """Return the curves of all trainings, and the times to the target."""
    trials = [trial for trial in found.trials if trial.curve]
    if not trials:
        return Page(title, tuple(facts), ())
    lines = []
    for trial in trials:
        name = f"{found.name(trial) or 'preset'}, seed {trial.seed}"
        at, _, values = (np.array(column) for column in zip(*trial.curve, strict=True))
        marked = {found.finalist: BLUE, found.best: GREEN, found.preset: ORANGE}
        colour = marked.get(Point(tuple(trial.settings.items())), GREY)
        lines.append(Series(name, colour, at / 60, values, dashed=trial.seed > trials[0].seed))
    end = max(float(line.x.max()) for line in lines) or 1.0
    chart = Chart(
        "Strength of all trainings",
        tuple(lines),
        "number",
        wide=True,
        guide=found.target,
        guide_name=f"target {found.target:.3f}",
    )
    rows = []
    for point, colour in (
        (found.preset, ORANGE),
        (found.finalist, GREEN if found.better else BLUE),
    ):
        known = [time for time in found.times(point) if time is not None] if point else []
        if point and known:
            middle, ends = float(np.median(known)), (min(known), max(known))
            rows.append(Estimate(name_of(point, found.preset), colour, middle, *ends, tuple(known)))
    times = (Estimates("Seconds to the target (dots: seeds)", tuple(rows)),) if rows else ()
    return Page(title, tuple(facts), (chart, *times), Axis("minutes", end))
