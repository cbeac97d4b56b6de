"""Command-line arguments: splits lists, and explains unknown options and invalid values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from typing import Any

from sparring.config.options import Option, number_kind, options_of
from sparring.config.ranges import READERS
from sparring.config.renamed import renamed
from sparring.config.synonyms import DEFAULT_ALGO, GAME, setting_named
from sparring.errors import closest

MIN_SIMILARITY = 0.75
"""Similarity from which on a mistyped option is taken for another one."""
UNRECOGNIZED = "Unrecognized options: "
"""How the parser's message begins where words are left over."""


def split_lists(args: list[str], config: Any) -> list[str]:
    """Write lists as the parser needs them: `--set a=1 b=2` as `--set a=1 --set b=2`.

    Lists that replace the default, such as --opponents, are merged at their first occurrence.
    """
    repeatable = {f"--{option.name}": option for option in options_of(config) if option.is_list}
    parts: list[list[str]] = []
    last: list[list[str]] = []  # lists of numbers, so that the game's name is not read as one
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
        values = [value] if equals else take_values(rest, option)
        if option.is_numeric:  # 256,256 as well as 256 256
            values = [one for word in values for one in word.split(",") if one]
        if option.appended:
            parts += [[name, one] for one in values] or [[name]]
        elif name in gathered:
            gathered[name] += values
        else:
            gathered[name] = [name, *values]
            (last if option.is_numeric else parts).append(gathered[name])
    return [word for part in (*parts, *last) for word in part]


def values_of(words: list[str], config: Any) -> dict[str, str]:
    """Return the typed text of every setting with one value, by its path: ppo.lr.

    Nothing is checked; the first word that belongs to no option is the game. Booleans are "True"
    or "False".
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
        elif option.is_list:
            take_values(rest, option)
        elif rest and not is_option(rest[0]):
            found[option.path] = rest.pop(0)
    return found


def take_values(rest: list[str], option: Option) -> list[str]:
    """Remove the values of an option from the words after it, and return them.

    Where other words may be a game, only key=value, numbers and the option's own words count after
    the first value.
    """
    strict = option.appended or option.is_numeric
    values: list[str] = []
    while rest and not is_option(rest[0]):
        known = "=" in rest[0] or is_number(rest[0]) or rest[0] in option.words
        if strict and values and not known:
            break
        values.append(rest.pop(0))
    return values


def is_option(word: str) -> bool:
    """Whether a word is an option and not a negative number."""
    return word.startswith("-") and not is_number(word)


def is_number(word: str) -> bool:
    """Whether a word is a number or a comma list of numbers."""
    try:
        return bool([float(one) for one in word.split(",")])
    except ValueError:
        return False


def game_first(args: list[str], config: Any) -> list[str]:
    """Accept `--game NAME` for NAME, if the game is the command's only positional argument."""
    if [option.name for option in options_of(config) if option.positional] != ["game"]:
        return args
    joined = [word.removeprefix("--game=") for word in args]
    return [word for word in joined if word != "--game"]


def unknown_option_message(args: Sequence[str], config: Any, command: str) -> str:
    """Return a message about the first unknown option and a suggestion, "" if all are known."""
    options = by_flag(config)
    first = [option for option in options_of(config) if option.positional]
    algo = next(
        (values[0] for name, values in pairs(args) if name == "--algo" and values), DEFAULT_ALGO
    )
    for name, _ in pairs(args):
        if name.removeprefix("--") in {option.name for option in first}:
            words = " ".join(option.metavar for option in first)
            return f"no option {name}; it is positional: sparring {command} {words}"
        if name not in options:
            return f"no option {name}{meant_option(name, options, algo, command)}"
    return ""


def invalid_value(args: Sequence[str], config: Any) -> str:
    """Return a message about the first missing or non-numeric value, "" if there is none."""
    options = by_flag(config)
    messages = (value_error(options[name], name, values) for name, values in pairs(args))
    return next(filter(None, messages), "")


def comma_error(why: str, args: Sequence[str], config: Any) -> str:
    """Return how to write a comma list, if words after its first one are why the parser failed."""
    options, extra = by_flag(config), set(why.removeprefix(UNRECOGNIZED).split(", "))
    for name, values in pairs(args):
        if "comma list" in options[name].help and values[1:] and extra >= set(values[1:]):
            return f"{name} takes a comma list: write {name} {','.join(values)}"
    return ""


def by_flag(config: Any) -> dict[str, Option]:
    return {flag: option for option in options_of(config) for flag in option.flags}


def pairs(args: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Return every option with the words after it, up to the next option."""
    for index, word in enumerate(args):
        if is_option(word) and word.startswith("--"):
            name, equals, value = word.partition("=")
            values = takewhile(lambda after: not is_option(after), args[index + 1 :])
            yield name.replace("_", "-"), [value] if equals else list(values)


def meant_option(name: str, options: dict[str, Option], algo: str, command: str) -> str:
    """Suggest an option, by names of other libraries or by similarity."""
    now = renamed(name.removeprefix("--").replace("-", "_").replace("no_", "", 1))
    if now:
        return f"; it is now --{now.replace('_', '-')}"
    setting = setting_named(name, algo)
    if setting == GAME and GAME not in {option.path for option in options.values()}:
        return f"; the game comes first: sparring {command} NAME"
    paths = {option.path: flag for flag, option in options.items() if "no-" not in flag}
    flag = paths.get(setting) or paths.get(setting.rpartition(".")[2])
    if not flag:  # similar to the whole name or to its last part
        ends = {flag.rpartition(".")[2].removeprefix("--"): flag for flag in options}
        end = closest(name.removeprefix("--"), ends, MIN_SIMILARITY)
        flag = closest(name, options, MIN_SIMILARITY) or ends.get(end, "")
    return f"; did you mean {flag}?" if flag else ""


def value_error(option: Option, name: str, values: Sequence[str]) -> str:
    """Return a message if the value is missing or not a number where one is needed, else ""."""
    kind = number_kind(option.kind)
    if not values and option.kind is not bool and not option.is_list:
        return f"{name} needs a value, {option.metavar}"
    if kind is None:
        return ""
    typed = values if option.is_list and not option.appended else values[:1]
    for one in chain.from_iterable(v.split(",") for v in typed) if option.is_list else typed:
        try:
            READERS[kind](one)
        except ValueError as error:
            as_list = "; separate several by blanks or commas" if option.is_list else ""
            return f"{name}: {error}{as_list}"
    return ""
