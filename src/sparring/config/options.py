"""The options of a command as a table: help, shell completion and hints are made from it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache, reduce
from types import UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from tyro.conf import Positional, Suppress, UseAppendAction

from sparring.config.ranges import Choice, Range, kinds_of
from sparring.config.runs import TrainConfig
from sparring.schedule import Schedule

METAVARS = {int: "INT", float: "FLOAT", str: "STR"}


@dataclass(frozen=True)
class Option:
    """One option: how it is typed, and what it may be."""

    path: str
    """Its place in the configuration: ppo.lr."""
    name: str
    """As it is typed, without dashes in front: ppo.lr, imitate-minutes."""
    kind: Any
    limit: Range | Choice | None
    help: str
    default: Any
    """MISSING where it has to be given."""
    metavar: str
    positional: bool = False
    paired: bool = True
    """Of a switch: both --name and --no-name exist, not only the one that changes it."""
    appended: bool = False
    """Each value stands behind an option of its own."""

    @property
    def section(self) -> str:
        """The table of settings that it belongs to, "" for none."""
        return self.path.rpartition(".")[0]

    @property
    def flags(self) -> tuple[str, ...]:
        """Every form in which it is typed."""
        if self.positional:
            return ()
        if self.kind is not bool:
            return (f"--{self.name}",)
        table, dot, key = self.name.rpartition(".")
        on, off = f"--{self.name}", f"--{table}{dot}no-{key}"
        return (on, off) if self.paired else (off if self.default is True else on,)

    @property
    def several(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def counts(self) -> bool:
        return number_kind(self.kind) is not None

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it may be, where that is a choice."""
        return tuple(filter(None, self.limit.words)) if isinstance(self.limit, Choice) else ()


def options_of(config: Any, default: Any = None) -> list[Option]:
    """Return all options of a command. default: a configuration whose values are shown."""
    table = table_of(config)
    if default is None:
        return [*table]
    values = (reduce(getattr, option.path.split("."), default) for option in table)
    return [replace(option, default=value) for option, value in zip(table, values, strict=True)]


def paths_of(config: Any) -> list[str]:
    """Return the names of all settings of a command, as ppo.lr."""
    return [option.path for option in table_of(config)]


@cache
def table_of(config: Any, prefix: str = "", *, whole: bool = False) -> tuple[Option, ...]:
    """Return the options of a configuration and of the tables in it. whole: both of a switch."""
    whole = whole or config is TrainConfig
    hints = get_type_hints(config, include_extras=True)
    texts = help_of(config)
    found: list[Option] = []
    for field in fields(config):
        kind, limit = kinds_of(config)[field.name]
        marks = getattr(hints[field.name], "__metadata__", ())
        if isinstance(kind, type) and is_dataclass(kind):
            found += table_of(kind, f"{prefix}{field.name}.", whole=whole)
        elif Suppress not in marks:
            either = kind == bool | None
            kind = plain_kind(kind)
            found.append(
                Option(
                    path=f"{prefix}{field.name}",
                    name=f"{prefix}{typed_name(field, marks)}".replace("_", "-"),
                    kind=kind,
                    limit=limit,
                    help=texts.get(field.name, ""),
                    default=field.default,
                    metavar="True|False" if either else metavar_of(field, kind, marks),
                    positional=Positional in marks,
                    paired=whole,
                    appended=UseAppendAction in marks or not whole,
                )
            )
    return tuple(found)


def plain_kind(kind: Any) -> Any:
    """The type of a value that is typed: of `int | None` int, of `bool | None` a word."""
    if not isinstance(kind, UnionType):
        return kind
    one = next(one for one in get_args(kind) if one is not type(None))
    return str if one is bool else one


def number_kind(kind: Any) -> type | None:
    """int or float, of a number or of a list of them; None of anything else."""
    one = get_args(kind)[0] if get_origin(kind) is tuple else kind
    return one if one in (int, float) else None


def typed_name(field: Field[Any], marks: tuple[Any, ...]) -> str:
    """The last part of an option's name, which may be another than the field's."""
    names = [getattr(mark, "name", None) for mark in marks]
    return next((name for name in names if isinstance(name, str)), field.name)


def metavar_of(field: Field[Any], kind: Any, marks: tuple[Any, ...]) -> str:
    """What stands for a value in help: INT, cpu|cuda|auto; "" for a switch."""
    if Positional in marks:
        return field.name.upper()
    given = [getattr(mark, "metavar", None) for mark in marks]
    named = next((metavar for metavar in given if metavar), "")
    if named or kind is bool:
        return named
    if kind is Schedule:
        return "NUMBER|SCHEDULE"
    one = get_args(kind)[0] if get_origin(kind) is tuple else kind
    return METAVARS.get(one, "VALUE")


def shown_default(option: Option) -> str:
    """The default of an option as it is typed; "" for none."""
    value = option.default
    if value is MISSING or value is None:
        return ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return {True: "on", False: "off"}.get(value, str(value)) if option.kind is bool else str(value)


@cache
def help_of(kind: Hashable) -> Mapping[str, str]:
    """Return the help text of every field of a configuration, without line breaks."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cast(type, kind)))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def all_help(config: Any, prefix: str = "") -> dict[str, str]:
    """Return the help texts of a configuration and of those inside it, by dotted names."""
    found: dict[str, str] = {}
    kind: type = type(config)
    texts = help_of(kind)
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            found |= all_help(value, f"{prefix}{field.name}.")
        else:
            found[f"{prefix}{field.name}"] = texts.get(field.name, "")
    return found


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted names."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def joined(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Put tables of settings over those that are common; flags of the game add up."""
    both = dict(common)
    for key, value in own.items():
        before = both.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            both[key] = joined(before, value)
        elif key == "set" and isinstance(before, list) and isinstance(value, list):
            both[key] = [*before, *value]
        else:
            both[key] = value
    return both
