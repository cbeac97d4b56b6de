"""Demonstrations for imitation: recorded games, and game records of other programs.

A game's folder may have `demonstrations.py` with FILES, the suffixes of files that it reads, and
`read_demonstrations(rules, path)`, which yields the games of such a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.recorded import Replay
from sparring.games.rules import Rules

JSON = ".json"
"""Suffix of recorded games."""


@dataclass(frozen=True)
class Demonstration:
    """A recorded game with extra facts for imitation."""

    replay: Replay
    paid: Mapping[str, tuple[float, ...]] | None = None
    """Final rewards of all seats by reward part, if a player ended the game, as by resigning.
    None: the rules ended it, or its result is unknown."""
    by_lot: int = 0
    """Number of random steps at the beginning, which are not imitated."""


def file_kinds(rules: Rules) -> tuple[str, ...]:
    """Return the suffixes of files with games that can be read."""
    module = game_module(rules.name, "demonstrations")
    suffixes: tuple[str, ...] = tuple(module.FILES) if module else ()
    return (*suffixes, JSON)


def read_demonstrations(rules: Rules, path: Path) -> Iterator[Demonstration]:
    """Yield the games of a file; errors name the file."""
    if path.suffix.lower() == JSON:
        yield Demonstration(Replay.read(path))
        return
    module = game_module(rules.name, "demonstrations")
    if module is None or path.suffix.lower() not in module.FILES:
        known = ", ".join(file_kinds(rules))
        raise ConfigError(f"{path}: {rules.name} does not read such files; it reads {known}")
    yield from module.read_demonstrations(rules, path)
