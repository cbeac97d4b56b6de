"""All trials over all settings at once: a line for each, coloured by what came of it."""

from __future__ import annotations

from sparring.draw.charts.axes import label, ticks
from sparring.draw.charts.shapes import SCALE, Dot, Sheet, Stroke, Told, Words, fitting
from sparring.draw.charts.tried import Column, Found, Tried, nothing, shifted

WIDTH, HEIGHT = 1160.0, 470.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 70.0, 56.0, 24.0
SIDEWAYS = 0.035
"""How far lines through one choice lie apart."""
FEW = 40
"""Lines up to which they are drawn strongly."""


def parallel_sheet(found: Found) -> Sheet:
    """Lines through the columns and through the value at the right, the best on top."""
    sheet = Sheet(
        "Parallel coordinates",
        WIDTH,
        HEIGHT,
        f"a line is a trial: the stronger its colour, the better its {found.what}; "
        "orange: the best, dashed: pruned",
    )
    if not found.valued:
        sheet.add(nothing(WIDTH, HEIGHT, "no trial has ended yet"))
        return sheet
    low, high = found.span(intervals=False)
    at = ticks(low, high, 5)
    step = at[1] - at[0] if len(at) > 1 else high - low
    names = tuple(((one - low) / (high - low), label(one, found.form, step)) for one in at)
    columns = (*found.columns, Column("", found.what, names))
    gap = (WIDTH - LEFT - RIGHT) / max(len(columns) - 1, 1)
    for index, column in enumerate(columns):
        draw_axis(sheet, column, LEFT + gap * index, gap, last=index == len(columns) - 1)
    best = found.best
    for one in found.valued:
        if one is not best:
            sheet.add(line_of(one, found, gap, (low, high)))
    if best is not None:
        sheet.add(line_of(best, found, gap, (low, high), best=True))
    for index, column in enumerate(columns):
        name_ticks(sheet, column, LEFT + gap * index, gap, last=index == len(columns) - 1)
    return sheet


def line_of(
    one: Tried, found: Found, gap: float, span: tuple[float, float], *, best: bool = False
) -> Told:
    """The line of a trial."""
    assert one.value is not None
    low, high = span
    value = (min(max(one.value, low), high) - low) / (high - low)
    places = [*shifted(one, found.columns, SIDEWAYS), value]
    points = [(LEFT + gap * index, upwards(place)) for index, place in enumerate(places)]
    many = len(found.valued) > FEW
    if best:
        line = Stroke(points, "c1", 3.2)
        return Told(found.told(one), [line, *(Dot(*point, 4, "c1") for point in points)])
    strong = found.rung(one.value) / (len(SCALE) - 1)
    width, opacity = (1.2 + strong, 0.4 + 0.6 * strong) if many else (1.9, 0.95)
    line = Stroke(points, found.colour(one.value), width, opacity, dashed=one.pruned)
    return Told(found.told(one), [line])


def upwards(place: float) -> float:
    """Where a place between 0 and 1 lies."""
    return TOP + (1 - place) * (HEIGHT - TOP - BOTTOM)


def draw_axis(sheet: Sheet, column: Column, x: float, gap: float, *, last: bool) -> None:
    """An axis and its name: the section above, the setting below."""
    sheet.add(Stroke([(x, upwards(0.0)), (x, upwards(1.0))], "soft", 1.2))
    room = min(gap - 6, 200.0)
    size = 14 if gap > 96 else 12
    anchor = "rs" if last else "ms"
    x = x + 40 if last else x
    if column.section:
        sheet.add(Words(x, TOP - 34, fitting(column.section, room, 12), 12, "soft", anchor))
    sheet.add(Words(x, TOP - 18, fitting(column.name, room, size), size, "ink", anchor))


def name_ticks(sheet: Sheet, column: Column, x: float, gap: float, *, last: bool) -> None:
    """What places on an axis are called, on top of the lines."""
    size = 12 if gap > 80 else 11
    for place, name in column.ticks:
        y = upwards(place)
        sheet.add(Stroke([(x - 3, y), (x + 3, y)], "soft", 1.2))
        shown = fitting(name, RIGHT - 8 if last else gap - 10, size)
        sheet.add(Words(x + 6, y - 1, shown, size, "ink", "lm", halo=True))
