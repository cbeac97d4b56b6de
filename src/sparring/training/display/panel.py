"""The live panel: two columns on a wide terminal, one on a narrow one, few lines on a tiny one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sparring.draw.marks import shortened
from sparring.training.display.lines import (
    clock,
    coming,
    count,
    kept,
    learning_words,
    left,
    phase_told,
)
from sparring.training.display.parts import (
    SPARK,
    Machine,
    flow,
    learned,
    loss_words,
    machine_facts,
    machine_grid,
    members,
    phase_words,
    phases,
    progress_bar,
    spark,
    speed_lines,
    stat_words,
    strengths,
)
from sparring.training.status import Status

TWO_COLUMNS, WIDEST = 100, 140
SHORT, LOW = 60, 20
"""Below so many columns or lines: few lines without a border."""
FIXED_LINES = 19
"""Lines of the panel in one column, without members, opponents and losses."""
LOSS_LINES = 3
SHORT_LINES = 9
"""Lines of the short form, without members and opponents."""


def draw(
    statuses: Sequence[Status],
    machine: Machine,
    *,
    width: int,
    height: int = 50,
    over: bool = False,
) -> RenderableType:
    """Return what there is to see of a run, or of the members of a population.

    over: nothing will come any more.
    """
    status = statuses[0]
    standing = phase_told(status.standing) if len(statuses) == 1 else []
    if width < SHORT or height < LOW:
        most = max(height - SHORT_LINES - bool(standing), 1)
        return short_form(statuses, width, most, over=over)
    outer = min(width, WIDEST)
    inner = outer - 4
    parts = [head(status, inner)]
    parts += [flow([shortened(one, inner) for one in standing], inner)] if standing else []
    parts += [Text()]
    lay_out = two_columns if outer >= TWO_COLUMNS else one_column
    speed = speed_lines(status, inner)
    room = height - FIXED_LINES - len(standing) - len(speed)
    parts += [*lay_out(statuses, machine, inner, max(room, 1)), *speed]
    if len(statuses) > 1:
        parts += [Text(), members(statuses, inner, max(room, 1))]
    elif room >= len(status.wins) + LOSS_LINES + bool(status.learning) + bool(status.stats):
        lines = [words for words in (stat_words(status), learning_words(status.learning)) if words]
        parts += [Text(), *(flow(words, inner) for words in lines)]
        parts += [flow(loss_words(status), inner, style="dim")]
    parts += [Text(), flow(foot(statuses, over=over), inner, style="bold")]
    return Panel(
        Group(*parts),
        title=Text(shortened(f"sparring {status.game}", inner - 4), style="bold not dim"),
        title_align="left",
        subtitle=Text(shortened(place(statuses), inner - 4), style="dim"),
        subtitle_align="left",
        width=outer,
        border_style="dim",
    )


def two_columns(
    statuses: Sequence[Status], machine: Machine, width: int, most: int
) -> list[RenderableType]:
    """Return what is learned on the left, what comes of it and where time goes on the right."""
    status, gap = statuses[0], 3
    left_width = (width - gap) * 2 // 5
    right_width = width - gap - left_width
    sides = Table.grid(padding=(0, gap, 0, 0), pad_edge=False)
    sides.add_column(width=left_width)
    sides.add_column(width=right_width)
    right: list[RenderableType] = [phases(status)]
    if len(statuses) == 1:
        right = [strengths(status, right_width, most), Text(), *right]
    own = Group(learned(statuses, left_width), Text(), machine_grid(status, machine))
    sides.add_row(own, Group(*right))
    return [sides]


def one_column(
    statuses: Sequence[Status], machine: Machine, width: int, most: int
) -> list[RenderableType]:
    """Return everything below each other."""
    status = statuses[0]
    parts: list[RenderableType] = [learned(statuses, width), Text()]
    if len(statuses) == 1:
        parts += [strengths(status, width, most), Text()]
    uses = [f"{label} {value}" for label, value in machine_facts(status, machine)]
    return [*parts, flow(phase_words(status), width), flow(uses, width)]


def short_form(statuses: Sequence[Status], width: int, most: int, *, over: bool) -> RenderableType:
    """Return the little that matters most."""
    status = statuses[0]
    total = f" of {status.total_updates:,}" if status.total_updates else ""
    rate = count(sum(one.decisions_per_s for one in statuses))
    parts: list[RenderableType] = [
        flow([shortened(status.game, width), spent(status)], width),
        progress_bar(status, width),
        flow([f"update {status.update:,}{total}", f"{rate} decisions/s"], width),
    ]
    if len(statuses) == 1 and status.standing:
        told = phase_told(status.standing)[:1]
        parts += [Text(shortened(one, width)) for one in told]
    if len(statuses) > 1:
        parts.append(members(statuses, width, most))
    else:
        if not math.isnan(status.score):
            score = f"score {status.score:.2f}   "
            parts.append(Text(score) + spark(status, "score", min(SPARK, width - len(score))))
        parts.append(strengths(status, width, most, narrow=True))
    return Group(*parts, flow(foot(statuses, over=over), width))


def head(status: Status, width: int) -> RenderableType:
    """Return how far the run is."""
    told = spent(status)
    return progress_bar(status, width - len(told) - 3) + Text(f"   {told}")


def spent(status: Status) -> str:
    """Return time gone and to go."""
    return f"{clock(status.seconds)} gone, {left(status)}"


def foot(statuses: Sequence[Status], *, over: bool) -> list[str]:
    """Return what comes next, and what is safe."""
    status = statuses[0]
    known = len(statuses) == 1 and status.best >= 0
    best = f"best update {status.best:,}" if known else ""
    return [
        status.message,
        status.league,
        "" if over else coming(status),
        kept(status, over=over),
        best,
    ]


def place(statuses: Sequence[Status]) -> str:
    """Return the folder of the run, or that of all runs."""
    run = statuses[0].run
    return str(run) if len(statuses) == 1 else f"{len(statuses)} runs in {run.parent}"
