"""Games that somebody has played, to be learned from: recorded ones, and those of other programs.

A game's folder may have `demonstrations.py` with FILES, the endings of files that it reads, and
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
"""How recorded games end."""


@dataclass(frozen=True)
class Demonstration:
    """A game and what has to be known of it besides."""

    replay: Replay
    paid: Mapping[str, tuple[float, ...]] | None = None
    """By part of the reward what every seat is paid at the end, where the rules did not end the
    game but somebody did, as by resigning. None: nobody did, and what would come is unknown."""
    by_lot: int = 0
    """Steps at the beginning that lots decided: there is nothing to learn from those."""


def file_kinds(rules: Rules) -> tuple[str, ...]:
    """Return the endings of files with games that can be read."""
    module = game_module(rules.name, "demonstrations")
    own: tuple[str, ...] = tuple(module.FILES) if module else ()
    return (*own, JSON)


def read_demonstrations(rules: Rules, path: Path) -> Iterator[Demonstration]:
    """Yield the games of a file. What is wrong with one is said in a line that names the file."""
    if path.suffix.lower() == JSON:
        yield Demonstration(Replay.read(path))
        return
    module = game_module(rules.name, "demonstrations")
    if module is None or path.suffix.lower() not in module.FILES:
        known = ", ".join(file_kinds(rules))
        raise ConfigError(f"{path}: no kind of record that {rules.name} reads; there are {known}")
    yield from module.read_demonstrations(rules, path)
