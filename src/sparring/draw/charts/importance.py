"""How much each setting matters: a bar for each."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.draw.charts.axes import label
from sparring.draw.charts.shapes import Bar, Sheet, Words, fitting
from sparring.draw.charts.tried import nothing

WIDTH, ROW, NAME = 1160.0, 34.0, 300.0


def importance_sheet(importance: Mapping[str, float]) -> Sheet:
    """Bars by setting, the longest first."""
    rows = sorted(importance.items(), key=lambda pair: -pair[1])
    sheet = Sheet(
        "Importance",
        WIDTH,
        ROW * max(len(rows), 3) + 16,
        "how much of the differences between trials goes with each setting",
    )
    if not rows:
        sheet.add(nothing(WIDTH, sheet.height, "not known yet: too few trials have ended"))
        return sheet
    longest = max(rows[0][1], 1e-9)
    room = WIDTH - NAME - 110
    for at, (name, value) in enumerate(rows):
        y, length = ROW * at + 8, max(value, 0.0) / longest * room
        middle = y + ROW / 2 - 3
        sheet.add(
            Words(NAME - 14, middle, fitting(name, NAME - 30, 15), 15, "ink", "rm"),
            Bar(NAME, y + 4, length, ROW - 14, "c0"),
            Words(NAME + length + 9, middle, label(value, "percent"), 14, "soft", "lm"),
        )
    return sheet
