"""Functions that make players: called anew whenever a game begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparring.errors import RAISED, ConfigError
from sparring.factories import in_a_line
from sparring.games.rules import Rules
from sparring.league.players import Maker, Seated, is_maker, made_by, name_of
from sparring.league.seating import sit


@dataclass(frozen=True)
class Place:
    """A game of a run, as makers are told of it."""

    rules: Rules
    index: int
    """Its number in the run."""


class Made:
    """Whoever a maker seats, one game after the other."""

    memory_bytes = 0

    def __init__(self, rules: Rules, maker: Maker) -> None:
        self.rules, self.maker, self.name = rules, maker, name_of(maker)
        self._last: tuple[Any, Seated] | None = None
        """What was returned last, and how it sits: one object in many games is asked at once."""

    def for_game(self, index: int) -> Seated:
        """Make the player of a game that begins."""
        try:
            made = made_by(self.maker, self.rules.seats - 1, Place(self.rules, index))
        except ConfigError:
            raise
        except RAISED as wrong:
            raise ConfigError(f"opponents: {self.name} failed: {in_a_line(wrong)}") from wrong
        if self._last and made is self._last[0]:
            return self._last[1]
        if isinstance(made, list | tuple) or (not isinstance(made, str) and is_maker(made)):
            raise ConfigError(
                f"opponents: {self.name} returned {type(made).__name__}; return one player, which "
                "sits in every seat that the table gives it"
            )
        player = sit(made, self.rules)
        if isinstance(player, str):
            raise ConfigError(
                f"opponents: {self.name} returned the bot {player}; name bots beside it: "
                f"opponents=[{self.name}, {player!r}]"
            )
        if player.memory_bytes:
            raise ConfigError(
                f"opponents: {self.name} returned {player.name}, which remembers "
                f"{player.memory_bytes} bytes; name it as an opponent itself"
            )
        self._last = made, player
        return player
