"""Words of the form key=value, and a game's flags written in that way: num_players=6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparring.errors import ConfigError
from sparring.games.rules import UNIVERSAL_FLAGS, Rules


def read_pair(word: str, where: str) -> tuple[str, str]:
    """Return key and value of a word. An error names the setting that it was read for."""
    key, equals, value = word.partition("=")
    if not key or not equals:
        raise ConfigError(f"{where}: {word!r} is not key=value; give a name, = and a value")
    return key, value


def read_rules(game: str, pairs: Sequence[str]) -> Rules:
    """Return the game with the flags that were set."""
    fields = Rules(game).fields
    given: dict[str, object] = {}
    for pair in pairs:
        key, text = read_pair(pair, "set")
        if key in given:
            raise ConfigError(f"set: {key} was given twice; give it once")
        if key in UNIVERSAL_FLAGS:
            given[key] = read_switch(key, text)
        elif key in fields and fields[key].count > 1:
            given[key] = [value.strip() for value in text.split(",") if value.strip()]
        else:
            given[key] = text.strip()
    return Rules(game, given)


def latest(pairs: Sequence[str]) -> list[str]:
    """Leave out words that a later one replaces: a preset's flag that was set anew."""
    return list({read_pair(pair, "set")[0]: pair for pair in pairs}.values())


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
