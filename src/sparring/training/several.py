"""Several runs from Python: seeds, varied settings or a population, and their comparison."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from sparring.config import TrainConfig
from sparring.draw.charts.axes import label
from sparring.errors import ConfigError, SparringError, warn
from sparring.league.statistics import Estimate
from sparring.learn.learner import DivergedError
from sparring.pools.protocol import GamePool
from sparring.training.agent import Agent
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of
from sparring.training.records.comparison import EACH_RUN, Comparison, compare
from sparring.training.records.comparison_report import notes
from sparring.training.records.run import check_name

GAP = "  "
TEXTS = 2
"""Number of text columns at the left of a table; the others are numbers."""


class Agents(Sequence[Agent]):
    """Agents of several runs, in the order in which they started."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self._agents = tuple(agents)

    @overload
    def __getitem__(self, index: int) -> Agent: ...

    @overload
    def __getitem__(self, index: slice) -> Agents: ...

    def __getitem__(self, index: int | slice) -> Agent | Agents:
        found = self._agents[index]
        return found if isinstance(found, Agent) else Agents(found)

    def __len__(self) -> int:
        return len(self._agents)

    def __repr__(self) -> str:
        try:
            told = self.report()
        except SparringError as error:
            told = f"not compared: {error}"
        return "\n".join([*map(repr, self), told])

    @property
    def paths(self) -> list[Path]:
        return [agent.run for agent in self]

    @cached_property
    def comparison(self) -> Comparison:
        """Groups of runs by the settings in which they differ, see `compare`."""
        return self.compare()

    def compare(self, by: str = "", *, seed: int = 0) -> Comparison:
        """Group runs that differ only in the seed, or by settings such as "ppo.lr".

        The result has `groups`, `strength(group)` with a 95 % interval, `pairs()` and
        `best(group)`, like `sparring compare`. by: "run" makes a group of every run.
        """
        return compare(self.paths, by, seed=seed)

    @property
    def best(self) -> Agent:
        """The agent of the strongest run."""
        found = self.compare(EACH_RUN)
        strongest = found.strongest.entries[0].run.path
        return next(agent for agent in self if agent.run == strongest)

    def report(self, by: str = "") -> str:
        """Return the tables and notes of `sparring compare` as text."""
        found = self.compare(by) if by else self.comparison
        form = "number" if found.rules.seats == 1 else "percent"
        heads = ("group", "settings", "runs", "strength (IQM)", "95 %")
        rows = [
            (group.name, group.label, str(len(group.entries)), *cells(found.strength(group), form))
            for group in found.groups
        ]
        lines = table([heads, *rows])
        pairs = [
            (f"{one.name} over {two.name}", "", *cells(p, "percent"))
            for one, two, p in found.pairs()
        ]
        if pairs:
            lines += table([("pair", "", "stronger", "95 %"), *pairs])
        return "\n".join(lines + notes(found))


def cells(found: Estimate, form: Any) -> tuple[str, str]:
    if found.low is None or found.high is None:
        return label(found.value, form), "-"
    return label(found.value, form), f"{label(found.low, form)} .. {label(found.high, form)}"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns: texts to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        padded = [
            cell.ljust(width) if at < TEXTS else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ]
        lines.append(GAP.join(padded).rstrip())
    return lines


def train_several(
    config: TrainConfig,
    train_members: Callable[..., list[Agent]],
    *,
    at_once: bool,
    pool_for: Callable[[TrainConfig], GamePool] | None,
    quiet: bool,
    **options: Any,
) -> Agents:
    """Train all runs of a configuration: at once, or one after the other.

    All settings are checked before the first run starts. A run that diverges is left out with a
    warning; a signal ends the series.
    train_members: trains runs together. pool_for: makes a pool of an environment object.
    """
    members = members_of(config)
    for member in members:
        check_name(Path(member.runs), member.name)
    if at_once:
        pool = pool_for(config) if pool_for else None
        return Agents(train_members(members, quiet=quiet, pool=pool, **options))
    for member in members if pool_for is None else ():
        resolve([member], opponents=options.get("opponents", ()), played=False)
    return Agents(list(one_by_one(members, train_members, pool_for, quiet=quiet, **options)))


def one_by_one(
    members: Sequence[TrainConfig],
    train_members: Callable[..., list[Agent]],
    pool_for: Callable[[TrainConfig], GamePool] | None,
    *,
    quiet: bool,
    **options: Any,
) -> Iterator[Agent]:
    failed = []
    for number, member in enumerate(members, start=1):
        if not quiet:
            print(f"run {number} of {len(members)}: seed {member.seed}", file=sys.stderr)
        try:
            pool = pool_for(member) if pool_for else None
            (agent,) = train_members([member], quiet=quiet, pool=pool, **options)
        except DivergedError as error:
            failed.append(number)
            warn(f"run {number} failed: {error}")
            if len(failed) == len(members):
                raise
            continue
        yield agent
        if agent.ended.startswith("SIG"):
            if number < len(members):
                warn(f"{agent.ended}: runs {number + 1} to {len(members)} were not started")
            return


def check_one_kind(config: TrainConfig) -> None:
    if config.seeds > 1 and config.population > 1:
        raise ConfigError(
            f"seeds {config.seeds} and population {config.population} both say how many runs "
            "there are; give one of them (a population is trained at once on a GPU)"
        )
