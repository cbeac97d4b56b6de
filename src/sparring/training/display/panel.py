"""The live panel: two columns on a wide terminal, one on a narrow one, few lines on a tiny one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sparring.draw.columns import Columns
from sparring.draw.text_charts import bar, shorten_middle, sparkline
from sparring.games.stats import format_stat
from sparring.training.display.lines import (
    clock,
    count,
    evaluated_weights,
    interval,
    is_alone,
    last_saved,
    learning_texts,
    next_evaluation,
    phase_texts,
    shown_strength,
    size,
    time_left,
)
from sparring.training.status import Status

GAP = 2
LABEL, VALUE, NAME, SPARK, PHASE = 11, 9, 14, 16, 20
"""Cells for labels, their numbers, opponents, sparklines and bars of phases."""
TWO_COLUMNS, WIDEST = 100, 140
SHORT, LOW = 60, 20
"""Below so many columns or lines: few lines without a border."""
FIXED_LINES = 19
"""Lines of the panel in one column, without members, opponents and losses."""
LOSS_LINES = 3
SHORT_LINES = 9
"""Lines of the short form, without members and opponents."""


@dataclass(frozen=True)
class Machine:
    """What a run has of the machine it is on."""

    cores: int = 0
    memory: int | None = None
    gpu_memory: tuple[int, int] | None = None
    """Used, and there at all."""


def grid_of(*widths: int) -> Table:
    """Return a table without lines, whose first columns have these widths."""
    grid = Table.grid(padding=(0, GAP, 0, 0))
    for width in widths:
        grid.add_column(width=width, no_wrap=True)
    return grid


def flow(phrases: Iterable[str], width: int, *, style: str = "") -> Text:
    """Return phrases side by side, broken into lines between them."""
    lines: list[str] = []
    for phrase in filter(None, phrases):
        if lines and len(lines[-1]) + 3 + len(phrase) <= width:
            lines[-1] += f"   {phrase}"
        else:
            lines.append(phrase)
    return Text("\n".join(lines), style=style)


def progress_bar(status: Status, width: int) -> Text:
    gone = status.shown_progress
    share = f" {gone:4.0%}"
    return Text.assemble(bar(gone, width - len(share), style="cyan"), share)


def number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}" if abs(value) < 1000 else count(value)


def spark(status: Status, name: str, width: int, *, parity: float = 1.0) -> Text:
    """Return how a series went; shares go from 0 to twice what an equal would win, or higher."""
    trail = status.history.get(name)
    values = trail.values() if trail else []
    if parity == 1 or not values:
        return Text(sparkline(values, width), style="cyan")
    return Text(sparkline(values, width, low=0.0, high=max(2 * parity, *values)), style="cyan")


def learned(statuses: Sequence[Status], width: int) -> Table:
    status = statuses[0]
    total = f"of {status.total_updates:,}" if status.total_updates else ""
    grid = grid_of(LABEL, VALUE)
    grid.columns[0].style, grid.columns[1].justify = "dim", "right"
    grid.add_row("update", f"{status.update:,}", total)
    for label, made, rate in (
        ("decisions", "decisions", "decisions_per_s"),
        ("samples", "samples", "samples_per_s"),
    ):
        so_far, per_s = (sum(getattr(one, key) for one in statuses) for key in (made, rate))
        grid.add_row(label, count(so_far), f"{count(per_s)}/s")
    if len(statuses) == 1:
        space = min(2 * SPARK, width - LABEL - VALUE - 3 * GAP)
        grid.add_row("score", number(status.score), spark(status, "score", space))
        grid.add_row("game length", number(status.length), spark(status, "length", space))
    return grid


def color(result: Mapping[str, Any]) -> str:
    """Return green or red where a result differs from an equal's beyond chance."""
    if is_alone(result):
        return "bold"
    if result["low"] > result["parity"]:
        return "green"
    return "red" if result["high"] < result["parity"] else "yellow"


