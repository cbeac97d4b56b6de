"""What came of trials over each setting alone, and by the order in which they were tried."""

from __future__ import annotations

from sparring.draw.charts.axes import ticks
from sparring.draw.charts.shapes import Dot, Shape, Sheet, Stroke, Told, Words, fitting
from sparring.draw.charts.tried import Column, Found, Frame, Tried, nothing, shifted

WIDTH = 1160.0
COLUMNS, PANEL, GAP = 3, 250.0, 22.0
LEFT, TOP, BOTTOM = 58.0, 30.0, 34.0
SIDEWAYS = 0.05
HISTORY = 360.0
CROSS = 4.0
LONG = 6
"""Letters of a name that would stand out at the ends of an axis."""


def slices_sheet(found: Found) -> Sheet:
    """A small chart for every setting, all with the same values upwards."""
    rows = -(-max(len(found.columns), 1) // COLUMNS)
    sheet = Sheet(
        "Slices",
        WIDTH,
        rows * (PANEL + GAP) - GAP + 8,
        f"{found.what} over each setting, with its interval; orange: the best, hollow: pruned, "
        "at the lower edge: far below the others",
    )
    if not found.valued:
        sheet.add(nothing(WIDTH, sheet.height, "no trial has ended yet"))
        return sheet
    low, high = found.span()
    wide = (WIDTH - (COLUMNS - 1) * GAP) / COLUMNS
    for index, column in enumerate(found.columns):
        down, across = divmod(index, COLUMNS)
        left, top = across * (wide + GAP) + LEFT, down * (PANEL + GAP) + TOP
        frame = Frame(left, top, wide - LEFT - 14, PANEL - TOP - BOTTOM, low, high)
        sheet.add(Words(left, top - 10, fitting(column.full, wide - LEFT, 15), 15, "ink"))
        sheet.add(*frame.grid(found.form, about=5), *scale(frame, column))
        for one in found.valued:
            place = shifted(one, found.columns, SIDEWAYS)[index]
            sheet.add(point(one, found, frame, across_of(frame, place)))
    return sheet


def across_of(frame: Frame, place: float) -> float:
    """Where a place of a setting lies, with a little room at both ends."""
    return frame.x(0.04 + 0.92 * place)


def scale(frame: Frame, column: Column) -> list[Shape]:
    """What runs from left to right."""
    y, named = frame.top + frame.height, column.ticks
    room = frame.width / max(len(named), 1)
    shapes: list[Shape] = [Stroke([(frame.left, y), (frame.left + frame.width, y)], "soft")]
    for place, name in named:
        x = across_of(frame, place)
        shapes.append(Stroke([(x, y), (x, y + 4)], "soft"))
        anchor = "mt"
        if len(name) > LONG:
            anchor = "lt" if place == 0 else "rt" if place == 1 else "mt"
        shapes.append(Words(x, y + 9, fitting(name, room + 14, 12), 12, "soft", anchor))
    return shapes


def point(one: Tried, found: Found, frame: Frame, x: float) -> Told:
    """A trial's value with its interval."""
    assert one.value is not None
    y, best = frame.y(one.value), one is found.best
    colour = "c1" if best else "c7" if one.pruned else "c0"
    shapes: list[Stroke | Dot] = []
    if one.low is not None and one.high is not None and not one.pruned:
        ends = [(x, frame.y(one.low)), (x, frame.y(one.high))]
        shapes.append(Stroke(ends, colour, 2.0 if best else 1.2, 1.0 if best else 0.45))
    shapes.append(Dot(x, y, 6 if best else 3.6, colour, hollow=one.pruned))
    return Told(found.told(one), shapes)


def history_sheet(found: Found) -> Sheet:
    """Values by trial, with the best so far; what failed is a cross at the bottom."""
    sheet = Sheet(
        "History",
        WIDTH,
        HISTORY,
        f"{found.what} by trial; line: the best so far, hollow: pruned, crosses: failed",
    )
    if not found.trials:
        sheet.add(nothing(WIDTH, HISTORY, "no trial has ended yet"))
        return sheet
    first, last = (end(one.number for one in found.trials) for end in (min, max))
    frame = Frame(LEFT, 14, WIDTH - LEFT - 22, HISTORY - 14 - BOTTOM - 14, *found.span())

    def x(number: float) -> float:
        return frame.x(0.02 + 0.96 * ((number - first) / (last - first) if last > first else 0.5))

    y = frame.top + frame.height
    sheet.add(*frame.grid(found.form, about=6))
    whole = [number for number in ticks(first, last, 10) if number == int(number)]
    for number in whole or [float(first)]:
        sheet.add(Words(x(number), y + 9, f"{number:.0f}", 12, "soft", "mt"))
    sheet.add(Words(frame.x(0.5), y + 28, "trial", 13, "soft", "mt"))
    for one in sorted(found.trials, key=lambda trial: trial.number):
        if one.value is None:
            at = x(one.number)
            strokes = [
                Stroke([(at - CROSS, y - CROSS * side), (at + CROSS, y + CROSS * side)], "soft", 2)
                for side in (1, -1)
            ]
            sheet.add(Told(found.told(one), strokes))
    best = running_best(found)
    if best:
        steps: list[tuple[float, float]] = []
        for number, value in best:
            steps += [(x(number), steps[-1][1])] if steps else []
            steps.append((x(number), frame.y(value)))
        sheet.add(Stroke([*steps, (x(last) + 6, steps[-1][1])], "c2", 2.4))
    for one in found.valued:
        sheet.add(point(one, found, frame, x(one.number)))
    return sheet


def running_best(found: Found) -> list[tuple[int, float]]:
    """The trials that were better than all before them; pruned ones do not count."""
    best: list[tuple[int, float]] = []
    for one in sorted(found.valued, key=lambda trial: trial.number):
        if not one.pruned and one.value is not None and (not best or one.value > best[-1][1]):
            best.append((one.number, one.value))
    return best
