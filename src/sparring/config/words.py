"""Options that take several values, however they are typed: in one go, or once per value."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, get_origin, get_type_hints

from tyro.conf import UseAppendAction

from sparring.config.ranges import kinds_of
from sparring.config.runs import TrainConfig


def one_per_value(args: list[str], config: Any) -> list[str]:
    """Write every list as the parser takes it: `--set a=1 b=2` as `--set a=1 --set b=2`.

    Lists that replace the usual one, such as those of --opponents, come together at their first
    place.
    """
    repeatable = lists_of(config)
    parts: list[list[str]] = []
    gathered: dict[str, list[str]] = {}
    rest = list(args)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if name not in repeatable:
            parts.append([word])
            continue
        values = [value] if equals else take_values(rest, pairs=repeatable[name])
        if repeatable[name]:
            parts += [[name, one] for one in values] or [[name]]
        elif name in gathered:
            gathered[name] += values
        else:
            gathered[name] = [name, *values]
            parts.append(gathered[name])
    return [word for part in parts for word in part]


def take_values(rest: list[str], *, pairs: bool) -> list[str]:
    """Take the values of an option away from the words behind it.

    pairs: after the first one, only key=value and numbers are; other words may be a game's name.
    """
    values: list[str] = []
    while rest and not is_option(rest[0]):
        if pairs and values and "=" not in rest[0] and not is_number(rest[0]):
            break
        values.append(rest.pop(0))
    return values


def is_option(word: str) -> bool:
    """Whether a word is an option and no number below zero."""
    return word.startswith("-") and not is_number(word)


def is_number(word: str) -> bool:
    """Whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def lists_of(config: Any, prefix: str = "--") -> dict[str, bool]:
    """The options of a command that take several values; True: one at a time."""
    found: dict[str, bool] = {}
    hints = get_type_hints(config, include_extras=True)
    for name, (kind, _) in kinds_of(config).items():
        option = f"{prefix}{name.replace('_', '-')}"
        if is_dataclass(kind):
            found |= lists_of(kind, f"{option}.")
        elif get_origin(kind) is tuple:
            marked = UseAppendAction in getattr(hints[name], "__metadata__", ())
            found[option] = marked or (config is not TrainConfig and prefix == "--")
    return found
