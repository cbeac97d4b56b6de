"""The parts of the panel: what was learned, how strong it is, where time and memory go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sparring.draw.columns import Columns
from sparring.draw.marks import bar, shortened, sparkline
from sparring.games.stats import written
from sparring.training.display.lines import (
    count,
    interval,
    is_alone,
    shown_strength,
    size,
    weights,
)
from sparring.training.status import Status

GAP = 2
LABEL, VALUE, NAME, SPARK, PHASE = 11, 9, 14, 16, 20
"""Cells for labels, their numbers, opponents, sparklines and bars of phases."""


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
    """Return a bar and the share of the way."""
    gone = status.shown_progress
    share = f" {gone:4.0%}"
    return Text.assemble(bar(gone, width - len(share), style="cyan"), share)


def number(value: float) -> str:
    """Return a mean, or that there is none yet."""
    return "-" if math.isnan(value) else f"{value:.2f}" if abs(value) < 1000 else count(value)


def spark(status: Status, name: str, width: int, *, parity: float = 1.0) -> Text:
    """Return how a series went; shares go from 0 to twice what an equal would win, or higher."""
    trail = status.history.get(name)
    values = trail.values() if trail else []
    if parity == 1 or not values:
        return Text(sparkline(values, width), style="cyan")
    return Text(sparkline(values, width, low=0.0, high=max(2 * parity, *values)), style="cyan")


def learned(statuses: Sequence[Status], width: int) -> Table:
    """Return what was played and learned so far, by all members."""
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
        room = min(2 * SPARK, width - LABEL - VALUE - 3 * GAP)
        grid.add_row("score", number(status.score), spark(status, "score", room))
        grid.add_row("game length", number(status.length), spark(status, "length", room))
    return grid


def colour(found: Mapping[str, Any]) -> str:
    """Return green or red where a result differs from an equal's beyond chance."""
    if is_alone(found):
        return "bold"
    if found["low"] > found["parity"]:
        return "green"
    return "red" if found["high"] < found["parity"] else "yellow"


def strengths(status: Status, width: int, most: int, *, narrow: bool = False) -> RenderableType:
    """Return the last evaluation against so many opponents, with a tick at what equals win."""
    if not status.wins:
        return Text("no evaluation yet", style="dim")
    label = min(max(map(len, status.wins)), 13 if narrow else NAME)
    alone = any(map(is_alone, status.wins.values()))
    told = max(len(shown_strength(found)) for found in status.wins.values())
    spread = 0 if narrow else max(len(interval(found)) for found in status.wins.values())
    room = width - sum(size + GAP for size in (label, told, spread) if size)
    trail = 0 if narrow else min(SPARK, room if alone else room * 2 // 5) - GAP
    grid = grid_of(label)
    for name, found in list(status.wins.items())[:most]:
        cells: list[RenderableType] = [Text(shortened(name, label))]
        if not alone:
            most = room - GAP - (trail + GAP if trail > 0 else 0)
            drawn = bar(found["win"], min(most, 24), tick=found["parity"], style=colour(found))
            cells.append(drawn)
        cells.append(Text(shown_strength(found), style=colour(found)))
        if spread:
            cells.append(Text(interval(found), style="dim"))
        if trail > 0:
            cells.append(spark(status, f"eval/{name}", trail, parity=found["parity"]))
        grid.add_row(*cells)
    parts = [] if narrow else [flow(strengths_title(status, alone), width, style="dim")]
    return Group(*parts, grid, *and_more(len(status.wins) - most))


def strengths_title(status: Status, alone: bool) -> list[str]:
    """Return what the numbers below are."""
    when = f" of {weights(status)}" if status.evaluated >= 0 else ""
    if alone:
        return [f"score{when}"]
    equal = next(iter(status.wins.values()))["parity"]
    return [f"win share{when}", f"┼ an equal: {equal:.3f}"]


def and_more(rest: int) -> list[Text]:
    """Return a line about those for whom there is no room."""
    return [Text(f"and {rest} more", style="dim")] if rest > 0 else []


def phases(status: Status) -> RenderableType:
    """Return where the time goes, always in the same order."""
    grid = grid_of(LABEL, PHASE)
    for name, share in status.phases.items():
        label = Text(shortened(name, LABEL), style="dim")
        grid.add_row(label, bar(share, PHASE, style="blue"), f"{share:4.0%}")
    return Group(Text("where the time goes", style="dim"), grid)


def phase_words(status: Status) -> list[str]:
    """Return where the time goes, in words."""
    return [f"{name} {share:3.0%}" for name, share in status.phases.items()]


def machine_facts(status: Status, machine: Machine) -> list[tuple[str, str]]:
    """Return what the run uses of the machine."""
    told = []
    if not math.isnan(status.cpu_cores):
        told.append(("CPU", f"{status.cpu_cores:.1f} of {machine.cores} cores"))
    if machine.memory is not None:
        told.append(("memory", size(machine.memory)))
    if not math.isnan(status.gpu_share):
        told.append(("GPU", f"{status.gpu_share:.0%}"))
    if machine.gpu_memory is not None:
        used, there = machine.gpu_memory
        told.append(("GPU memory", f"{size(used)} of {size(there)}"))
    return told


def machine_grid(status: Status, machine: Machine) -> Table:
    """Return what the run uses of the machine, a line each."""
    grid = grid_of(LABEL)
    for label, value in machine_facts(status, machine):
        grid.add_row(Text(label, style="dim"), value)
    return grid


def speed_lines(status: Status, width: int) -> list[Text]:
    """Return how the run stands to what this machine can do; one line where there is room."""
    if status.reached is None:
        return []
    line = status.reached.line
    if len(line) <= width:
        return [Text(line)]
    told = flow([shortened(words, width) for words in status.reached.words], width)
    return [Text(one) for one in str(told).split("\n")]


def loss_words(status: Status) -> list[str]:
    """Return what the learner says about itself."""
    return [f"{name} {value:.4f}" for name, value in status.losses.items()]


def stat_words(status: Status) -> list[str]:
    """Return how the learner plays."""
    return [f"{name.replace('_', ' ')} {written(value)}" for name, value in status.stats.items()]


def members(statuses: Sequence[Status], width: int, most: int) -> RenderableType:
    """Return one line per member of a population, so many at most."""
    opponents = list(dict.fromkeys(name for status in statuses for name in status.wins))
    heads = ("score", *opponents, "best")
    phased = any(status.standing and status.standing.phases > 1 for status in statuses)
    named = ("phase",) if phased else ()
    table = Columns(("run", *named, *heads), numbers=heads, least=("best",), lines=False)
    names = short_names([status.run.name for status in statuses])
    for status, run in zip(statuses[:most], names, strict=False):
        found = [status.wins.get(name) for name in opponents]
        table.add_row(
            run,
            *([status.standing.name if status.standing else "-"] if phased else []),
            number(status.score),
            *("-" if one is None else Text(shown_strength(one), colour(one)) for one in found),
            f"{status.best:,}" if status.best >= 0 else "-",
        )
    return Group(table.fit(width)[0], *and_more(len(statuses) - most))


def short_names(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them begin with."""
    words = [name.split("-") for name in names]
    least = min(map(len, words)) - 1
    same = next((at for at in range(least) if len({each[at] for each in words}) > 1), least)
    return ["-".join(each[same:]) for each in words]
