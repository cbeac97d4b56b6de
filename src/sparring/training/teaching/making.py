"""From files and bots to decisions, on all cores: processes play games again, this one collects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparring.errors import ConfigError
from sparring.games.lessons import read_lessons
from sparring.games.rules import Rules
from sparring.learn.taught import Decisions, joined
from sparring.machine import free_memory, show_size
from sparring.training.teaching.bots import bot_game
from sparring.training.teaching.positions import Pay, decisions_of
from sparring.training.teaching.sources import Sources

SHARE = 0.5
"""Of the memory that is free, so much may be taken."""
TASK = 32
"""Games or files of a task."""
Tell = Callable[[int, int, int], None]
"""Is told how many tasks are done and how many there are, and how many positions that made."""


@dataclass(frozen=True)
class Task:
    """Games that are made into decisions at once."""

    files: tuple[Path, ...] = ()
    bot: str = ""
    seed: int = 0
    numbers: range = range(0)


def tasks_of(sources: Sources, games: int, seed: int) -> list[Task]:
    """Share out the work; what comes of it does not depend on who does it.

    games: that bots play.
    """
    files = sources.files
    tasks = [Task(files[at : at + TASK]) for at in range(0, len(files), TASK)]
    for index, bot in enumerate(sources.bots):
        numbers = range(index, games, len(sources.bots))
        tasks += [
            Task(bot=bot, seed=seed, numbers=numbers[at : at + TASK])
            for at in range(0, len(numbers), TASK)
        ]
    return tasks


def done(rules: Rules, pay: Pay, task: Task) -> Decisions | None:
    """Make the decisions of a task; games are numbered within it. None: there are none."""
    parts: list[Decisions] = []
    for lesson in lessons(rules, task):
        if lesson.replay.actions:
            parts.append(decisions_of(rules, lesson, pay, len(parts)))
    return joined(parts) if parts else None


def lessons(rules: Rules, task: Task) -> Iterator[Any]:
    """Yield the games of a task."""
    for path in task.files:
        yield from read_lessons(rules, path)
    for number in task.numbers:
        yield bot_game(rules, task.bot, task.seed, number)


def make_decisions(
    rules: Rules, pay: Pay, tasks: Sequence[Task], *, threads: int = 1, tell: Tell | None = None
) -> Decisions:
    """Return the decisions of all tasks, in their order."""
    parts: list[Decisions] = []
    games = rows = size = 0
    room = SHARE * free_memory()
    for number, part in enumerate(each_done(rules, pay, tasks, threads), 1):
        if part is not None and len(part):
            part.game[:] += games
            games = int(part.game[-1]) + 1
            rows, size = rows + len(part), size + part.size
            parts.append(part)
        if size > room:
            raise ConfigError(
                f"teach: {rows:,} positions of {number} of {len(tasks)} parts need "
                f"{show_size(size)}, and {show_size(room)} of memory may be taken; name fewer "
                "files, or lower cloning.games"
            )
        if tell:
            tell(number, len(tasks), rows)
    if not rows:
        raise ConfigError("teach: there is not a single decision in these games")
    return joined(parts)


def each_done(
    rules: Rules, pay: Pay, tasks: Sequence[Task], threads: int
) -> Iterator[Decisions | None]:
    """Yield what comes of every task, in their order."""
    for task in tasks:
        yield done(rules, pay, task)
