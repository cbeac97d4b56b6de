"""Reward weights as users write them: score=1 for all roles, worker.score=1 for one role.

A weight may be a schedule: closeness=0:20,2e6:1.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sparring.errors import ConfigError, suggestion
from sparring.games.flags import read_pair
from sparring.games.rules import Rules
from sparring.schedule import Schedule

Weights = dict[str, tuple[float, ...]]
"""Weights of a reward part by role."""
MAX_WEIGHT = float(np.finfo(np.float32).max)


def read_rewards(rules: Rules, values: Any, where: str = "rewards") -> dict[str, Schedule]:
    """Read PART=WEIGHT and ROLE.PART=WEIGHT, or a table of them, in their order."""
    weights: dict[str, Schedule] = {}
    for name, weight in read_pairs(values, where):
        role, _, part = name.rpartition(".")
        if role and role not in rules.roles:
            raise ConfigError(f"{where}: no role {role!r}{suggestion(role, rules.roles)}")
        if part not in rules.parts:
            raise ConfigError(f"{where}: no reward part {part!r}{suggestion(part, rules.parts)}")
        if name in weights:
            raise ConfigError(f"{where}: {name} was given twice; give it once")
        weights[name] = read_weight(name, weight, where)
    return weights


def read_pairs(values: Any, where: str) -> Sequence[tuple[str, Any]]:
    """Return names and values of a table, or of NAME=VALUE texts."""
    if isinstance(values, Mapping):
        return list(flatten(values))
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ConfigError(f"{where} needs a table, or a list of NAME=VALUE, not {values!r}")
    return [read_pair(str(word), where) for word in values]


def flatten(table: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield dotted names of a table; in TOML `manager.win = 1` is a nested table."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield str(name), value


def read_weight(name: str, weight: Any, where: str) -> Schedule:
    try:
        schedule = Schedule.read(weight)
    except ConfigError as error:
        text = f"{where}: '{name}={weight}' is not NAME=WEIGHT; give a finite number or a schedule"
        raise ConfigError(text if ":" not in str(weight) else f"{text}: {error}") from None
    if not all(abs(value) <= MAX_WEIGHT for value in schedule.values):
        raise ConfigError(f"{where}: '{name}={weight}' is not NAME=WEIGHT; give a finite number")
    return schedule


def weights_of(rules: Rules, *layers: Mapping[str, float]) -> Weights:
    """Return the weights of all parts from numbers by PART and ROLE.PART.

    Parts that are not named keep the game's default. Later layers override earlier ones; within
    a layer ROLE.PART overrides PART.
    """
    weights = np.array(rules.weights(None)).reshape(len(rules.parts), len(rules.roles))
    for layer in layers:
        for name in sorted(layer, key=lambda name: "." in name):
            role, _, part = name.rpartition(".")
            roles = rules.roles.index(role) if role else slice(None)
            weights[rules.parts.index(part), roles] = layer[name]
    return dict(zip(rules.parts, map(tuple, weights.tolist()), strict=True))


def check_any_reward(rules: Rules, *layers: Mapping[str, Schedule], where: str = "rewards") -> None:
    """Refuse weights that are all 0 at all times."""
    largest = [{name: max(map(abs, one.values)) for name, one in layer.items()} for layer in layers]
    if not any(map(any, weights_of(rules, *largest).values())):
        raise ConfigError(f"{where}: every weight is 0, so there is no reward; give one above 0")
