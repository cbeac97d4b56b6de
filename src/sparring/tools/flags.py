"""Game flags on the command line: --set key=value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparring.errors import ConfigError
from sparring.games import Rules
from sparring.games.rules import UNIVERSAL_FLAGS


def read_rules(game: str, pairs: Sequence[str]) -> Rules:
    """Return the game with the flags that were set."""
    fields = Rules(game).fields
    given: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {pair!r} is not key=value; write it as num_players=6")
        if key in given:
            raise ConfigError(f"--set {key} was given twice; give it once")
        if key in UNIVERSAL_FLAGS:
            given[key] = read_switch(key, text)
        elif key in fields and fields[key].count > 1:
            given[key] = [value.strip() for value in text.split(",") if value.strip()]
        else:
            given[key] = text.strip()
    return Rules(game, given)


def read_switch(key: str, text: str) -> int:
    """Return a flag that is on or off."""
    if text.strip() not in ("0", "1"):
        raise ConfigError(f"{key}={text} must be 0 or 1")
    return int(text)


def changed_flags(rules: Rules) -> dict[str, object]:
    """Return the flags that differ from the game's defaults."""
    usual = Rules(rules.name).config
    return {key: value for key, value in rules.config.items() if value != usual[key]}


def as_typed(flags: Mapping[str, object]) -> list[str]:
    """Return flags as they are written after --set; a list's closing zeros need not be."""
    typed = []
    for key, value in flags.items():
        if isinstance(value, list):
            end = max((at + 1 for at, item in enumerate(value) if item), default=1)
            typed.append(f"{key}={','.join(map(str, value[:end]))}")
        else:
            typed.append(f"{key}={value}")
    return typed


def next_command(rules: Rules, path: object) -> str:
    """Return how to meet a trained agent: in the terminal, or in a film where that is no use."""
    if rules.box or rules.rows > 1:
        return f"sparring render {path} --out game.gif"
    return f"sparring play {path}"
