"""Draws configurations: every setting there is, with ordinary, edge and absurd values."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args, get_origin

from sparring.config import TrainConfig
from sparring.config.ranges import NumberRange, WordChoice, types_of
from sparring.schedule import Schedule

ORDINARY_WORDS = ("self=1", "random=1", "careful", "skip_forced=1", "ppo.lr=1e-3", "ppo", "cpu")
ORDINARY_WORDS += ("auto", "random", "seed=1,2", "runs", "tic_tac_toe")
ABSURD_WORDS = ("", " ", "nan", "=", "=1", "a=b=c", "self=nan", "self=-1", "self=0", "random=1e400")
ABSURD_WORDS += ("nobody=1", "ppo=1", "ppo.clip=-1", "x" * 300, "../..", "skip_forced=9", "\u2603")
ABSURD_WORDS += ("cuda:99", "cuda", "a:b", "-", "[1", "latest", "nowhere.toml", "skull_king")
ABSURD_NUMBERS = (math.nan, math.inf, -math.inf, -1, -1e300, 1e300, 10**30, -(10**30), 2**63, 2**31)
NO_VALUES = (None, b"x", object, {}, {"a": 1}, [], [[]], [1, "a"], [None], 1j, True, "3", 0.5)


@dataclass(frozen=True)
class Setting:
    """A field of the configuration or of a table in it."""

    path: tuple[str, ...]
    kind: Any
    limit: NumberRange | WordChoice | None

    def draw(self, by: random.Random, how: str) -> Any:
        """Return a value; whether it is allowed is for the program to say."""
        if get_origin(self.kind) is tuple:
            inner = Setting(self.path, get_args(self.kind)[0], self.limit)
            # One at an end: two layers of the largest width are allowed, and take a minute.
            count = 1 if how == "edge" else by.choice((0, 1, 1, 2, 3))
            return [inner.draw(by, how) for _ in range(count)]
        if self.kind is bool:
            return by.random() < 0.5
        if self.kind is str:
            allowed = self.limit.words if isinstance(self.limit, WordChoice) else ORDINARY_WORDS
            return by.choice(allowed if how == "ordinary" else ABSURD_WORDS)
        if self.kind is Schedule and by.random() < 0.5:
            first, last = (self.number(by, how) for _ in range(2))
            return by.choice((f"0%:{first},100%:{last}", f"0:{first},10:{last} stepped"))
        number = self.number(by, how)
        return number if self.kind is Schedule or not is_whole(number) else self.kind(number)

    def number(self, by: random.Random, how: str) -> float:
        """Return a number in the range, at its ends, or far out of it."""
        assert isinstance(self.limit, NumberRange), self.path
        low, high = self.limit.low, self.limit.high
        if how == "absurd":
            return by.choice(ABSURD_NUMBERS)
        if how == "edge":
            return by.choice((low, high, low - 1, high + 1, low + 1))
        if self.kind is int:
            return int(low) + by.randrange(1, 4)
        return low + (min(high, low + 1) - low) * by.uniform(0.01, 1)


def is_whole(number: float) -> bool:
    return math.isfinite(number) and float(number).is_integer() and abs(number) < 1e40


def settings_of(config: Any = TrainConfig, path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every setting that there is; new ones come by themselves."""
    for name, (kind, limit) in types_of(config).items():
        if is_dataclass(kind):
            yield from settings_of(kind, (*path, name))
        else:
            yield Setting((*path, name), kind, limit)


SETTINGS = [one for one in settings_of() if one.path != ("game",)]
TINY = {
    "game": "tic_tac_toe",
    "updates": 1,
    "threads": 1,
    "opponents": ["self=1"],
    "collect": {"games": 4, "steps": 8},
    "net": {"hidden": [8], "channels": 4, "blocks": 1},
    "ppo": {"minibatch": 16, "epochs": 1},
    "eval": {"off": True},
}


def drawn(number: int) -> dict[str, Any]:
    """The settings of case `number`: small ones, and one to three that were drawn."""
    by = random.Random(number)
    table: dict[str, Any] = json.loads(json.dumps(TINY))
    for setting in by.sample(SETTINGS, by.choice((1, 1, 2, 3))):
        how = by.choice(("ordinary", "ordinary", "edge", "absurd"))
        inner = table
        for name in setting.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[setting.path[-1]] = setting.draw(by, how)
    return table


def as_words(table: dict[str, Any], prefix: str = "--") -> list[str]:
    """The same settings as they are typed."""
    words: list[str] = []
    for name, value in table.items():
        if name == "game":  # its place is the first
            continue
        option = prefix + name.replace("_", "-")
        if isinstance(value, dict):
            words += as_words(value, f"{option}.")
        elif isinstance(value, bool):
            before, _, last = option.rpartition(".")
            off = f"{before}.no-{last}" if before else f"--no-{last[2:]}"
            words.append(option if value else off)
        elif isinstance(value, list):
            words += [option, *map(str, value)]
        else:
            words.append(f"{option}={value}")
    return words


def as_toml(table: dict[str, Any]) -> str:
    """The same settings as a file has them."""
    lines = [f"{name} = {toml_value(v)}" for name, v in table.items() if not isinstance(v, dict)]
    for name, inner in table.items():
        if isinstance(inner, dict):
            lines += [f"[{name}]", as_toml(inner)]
    return "\n".join(lines)


def toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def spoiled(table: dict[str, Any], number: int) -> dict[str, Any]:
    """The same settings with something in them that only Python can give, now and then."""
    by = random.Random(-number)
    if by.random() < 0.3:
        setting = by.choice(SETTINGS)
        inner = table
        for name in setting.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[setting.path[-1]] = by.choice(NO_VALUES)
    return table
