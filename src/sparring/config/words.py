"""The words of a command line: lists however they are typed, and what a mistake means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from typing import Any

from sparring.config.habits import FROM_FRESH, GAME, meant
from sparring.config.options import Option, number_kind, options_of
from sparring.config.ranges import READERS
from sparring.config.renamed import renamed
from sparring.errors import closest

SURE = 0.75
"""How alike a mistyped option and the one that is meant are."""


def one_per_value(args: list[str], config: Any) -> list[str]:
    """Write every list as the parser takes it: `--set a=1 b=2` as `--set a=1 --set b=2`.

    Lists that replace the usual one, such as those of --opponents, come together at their first
    place.
    """
    repeatable = {f"--{option.name}": option for option in options_of(config) if option.several}
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
    options = by_flag(config)
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


def game_first(args: list[str], config: Any) -> list[str]:
    """Take `--game NAME` for NAME, where a command has the game as its one word without a name."""
    if [option.name for option in options_of(config) if option.positional] != ["game"]:
        return args
    joined = [word.removeprefix("--game=") for word in args]
    return [word for word in joined if word != "--game"]


def unknown_option(args: Sequence[str], config: Any, command: str) -> str:
    """Say which option does not exist and what may be meant, "" if all exist."""
    options = by_flag(config)
    first = [option for option in options_of(config) if option.positional]
    algo = next(
        (values[0] for name, values in pairs(args) if name == "--algo" and values), FROM_FRESH
    )
    for name, _ in pairs(args):
        if name.removeprefix("--") in {option.name for option in first}:
            words = " ".join(option.metavar for option in first)
            return f"no option {name}; it has no name: sparring {command} {words}"
        if name not in options:
            return f"no option {name}{meant_option(name, options, algo, command)}"
    return ""


def unfit_value(args: Sequence[str], config: Any) -> str:
    """Say which option has no value, or one that is no number, "" if none is found."""
    options = by_flag(config)
    wrong = (wrong_value(options[name], name, values) for name, values in pairs(args))
    return next(filter(None, wrong), "")


def by_flag(config: Any) -> dict[str, Option]:
    return {flag: option for option in options_of(config) for flag in option.flags}


def pairs(args: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Return every option with the words behind it, up to the next one."""
    for at, word in enumerate(args):
        if is_option(word) and word.startswith("--"):
            name, equals, value = word.partition("=")
            behind = takewhile(lambda after: not is_option(after), args[at + 1 :])
            yield name.replace("_", "-"), [value] if equals else list(behind)


def meant_option(name: str, options: dict[str, Option], algo: str, command: str) -> str:
    """Say which option somebody means, by the words of other libraries or by the letters."""
    now = renamed(name.removeprefix("--").replace("-", "_").replace("no_", "", 1))
    if now:
        return f"; it is now --{now.replace('_', '-')}"
    setting = meant(name, algo)
    if setting == GAME and GAME not in {option.path for option in options.values()}:
        return f"; the game comes first: sparring {command} NAME"
    paths = {option.path: flag for flag, option in options.items() if "no-" not in flag}
    flag = paths.get(setting) or paths.get(setting.rpartition(".")[2])
    if not flag:  # by letters, of the whole name or of its last part
        ends = {flag.rpartition(".")[2].removeprefix("--"): flag for flag in options}
        end = closest(name.removeprefix("--"), ends, SURE)
        flag = closest(name, options, SURE) or ends.get(end, "")
    return f"; did you mean {flag}?" if flag else ""


def wrong_value(option: Option, name: str, values: Sequence[str]) -> str:
    """Say what is wrong with the value of an option that takes a number, "" if nothing is."""
    kind = number_kind(option.kind)
    if not values and option.kind is not bool and not option.several:
        return f"{name} needs a value, {option.metavar}"
    if kind is None:
        return ""
    own = values if option.several and not option.appended else values[:1]
    for one in chain.from_iterable(v.split(",") for v in own) if option.several else own:
        try:
            READERS[kind](one)
        except ValueError as wrong:
            as_list = "; several have blanks or commas between" if option.several else ""
            return f"{name}: {wrong}{as_list}"
    return ""
