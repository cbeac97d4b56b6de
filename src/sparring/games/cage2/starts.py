"""Starts of CAGE-2: positions in which red already controls some hosts."""

from __future__ import annotations

from sparring.errors import ConfigError, suggestion
from sparring.games.cage2 import HOSTS
from sparring.games.rules import Rules
from sparring.games.starts import Start, saved_position
from sparring.games.state import new_state

START_FORMATS = "hosts:User1=user,Enterprise0=root"
"""Accepted names of starts, for error messages."""
PREFIX = "hosts:"
LEVELS = {"user": 1, "root": 2}


def read_starts(rules: Rules, word: str) -> list[Start] | None:
    """Return the start that `word` names, None if it names none of this game."""
    if not word.startswith(PREFIX):
        return None
    levels = [0] * len(HOSTS)
    for pair in word.removeprefix(PREFIX).split(","):
        host, equals, level = (part.strip() for part in pair.partition("="))
        if host not in HOSTS:
            raise ConfigError(f"{word!r}: no host {host!r}{suggestion(host, HOSTS)}")
        if not equals or level not in LEVELS:
            raise ConfigError(f"{word!r}: {pair!r} is not HOST=user or HOST=root")
        levels[HOSTS.index(host)] = LEVELS[level]
    state = new_state(rules)
    if error := state.set_up(levels):
        raise ConfigError(f"{word!r}: {error}")
    return [Start(saved_position(state), name=word)]
