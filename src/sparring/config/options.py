"""Table of a command's options, for its help, shell completion and error messages."""

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

from sparring.config.ranges import NumberRange, WordChoice, types_of
from sparring.config.runs import TrainConfig
from sparring.schedule import Schedule

METAVARS = {int: "INT", float: "FLOAT", str: "STR"}


@dataclass(frozen=True)
class Option:
    """An option of a command: its name, type and allowed values."""

    path: str
    """Dotted path in the configuration: ppo.lr."""
    name: str
    """As typed, without the leading dashes: ppo.lr, imitate-minutes."""
    kind: Any
    limit: NumberRange | WordChoice | None
    help: str
    default: Any
    """MISSING if it is required."""
    metavar: str
    positional: bool = False
    paired: bool = True
    """A boolean option has both --name and --no-name, not only the one that changes it."""
    appended: bool = False
    """The option is repeated for each value."""

    @property
    def section(self) -> str:
        """Section of the settings, "" for none."""
        return self.path.rpartition(".")[0]

    @property
    def flags(self) -> tuple[str, ...]:
        """All forms of the option on the command line."""
        if self.positional:
            return ()
        if self.kind is not bool:
            return (f"--{self.name}",)
        table, dot, key = self.name.rpartition(".")
        on, off = f"--{self.name}", f"--{table}{dot}no-{key}"
        return (on, off) if self.paired else (off if self.default is True else on,)

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def is_numeric(self) -> bool:
        return number_kind(self.kind) is not None

    @property
    def words(self) -> tuple[str, ...]:
        """Allowed words, if it is a choice."""
        return tuple(filter(None, self.limit.words)) if isinstance(self.limit, WordChoice) else ()


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
    """Return the options of a configuration and of its sections. whole: see `Option.paired`."""
    whole = whole or config is TrainConfig
    hints = get_type_hints(config, include_extras=True)
    texts = help_of(config)
    found: list[Option] = []
    own = inspect.get_annotations(config)
    for field in sorted(fields(config), key=lambda one: one.name not in own):  # inherited ones last
        kind, limit = types_of(config)[field.name]
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
    """Return the type of a typed value: int for `int | None`, str for `bool | None`."""
    if not isinstance(kind, UnionType):
        return kind
    one = next(one for one in get_args(kind) if one is not type(None))
    return str if one is bool else one


def number_kind(kind: Any) -> type | None:
    """Return int or float for a number or a list of numbers, None for anything else."""
    one = get_args(kind)[0] if get_origin(kind) is tuple else kind
    return one if one in (int, float) else None


def typed_name(field: Field[Any], marks: tuple[Any, ...]) -> str:
    """Return the last part of an option's name, which may differ from the field's."""
    names = [getattr(mark, "name", None) for mark in marks]
    return next((name for name in names if isinstance(name, str)), field.name)


def metavar_of(field: Field[Any], kind: Any, marks: tuple[Any, ...]) -> str:
    """Return the placeholder of a value in the help: INT, cpu|cuda|auto; "" for a boolean."""
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
    """Format the default of an option as it would be typed; "" for none."""
    value = option.default
    if value is MISSING or value is None:
        return ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return {True: "on", False: "off"}.get(value, str(value)) if option.kind is bool else str(value)


@cache
def help_of(kind: Hashable) -> Mapping[str, str]:
    """Return the help text of every field of a configuration class, on one line each."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cast(type, kind)))).body
    assert isinstance(tree, ast.ClassDef)
    base = cast(type, kind).__base__
    texts = dict(help_of(base)) if is_dataclass(base) else {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            texts[field.target.id] = " ".join(str(below.value.value).split())
    return texts


def all_help(config: Any, prefix: str = "") -> dict[str, str]:
    """Return the help texts of a configuration and its sections, by dotted names."""
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


def joined(common: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Merge settings over common ones; flags of the game (`set`) are appended."""
    both = dict(common)
    for key, value in overrides.items():
        before = both.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            both[key] = joined(before, value)
        elif key == "set" and isinstance(before, list) and isinstance(value, list):
            both[key] = [*before, *value]
        else:
            both[key] = value
    return both
