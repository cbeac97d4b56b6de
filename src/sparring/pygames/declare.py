"""`sparring.Game`: rules of a game as a class with declarations and plain functions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from sparring.errors import RulesError, suggestion
from sparring.pygames import fields as kinds
from sparring.pygames.fields import Block, Flag, Float, Int

RULES = ("reset", "legal", "observe", "step", "score", "bot", "resample", "valid")
"""The functions of the core, in its order."""
PARAMETERS = {
    "reset": ("state", "rng", "flags"),
    "legal": ("state", "mask", "flags"),
    "observe": ("state", "seat", "obs", "flags"),
    "step": ("state", "action", "rewards", "rng", "counts", "flags"),
    "score": ("state", "seat", "flags"),
    "bot": ("state", "mask", "rng", "flags"),
    "resample": ("state", "seat", "rng", "flags"),
    "valid": ("state", "flags"),
    "text": ("state", "viewer", "flags"),
    "action_name": ("action",),
}
"""What each function may take, by name; it leaves out what it does not need."""
REQUIRED = RULES[:4]
HOST = ("text", "action_name")
"""Functions that are never compiled: they make text."""
MAX_SEATS, MAX_ROLES, MAX_PARTS, MAX_ENDS, MAX_COUNTERS, MAX_BOTS, MAX_FLAGS = (
    8,
    4,
    16,
    16,
    32,
    8,
    32,
)
"""Most of everything, as in csrc/core/scripted.hpp."""


class Game:
    """Rules of a game in Python. Subclass it, declare sizes, write four functions.

    The functions are plain, without `self`. docs/start/game-in-python.md walks through an example.
    """

    seats: ClassVar[int] = 0
    actions: ClassVar[int] = 0
    state: ClassVar[Mapping[str, Int | Float]] = {}
    observation: ClassVar[Mapping[str, Block | int | tuple[int, ...]]] = {}
    ends: ClassVar[Sequence[str]] = ("played out",)
    limits: ClassVar[Sequence[str]] = ()
    """Those of `ends` that cut a game which would go on."""
    parts: ClassVar[Mapping[str, float] | Sequence[str]] = ("result",)
    roles: ClassVar[Sequence[str]] = ("player",)
    role_features: ClassVar[Sequence[Sequence[str]]] = ()
    bots: ClassVar[Sequence[Callable[..., Any]]] = ()
    flags: ClassVar[Mapping[str, Flag]] = {}
    counters: ClassVar[Sequence[str]] = ()
    stats: ClassVar[Mapping[str, tuple[str, str, str]]] = {}
    board: ClassVar[tuple[int, ...]] = ()
    zero_sum: ClassVar[bool] = False
    chance: ClassVar[bool] = True
    version: ClassVar[int] = 1


ATTRIBUTES = tuple(name for name in vars(Game) if not name.startswith("_"))


@dataclass(frozen=True)
class Declaration:
    """A checked declaration, as the core and both ways of running need it."""

    name: str
    """The registered name: file.py:Class."""
    cls: type[Game]
    functions: dict[str, FunctionType]
    """Rules by name, without bots and host functions."""
    bots: dict[str, FunctionType]
    host: dict[str, FunctionType]
    state: dict[str, Int | Float]
    blocks: dict[str, Block]
    flags: dict[str, Flag]
    parts: dict[str, float]

    @property
    def seats(self) -> int:
        return self.cls.seats

    @property
    def actions(self) -> int:
        return self.cls.actions

    @property
    def state_dtype(self) -> np.dtype[Any]:
        return kinds.state_dtype(self.state, self.seats, paid="score" not in self.functions)

    @property
    def observation_dtype(self) -> np.dtype[Any]:
        return kinds.observation_dtype(self.blocks)

    @property
    def rewards_dtype(self) -> np.dtype[Any]:
        """Rewards by part; a game with one part has a plain array."""
        each = ("f4", (self.seats,))
        return np.dtype([(part, *each) for part in self.parts])

    @property
    def counts_dtype(self) -> np.dtype[Any]:
        return np.dtype([(name, "i4", (self.seats,)) for name in self.cls.counters])

    @property
    def flags_dtype(self) -> np.dtype[Any]:
        return np.dtype([(name, "i4") for name in self.flags])


def declaration_of(cls: type[Game], name: str) -> Declaration:
    """Check a class and return its declaration; raises RulesError with file and line."""
    check_names(cls)
    functions: dict[str, FunctionType] = {}
    for rule in (*RULES, *HOST):
        if rule != "bot" and (found := plain_function(cls, rule)):
            functions[rule] = found
    missing = [rule for rule in REQUIRED if rule not in functions]
    if missing:
        raise wrong(
            cls, "", f"has no function {missing[0]}({', '.join(PARAMETERS[missing[0]][:3])})"
        )
    for rule, function in functions.items():
        check_parameters(cls, function, rule)
    host = {rule: functions.pop(rule) for rule in HOST if rule in functions}
    bots = bots_of(cls)
    check_counts(cls)
    return Declaration(
        name,
        cls,
        functions,
        bots,
        host,
        state_of(cls),
        blocks_of(cls),
        flags_of(cls),
        parts_of(cls),
    )


def check_names(cls: type[Game]) -> None:
    """Refuse what is neither a declaration nor a rule: most often a misspelled one."""
    bots = {getattr(bot, "__name__", "") for bot in cls.bots} if isinstance(cls.bots, tuple) else ()
    known = (*ATTRIBUTES, *(rule for rule in RULES if rule != "bot"), *HOST)
    for name, value in vars(cls).items():
        if name.startswith("_") or name in known or name in bots:
            continue
        hint = suggestion(name, known)
        what = "function" if callable(unwrapped(value)) else "declaration"
        if what == "function" and "did you mean" not in hint:
            hint = "; helpers stand in front of the class, bots in bots = (...)"
        raise wrong(cls, name, f"{name} is no {what} of a game{hint}")


def unwrapped(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod) else value


def plain_function(cls: type[Game], name: str) -> FunctionType | None:
    found = unwrapped(inspect.getattr_static(cls, name, None))
    if found is None:
        return None
    if not isinstance(found, FunctionType):
        raise wrong(cls, name, f"{name} is no plain function: write def {name}(...) in the class")
    return found


def check_parameters(cls: type[Game], function: FunctionType, rule: str) -> None:
    known = PARAMETERS[rule]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in known or parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            hint = "; rules are plain functions, without self" if parameter.name == "self" else ""
            line = function.__code__.co_firstlineno
            raise RulesError(
                f"{file_of(cls)}:{line}: {function.__name__} takes {parameter.name!r}, which "
                f"does not exist{hint}; it may take {', '.join(known)}"
            )


def bots_of(cls: type[Game]) -> dict[str, FunctionType]:
    found: dict[str, FunctionType] = {}
    for given in cls.bots:
        bot = unwrapped(given)
        if not isinstance(bot, FunctionType):
            raise wrong(cls, "bots", f"bots holds {given!r}; list functions: bots = (careful,)")
        check_parameters(cls, bot, "bot")
        found[bot.__name__] = bot
    return found


def state_of(cls: type[Game]) -> dict[str, Int | Float]:
    fields = mapping(cls, "state", 'board": Int(0, 2, shape=(3, 3))')
    for name, field in fields.items():
        check_word(cls, "state", name)
        if name in kinds.HEAD_FIELDS:
            raise wrong(cls, "state", f"state has {name} anyway; leave it out of the declaration")
        if not isinstance(field, Int | Float):
            raise wrong(
                cls,
                "state",
                f"state[{name!r}] is {field!r}; declare a range: Int(low, high, shape=...) or "
                "Float(low, high)",
            )
        check_shape(cls, "state", name, field)
        if field.low > field.high:
            raise wrong(cls, "state", f"state[{name!r}] is empty: {field.low} to {field.high}")
        try:
            _ = field.dtype
        except (ValueError, TypeError) as error:
            raise wrong(cls, "state", f"state[{name!r}]: {error}") from None
    return dict(fields)


def blocks_of(cls: type[Game]) -> dict[str, Block]:
    blocks: dict[str, Block] = {}
    for name, given in mapping(cls, "observation", 'mine": 9').items():
        check_word(cls, "observation", name)
        block = Block(given) if isinstance(given, int | tuple) else given
        if not isinstance(block, Block):
            raise wrong(
                cls, "observation", f"observation[{name!r}] is {given!r}; give a size or a Block"
            )
        check_shape(cls, "observation", name, block)
        if block.dtype not in kinds.FEATURE_TYPES:
            raise wrong(
                cls,
                "observation",
                f"observation[{name!r}] has dtype {block.dtype!r}; features are "
                f"{', '.join(kinds.FEATURE_TYPES)}",
            )
        blocks[name] = block
        _, rows, columns = kinds.block_rows(name, block)
        if rows * len(columns) != prod(kinds.shape_of(block)):
            raise wrong(
                cls,
                "observation",
                f"observation[{name!r}] has {len(block.names)} names for "
                f"{prod(kinds.shape_of(block))} numbers",
            )
    return blocks


def flags_of(cls: type[Game]) -> dict[str, Flag]:
    for name, flag in cls.flags.items():
        check_word(cls, "flags", name)
        if not isinstance(flag, Flag) or not flag.low <= flag.default <= flag.high:
            raise wrong(cls, "flags", f"flags[{name!r}] is {flag!r}; give Flag(default, low, high)")
    return dict(cls.flags)


def parts_of(cls: type[Game]) -> dict[str, float]:
    if isinstance(cls.parts, Mapping):
        return {str(part): float(weight) for part, weight in cls.parts.items()}
    return {part: float(i == 0) for i, part in enumerate(cls.parts)}


def check_counts(cls: type[Game]) -> None:
    for name, most in (("seats", MAX_SEATS), ("actions", 1 << 16)):
        value = getattr(cls, name)
        if not isinstance(value, int) or not 1 <= value <= most:
            raise wrong(cls, name, f"{name} is {value!r}; give a whole number from 1 to {most}")
    for name, least, most in (
        ("roles", 1, MAX_ROLES),
        ("parts", 1, MAX_PARTS),
        ("ends", 1, MAX_ENDS),
        ("counters", 0, MAX_COUNTERS),
        ("bots", 0, MAX_BOTS),
        ("flags", 0, MAX_FLAGS),
    ):
        value = getattr(cls, name)
        if isinstance(value, str) or not hasattr(value, "__len__"):
            raise wrong(cls, name, f"{name} is {value!r}; give a tuple: {name} = (..., )")
        if not least <= len(value) <= most:
            raise wrong(
                cls, name, f"{name} has {len(value)} entries; {least} to {most} are allowed"
            )
    for limit in cls.limits:
        if limit not in cls.ends:
            raise wrong(cls, "limits", f"limits names {limit!r}{suggestion(limit, cls.ends)}")
    for name, (above, below, _) in cls.stats.items():
        for counter in (above, below):
            if counter not in cls.counters:
                raise wrong(
                    cls, "stats", f"stats[{name!r}]: {counter!r}{suggestion(counter, cls.counters)}"
                )


def mapping(cls: type[Game], name: str, example: str) -> Mapping[str, Any]:
    value = getattr(cls, name)
    if not isinstance(value, Mapping) or not value:
        raise wrong(cls, name, f'{name} is {value!r}; give a table: {name} = {{"{example}}}')
    return value


def check_word(cls: type[Game], name: str, word: Any) -> None:
    if not isinstance(word, str) or not word.isidentifier() or word.startswith("_"):
        raise wrong(cls, name, f"{name} names {word!r}; give a word of letters, digits and _")


def check_shape(cls: type[Game], name: str, word: str, field: Int | Float | Block) -> None:
    shape = field.shape if isinstance(field.shape, tuple) else (field.shape,)
    if not all(isinstance(size, int) and size > 0 for size in shape):
        raise wrong(cls, name, f"{name}[{word!r}] has shape {field.shape!r}; sizes are 1 or more")


def wrong(cls: type[Game], name: str, text: str) -> RulesError:
    """An error with the line of a declaration of a class."""
    return RulesError(f"{file_of(cls)}:{line_of(cls, name)}: {cls.__name__}: {text}")


def file_of(cls: type[Any]) -> str:
    try:
        return Path(inspect.getfile(cls)).name
    except (OSError, TypeError):
        return cls.__module__


def line_of(cls: type[Any], name: str) -> int:
    """Line of a declaration or a function; the class's own where it is not found."""
    body = class_body(file_path(cls), cls.__name__)
    for node in body.body if body else ():
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names = [getattr(target, "id", "") for target in targets]
        if name in (getattr(node, "name", ""), *names):
            return node.lineno
    return body.lineno if body else 1


def file_path(cls: type[Any]) -> str:
    try:
        return inspect.getfile(cls)
    except (OSError, TypeError):
        return ""


@cache
def class_body(file: str, name: str) -> ast.ClassDef | None:
    try:
        tree = ast.parse(Path(file).read_text())
    except (OSError, SyntaxError):
        return None
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == name]
    return found[-1] if found else None
