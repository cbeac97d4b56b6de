"""What searches found, in pictures: a sheet for each question about a sweep, a page for a tune."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sparring.draw.charts.axes import Axis, Form, label, ticks
from sparring.draw.charts.chart import Chart, Estimate, Estimates, Series
from sparring.draw.charts.paper import Page, render
from sparring.draw.charts.trials import (
    WIDTH,
    Column,
    Found,
    Sheet,
    Tried,
    history_sheet,
    importance_sheet,
    parallel_sheet,
    slices_sheet,
)
from sparring.store.files import write_atomic
from sparring.sweep.knobs import switched
from sparring.sweep.race import Look, Outcome
from sparring.sweep.space import CHOICE, INT, PERMUTATION, Range, shown
from sparring.sweep.strength import Found as Trained
from sparring.sweep.trials import FAILED, PRUNED, RUNNING, Trial

PAGE = "sweep.html"
MOST_ITEMS = 8
"""Of an order, up to which each has a column of its own."""
FEW = 12
"""Whole numbers up to which every one of them is a step."""
EVERY = 7
"""Whole numbers up to which every one of them is named."""
DECADE = 10.0
BLUE, ORANGE, GREEN, GREY = 0, 1, 2, 7
MOST_ROWS = 14
"""Of those that were timed, the best so many are listed."""
Ticks = tuple[tuple[float, str], ...]


def draw_sweep(
    folder: Path,
    trials: Sequence[Trial],
    ranges: Mapping[str, Range],
    importance: Mapping[str, float],
    *,
    title: str = "",
    form: Form = "number",
    what: str = "strength",
) -> list[Path]:
    """Write the pictures of a sweep into a folder: a PNG each, and a page with all of them.

    importance: shares by the name of a range; empty where nothing is known yet.
    form, what: of the value that the search raises.
    """
    found = found_of(trials, ranges, form, what)
    sheets = sheets_of(found, importance)
    pages = {f"{name}.png": Page("", (), (sheet,), width=WIDTH) for name, sheet in sheets.items()}
    title = title or f"Sweep {folder.name}"
    pages[PAGE] = Page(title, facts_of(found), tuple(sheets.values()), width=WIDTH)
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / name: page for name, page in pages.items()}
    for file, page in files.items():
        write_atomic(file, render(page, file.suffix))
    return list(files)


def sheets_of(found: Found, importance: Mapping[str, float]) -> dict[str, Sheet]:
    """The pictures, by the names of their files."""
    return {
        "importance": importance_sheet(importance),
        "parallel": parallel_sheet(found),
        "slices": slices_sheet(found),
        "history": history_sheet(found),
    }


def found_of(trials: Sequence[Trial], ranges: Mapping[str, Range], form: Form, what: str) -> Found:
    """What trials say, as charts take it. Those that are running are left out."""
    columns = [column for one in ranges.values() for column in columns_of(one)]
    told = []
    for trial in trials:
        if trial.state == RUNNING:
            continue
        places = [place for one in ranges.values() for place in places_of(one, trial)]
        told.append(
            Tried(
                number=trial.number,
                places=tuple(places),
                value=None if trial.state == FAILED else finite(trial.value),
                low=finite(trial.low),
                high=finite(trial.high),
                pruned=trial.state == PRUNED,
                text="\n".join(f"{name}: {shown(v)}" for name, v in trial.settings.items()),
            )
        )
    return Found(tuple(columns), tuple(told), form, what)


def finite(value: float | None) -> float | None:
    """A number, None where there is none."""
    return value if value is not None and math.isfinite(value) else None


def facts_of(found: Found) -> tuple[str, ...]:
    """What stands above the pictures."""
    pruned = sum(one.pruned for one in found.trials)
    failed = sum(one.value is None for one in found.trials)
    facts = [f"{len(found.trials)} trials", f"{pruned} pruned"]
    facts += [f"{failed} failed"] if failed else []
    if found.best is not None and found.best.value is not None:
        value = label(found.best.value, found.form)
        facts.append(f"best: trial {found.best.number}, {found.what} {value}")
    return tuple(facts)


def columns_of(one: Range) -> list[Column]:
    """The axes of a range: one, or one for the place of each item of an order."""
    if one.kind == PERMUTATION and len(one.choices) <= MOST_ITEMS:
        places = [(at / (len(one.choices) - 1), str(at + 1)) for at in range(len(one.choices))]
        names = [f"place of {shown(item)}" for item in one.choices]
        return [Column(one.name, name, tuple(places), steps=True) for name in names]
    section, _, name = one.name.rpartition(".")
    if one.kind == PERMUTATION:
        return [Column(section, name, ((0.0, "as given"), (1.0, "reversed")), steps=True)]
    if one.kind == CHOICE:
        named = tuple((one.place(value), shown(value)) for value in one.choices)
        return [Column(section, name, named, steps=True)]
    few = one.kind == INT and (one.high - one.low) / max(one.step, 1) <= FEW
    return [Column(section, name, numbers(one), steps=few)]


def numbers(one: Range) -> Ticks:
    """Round numbers of a range, the ends included where nothing else is there."""
    if one.log:
        return log_ticks(one)
    at = [value for value in ticks(one.low, one.high, 4) if one.low <= value <= one.high]
    if one.kind == INT:
        at = [value for value in at if value == int(value)]
        by = max(one.step, 1)
        if (one.high - one.low) / by < EVERY:
            at = [one.low + by * n for n in range(int((one.high - one.low) / by) + 1)]
    step = at[1] - at[0] if len(at) > 1 else one.high - one.low
    if len(at) < 2:
        at = [one.low, one.high]
    form: Form = "rate" if one.high >= 10_000 else "number"
    return tuple((one.place(value), label(value, form, step)) for value in at)


def log_ticks(one: Range) -> Ticks:
    """Powers of ten, or 1, 2 and 5 of them where there are few."""
    low, high = math.floor(math.log10(one.low)), math.ceil(math.log10(one.high))
    for leads in ((1,), (1, 3), (1, 2, 5)):
        at = [lead * DECADE**power for power in range(low, high + 1) for lead in leads]
        at = [value for value in at if one.low * 0.999 <= value <= one.high * 1.001]
        if len(at) > 2:
            break
    else:
        at = [one.low, one.high]
    return tuple((min(max(one.place(value), 0.0), 1.0), f"{value:.3g}") for value in at)


def places_of(one: Range, trial: Trial) -> list[float]:
    """Where a trial lies in the columns of a range."""
    value = trial.settings[one.name]
    if one.kind == PERMUTATION and len(one.choices) <= MOST_ITEMS:
        last = len(one.choices) - 1
        return [list(value).index(item) / last for item in one.choices]
    return [one.place(value)]


def make_page(title: str, facts: Sequence[str], found: Outcome, knobs: Sequence[Range]) -> Page:
    """Return the charts of a search for speed: over its time, and by the values of every knob."""
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
    rows = [row(found, look, found.name(look.point)) for look in ordered]
    return Estimates("Best first, decisions/s", tuple(rows), "rate", guide=found.preset_rate)


def by_value(found: Outcome, timed: Sequence[Look], knob: Range) -> Estimates | None:
    """The best that was seen with every value of a knob."""
    rows = []
    for value in knob.choices:
        there = [look for look in timed if look.point[knob.name] == value]
        if there:
            best = max(there, key=lambda look: look.rate)
            own = {knob.name: knob.start}
            others = best.point.turned(own).beside(found.preset)
            beside = f" with {others}" if others else ""
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


def strength_page(title: str, facts: Sequence[str], found: Trained) -> Page:
    """Return the curves of all trainings, and the times to the target."""
    trials = [trial for trial in found.trials if trial.curve]
    if not trials:
        return Page(title, tuple(facts), ())
    marked = {found.name(found.best): GREEN, found.name(found.preset): ORANGE}
    met = [found.preset]
    if found.finalist:
        met.append(found.finalist)
        marked.setdefault(found.name(found.finalist), BLUE)
    lines, rows = [], []
    for trial in trials:
        name, dashed = found.name(trial.settings), trial.seed > trials[0].seed
        at, _, values = (np.array(column) for column in zip(*trial.curve, strict=True))
        colour = marked.get(name, GREY)
        lines.append(Series(f"{name}, seed {trial.seed}", colour, at / 60, values, dashed=dashed))
    end = max(float(line.x.max()) for line in lines) or 1.0
    chart = Chart(
        "Strength of all trainings",
        tuple(lines),
        "number",
        wide=True,
        guide=found.target,
        guide_name=f"target {found.target:.3f}",
    )
    for point in met:
        if known := [time for time in found.times(point) if time is not None]:
            name, ends = found.name(point), (min(known), max(known))
            middle = float(np.median(known))
            rows.append(Estimate(name, marked[name], middle, *ends, tuple(known)))
    times = (Estimates("Seconds to the target (dots: seeds)", tuple(rows)),) if rows else ()
    return Page(title, tuple(facts), (chart, *times), Axis("minutes", end))
