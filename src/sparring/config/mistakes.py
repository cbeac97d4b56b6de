"""What is wrong with a command line, in words that say what to type instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from typing import Any

from sparring.config.habits import FROM_FRESH, GAME, meant
from sparring.config.options import Option, number_kind, options_of
from sparring.config.ranges import READERS
from sparring.config.words import is_option
from sparring.errors import closest

SURE = 0.75
"""How alike a mistyped option and the one that is meant are."""


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
    """Return the options of a command, by every form in which they are typed."""
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
