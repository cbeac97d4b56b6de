"""Tables of options in Markdown, for the generated pages of the reference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import get_args

from sparring.config.options import Option, number_kind, shown_default
from sparring.config.ranges import NumberRange, WordChoice
from sparring.schedule import Schedule

KINDS = {int: "whole number", float: "number", str: "text", Schedule: "number or schedule"}
SPECIAL = re.compile(r"(?<!\\)([|<*\[])")
CODE = re.compile(r"(`[^`]*`)")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    heads = list(heads)
    yield line(heads)
    yield line(["---"] * len(heads))
    for row in rows:
        yield line(row)


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def text(words: str) -> str:
    """Return a plain text so that Markdown takes it literally, except for code in backticks."""
    parts = CODE.split(words)
    return "".join(part if part[:1] == "`" else SPECIAL.sub(r"\\\1", part) for part in parts)


def flag(option: Option) -> str:
    """Return an option as it is typed first, with the form that turns it off if it starts on."""
    if option.positional:
        return f"`{option.metavar}`"
    shown = option.flags[-1:] if option.default is True else option.flags[:1]
    return f"`{shown[0]}`"


def values(option: Option) -> str:
    """Return what an option takes: words, or a kind of number with its range."""
    if option.kind is bool:
        return "switch"
    limit = option.limit
    if isinstance(limit, WordChoice):
        more = [f"`{limit.placeholder}`"] if limit.placeholder else []
        return ", ".join([*(f"`{word}`" for word in option.words), *more])
    kind = get_args(option.kind)[0] if option.is_list else option.kind
    shown = KINDS.get(kind, "text")
    if option.is_list:
        shown = f"{shown}s" if number_kind(option.kind) else "words"
    if isinstance(limit, NumberRange):
        shown += f", {limit.lower if limit.unbounded else limit}"
    return shown


def default(option: Option) -> str:
    """Return the default of an option as it is typed, "" if it has none."""
    shown = shown_default(option)
    return f"`{shown}`" if shown else ""