def strengths(
    status: Status, width: int, max_lines: int, *, narrow: bool = False
) -> RenderableType:
    """Return the last evaluation against so many opponents, with a tick at what equals win."""
    if not status.wins:
        return Text("no evaluation yet", style="dim")
    label = min(max(map(len, status.wins)), 13 if narrow else NAME)
    alone = any(map(is_alone, status.wins.values()))
    texts = max(len(shown_strength(result)) for result in status.wins.values())
    spread = 0 if narrow else max(len(interval(result)) for result in status.wins.values())
    space = width - sum(size + GAP for size in (label, texts, spread) if size)
    trail = 0 if narrow else min(SPARK, space if alone else space * 2 // 5) - GAP
    grid = grid_of(label)
    for name, result in list(status.wins.items())[:max_lines]:
        cells: list[RenderableType] = [Text(shorten_middle(name, label))]
        if not alone:
            max_lines = space - GAP - (trail + GAP if trail > 0 else 0)
            drawn = bar(
                result["win"], min(max_lines, 24), tick=result["parity"], style=color(result)
            )
            cells.append(drawn)
        cells.append(Text(shown_strength(result), style=color(result)))
        if spread:
            cells.append(Text(interval(result), style="dim"))
        if trail > 0:
            cells.append(spark(status, f"eval/{name}", trail, parity=result["parity"]))
        grid.add_row(*cells)
    parts = [] if narrow else [flow(strengths_title(status, alone), width, style="dim")]
    return Group(*parts, grid, *and_more(len(status.wins) - max_lines))


def strengths_title(status: Status, alone: bool) -> list[str]:
    when = f" of {evaluated_weights(status)}" if status.evaluated >= 0 else ""
    if alone:
        return [f"score{when}"]
    equal = next(iter(status.wins.values()))["parity"]
    return [f"win share{when}", f"┼ an equal: {equal:.3f}"]


def and_more(rest: int) -> list[Text]:
    return [Text(f"and {rest} more", style="dim")] if rest > 0 else []


def phases(status: Status) -> RenderableType:
    grid = grid_of(LABEL, PHASE)
    for name, share in status.phases.items():
        label = Text(shorten_middle(name, LABEL), style="dim")
        grid.add_row(label, bar(share, PHASE, style="blue"), f"{share:4.0%}")
    return Group(Text("where the time goes", style="dim"), grid)


def share_texts(status: Status) -> list[str]:
    return [f"{name} {share:3.0%}" for name, share in status.phases.items()]


def machine_info(status: Status, machine: Machine) -> list[tuple[str, str]]:
    texts = []
    if not math.isnan(status.cpu_cores):
        texts.append(("CPU", f"{status.cpu_cores:.1f} of {machine.cores} cores"))
    if machine.memory is not None:
        texts.append(("memory", size(machine.memory)))
    if not math.isnan(status.gpu_share):
        texts.append(("GPU", f"{status.gpu_share:.0%}"))
    if machine.gpu_memory is not None:
        used, there = machine.gpu_memory
        texts.append(("GPU memory", f"{size(used)} of {size(there)}"))
    return texts


def machine_grid(status: Status, machine: Machine) -> Table:
    grid = grid_of(LABEL)
    for label, value in machine_info(status, machine):
        grid.add_row(Text(label, style="dim"), value)
    return grid


def speed_lines(status: Status, width: int) -> list[Text]:
    """Return how the run stands to what this machine can do; one line where there is room."""
    if status.utilization is None:
        return []
    line = status.utilization.line
    if len(line) <= width:
        return [Text(line)]
    texts = flow([shorten_middle(part, width) for part in status.utilization.parts], width)
    return [Text(one) for one in str(texts).split("\n")]


def loss_texts(status: Status) -> list[str]:
    return [f"{name} {value:.4f}" for name, value in status.losses.items()]


def stat_texts(status: Status) -> list[str]:
    return [
        f"{name.replace('_', ' ')} {format_stat(value)}" for name, value in status.stats.items()
    ]


def members(statuses: Sequence[Status], width: int, max_lines: int) -> RenderableType:
    opponents = list(dict.fromkeys(name for status in statuses for name in status.wins))
    heads = ("score", *opponents, "best")
    phased = any(
        status.phase_progress and status.phase_progress.num_phases > 1 for status in statuses
    )
    named = ("phase",) if phased else ()
    table = Columns(("run", *named, *heads), numbers=heads, least=("best",), lines=False)
    names = short_names([status.run.name for status in statuses])
    for status, run in zip(statuses[:max_lines], names, strict=False):
        result = [status.wins.get(name) for name in opponents]
        table.add_row(
            run,
            *([status.phase_progress.name if status.phase_progress else "-"] if phased else []),
            number(status.score),
            *("-" if one is None else Text(shown_strength(one), color(one)) for one in result),
            f"{status.best:,}" if status.best >= 0 else "-",
        )
    return Group(table.fit(width)[0], *and_more(len(statuses) - max_lines))


def short_names(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them begin with."""
    texts = [name.split("-") for name in names]
    least = min(map(len, texts)) - 1
    same = next((at for at in range(least) if len({each[at] for each in texts}) > 1), least)
    return ["-".join(each[same:]) for each in texts]


def draw(
    statuses: Sequence[Status],
    machine: Machine,
    *,
    width: int,
    height: int = 50,
    over: bool = False,
) -> RenderableType:
    """Draw a run, or the members of a population. over: nothing will come any more."""
    status = statuses[0]
    phase = phase_texts(status.phase_progress) if len(statuses) == 1 else []
    if width < SHORT or height < LOW:
        max_lines = max(height - SHORT_LINES - bool(phase), 1)
        return short_form(statuses, width, max_lines, over=over)
    outer = min(width, WIDEST)
    inner = outer - 4
    parts = [head(status, inner)]
    parts += [flow([shorten_middle(one, inner) for one in phase], inner)] if phase else []
    parts += [Text()]
    lay_out = two_columns if outer >= TWO_COLUMNS else one_column
    speed = speed_lines(status, inner)
    space = height - FIXED_LINES - len(phase) - len(speed)
    parts += [*lay_out(statuses, machine, inner, max(space, 1)), *speed]
    if len(statuses) > 1:
        parts += [Text(), members(statuses, inner, max(space, 1))]
    elif space >= len(status.wins) + LOSS_LINES + bool(status.learning) + bool(status.stats):
        lines = [texts for texts in (stat_texts(status), learning_texts(status.learning)) if texts]
        parts += [Text(), *(flow(texts, inner) for texts in lines)]
        parts += [flow(loss_texts(status), inner, style="dim")]
    parts += [Text(), flow(foot(statuses, over=over), inner, style="bold")]
    return Panel(
        Group(*parts),
        title=Text(shorten_middle(f"sparring {status.game}", inner - 4), style="bold not dim"),
        title_align="left",
        subtitle=Text(shorten_middle(location(statuses), inner - 4), style="dim"),
        subtitle_align="left",
        width=outer,
        border_style="dim",
    )


def two_columns(
    statuses: Sequence[Status], machine: Machine, width: int, max_lines: int
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
        right = [strengths(status, right_width, max_lines), Text(), *right]
    left_side = Group(learned(statuses, left_width), Text(), machine_grid(status, machine))
    sides.add_row(left_side, Group(*right))
    return [sides]


def one_column(
    statuses: Sequence[Status], machine: Machine, width: int, max_lines: int
) -> list[RenderableType]:
    status = statuses[0]
    parts: list[RenderableType] = [learned(statuses, width), Text()]
    if len(statuses) == 1:
        parts += [strengths(status, width, max_lines), Text()]
    uses = [f"{label} {value}" for label, value in machine_info(status, machine)]
    return [*parts, flow(share_texts(status), width), flow(uses, width)]


def short_form(
    statuses: Sequence[Status], width: int, max_lines: int, *, over: bool
) -> RenderableType:
    status = statuses[0]
    total = f" of {status.total_updates:,}" if status.total_updates else ""
    rate = count(sum(one.decisions_per_s for one in statuses))
    parts: list[RenderableType] = [
        flow([shorten_middle(status.game, width), time_text(status)], width),
        progress_bar(status, width),
        flow([f"update {status.update:,}{total}", f"{rate} decisions/s"], width),
    ]
    if len(statuses) == 1 and status.phase_progress:
        texts = phase_texts(status.phase_progress)[:1]
        parts += [Text(shorten_middle(one, width)) for one in texts]
    if len(statuses) > 1:
        parts.append(members(statuses, width, max_lines))
    else:
        if not math.isnan(status.score):
            score = f"score {status.score:.2f}   "
            parts.append(Text(score) + spark(status, "score", min(SPARK, width - len(score))))
        parts.append(strengths(status, width, max_lines, narrow=True))
    return Group(*parts, flow(foot(statuses, over=over), width))


def head(status: Status, width: int) -> RenderableType:
    texts = time_text(status)
    return progress_bar(status, width - len(texts) - 3) + Text(f"   {texts}")


def time_text(status: Status) -> str:
    return f"{clock(status.seconds)} gone, {time_left(status)}"


def foot(statuses: Sequence[Status], *, over: bool) -> list[str]:
    status = statuses[0]
    known = len(statuses) == 1 and status.best >= 0
    best = f"best update {status.best:,}" if known else ""
    return [
        status.message,
        status.league,
        "" if over else next_evaluation(status),
        last_saved(status, over=over),
        best,
    ]


def location(statuses: Sequence[Status]) -> str:
    run = statuses[0].run
    return str(run) if len(statuses) == 1 else f"{len(statuses)} runs in {run.parent}"
