"""Options that take several values, however they are typed: in one go, or once per value."""

from __future__ import annotations

from typing import Any

from sparring.config.options import Option, options_of


def one_per_value(args: list[str], config: Any) -> list[str]:
    """Write every list as the parser takes it: `--set a=1 b=2` as `--set a=1 --set b=2`.

    Lists that replace the usual one, such as those of --opponents, come together at their first
    place.
    """
    repeatable = lists_of(config)
    parts: list[list[str]] = []
    last: list[list[str]] = []  # numbers, so that the parser does not take a game for one
    gathered: dict[str, list[str]] = {}
    rest = list(args)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if name not in repeatable:
            parts.append([word])
            continue
        option = repeatable[name]
        values = [value] if equals else take_values(rest, pairs=option.appended or option.counts)
        if option.counts:  # 256,256 as well as 256 256
            values = [one for word in values for one in word.split(",") if one]
        if option.appended:
            parts += [[name, one] for one in values] or [[name]]
        elif name in gathered:
            gathered[name] += values
        else:
            gathered[name] = [name, *values]
            (last if option.counts else parts).append(gathered[name])
    return [word for part in (*parts, *last) for word in part]


def values_of(words: list[str], config: Any) -> dict[str, str]:
    """Return what is typed for every setting that takes one value, by its path: ppo.lr.

    Nothing is checked; what no option takes is the game. A switch is "True" or "False".
    """
    options = {flag: option for option in options_of(config) for flag in option.flags}
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        option = options.get(name.replace("_", "-"))
        if option is None:
            if not is_option(word):
                found.setdefault("game", word)
        elif option.kind is bool:
            found[option.path] = value or str(name.endswith(option.name))
        elif equals:
            found[option.path] = value
        elif option.several:
            take_values(rest, pairs=option.appended or option.counts)
        elif rest and not is_option(rest[0]):
            found[option.path] = rest.pop(0)
    return found


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
    """Whether a word is a number, or several with commas between."""
    try:
        return bool([float(one) for one in word.split(",")])
    except ValueError:
        return False


def lists_of(config: Any) -> dict[str, Option]:
    """The options of a command that take several values, as they are typed."""
    return {f"--{option.name}": option for option in options_of(config) if option.several}


def game_first(args: list[str], config: Any) -> list[str]:
    """Take `--game NAME` for NAME, where a command has the game as its one word without a name."""
    if [option.name for option in options_of(config) if option.positional] != ["game"]:
        return args
    joined = [word.removeprefix("--game=") for word in args]
    return [word for word in joined if word != "--game"]
