"""What is wrong with a command line, in words that say what to type instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from sparring.config.habits import FROM_FRESH, GAME, meant
from sparring.config.options import Option, number_kind, options_of
from sparring.config.ranges import READERS
from sparring.config.words import is_option

SURE = 0.75
"""How alike a mistyped option and the one that is meant are."""


def unknown_option(args: Sequence[str], config: Any, command: str) -> str:
    """Say which option does not exist and what may be meant, "" if all exist."""
    options = by_flag(config)
    first = [option for option in options_of(config) if option.positional]
    algo = next((value for name, value in pairs(args) if name == "--algo"), "") or FROM_FRESH
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
    wrong = (wrong_value(options[name], name, value) for name, value in pairs(args))
    return next(filter(None, wrong), "")


def by_flag(config: Any) -> dict[str, Option]:
    """Return the options of a command, by every form in which they are typed."""
    return {flag: option for option in options_of(config) for flag in option.flags}


def pairs(args: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Return every option with the word behind it, None where there is none."""
    for word, after in zip_longest(args, args[1:]):
        if is_option(word) and word.startswith("--"):
            name, equals, value = word.partition("=")
            behind = None if after is None or is_option(after) else after
            yield name.replace("_", "-"), value if equals else behind


def meant_option(name: str, options: dict[str, Option], algo: str, command: str) -> str:
    """Say which option somebody means, by the words of other libraries or by the letters."""
    setting = meant(name, algo)
    if setting == GAME and GAME not in {option.path for option in options.values()}:
        return f"; the game comes first: sparring {command} NAME"
    paths = {option.path: flag for flag, option in options.items() if "no-" not in flag}
    flag = paths.get(setting) or paths.get(setting.rpartition(".")[2])
    if not flag:  # by letters, of the whole name or of its last part
        ends = {flag.rpartition(".")[2].removeprefix("--"): flag for flag in options}
        (flag,) = difflib.get_close_matches(name, options, 1, SURE) or [""]
        (end,) = difflib.get_close_matches(name.removeprefix("--"), ends, 1, SURE) or [""]
        flag = flag or ends.get(end, "")
    return f"; did you mean {flag}?" if flag else ""


def wrong_value(option: Option, name: str, value: str | None) -> str:
    """Say what is wrong with the value of an option that takes a number, "" if nothing is."""
    kind = number_kind(option.kind)
    if value is None and option.kind is not bool and not option.several:
        return f"{name} needs a value, {option.metavar}"
    if kind is None or value is None:
        return ""
    for one in value.split(",") if option.several else [value]:
        try:
            READERS[kind](one)
        except ValueError as wrong:
            as_list = "; several have blanks or commas between" if option.several else ""
            return f"{name}: {wrong}{as_list}"
    return ""
