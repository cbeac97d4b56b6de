"""What is paid for, as a user writes it: score=1 for all roles, worker.score=1 for one of them.

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
"""By part, one weight per role."""
MAX_WEIGHT = float(np.finfo(np.float32).max)


def read_rewards(rules: Rules, given: Any, where: str = "rewards") -> dict[str, Schedule]:
    """Read NAME=WEIGHT and ROLE.NAME=WEIGHT, or a table of them; the order is kept."""
    found: dict[str, Schedule] = {}
    for name, weight in read_pairs(given, where):
        role, _, part = name.rpartition(".")
        if role and role not in rules.roles:
            raise ConfigError(f"{where}: no role {role!r}{suggestion(role, rules.roles)}")
        if part not in rules.parts:
            raise ConfigError(f"{where}: no reward part {part!r}{suggestion(part, rules.parts)}")
        if name in found:
            raise ConfigError(f"{where}: {name} was given twice; give it once")
        found[name] = read_weight(name, weight, where)
    return found


def read_pairs(given: Any, where: str) -> Sequence[tuple[str, Any]]:
    """Return names and values of a table, or of words NAME=VALUE."""
    if isinstance(given, Mapping):
        return list(flatten(given))
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(f"{where} needs a table, or a list of NAME=VALUE, not {given!r}")
    return [read_pair(str(word), where) for word in given]


def flatten(table: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """A table by name; in TOML `manager.win = 1` is a table in a table."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield str(name), value


def read_weight(name: str, weight: Any, where: str) -> Schedule:
    try:
        schedule = Schedule.read(weight)
    except ConfigError as wrong:
        text = f"{where}: '{name}={weight}' is not NAME=WEIGHT; give a finite number or a schedule"
        raise ConfigError(text if ":" not in str(weight) else f"{text}: {wrong}") from None
    if not all(abs(value) <= MAX_WEIGHT for value in schedule.values):
        raise ConfigError(f"{where}: '{name}={weight}' is not NAME=WEIGHT; give a finite number")
    return schedule


def weights_of(rules: Rules, *layers: Mapping[str, float]) -> Weights:
    """Turn numbers by NAME and ROLE.NAME into weights of all parts.

    Parts that are not named keep the weight that the game gives them. A later layer goes before an
    earlier one; in one, what is said about one role goes before what is said about all.
    """
    weights = np.array(rules.weights(None)).reshape(len(rules.parts), len(rules.roles))
    for layer in layers:
        for name in sorted(layer, key=lambda name: "." in name):
            role, _, part = name.rpartition(".")
            roles = rules.roles.index(role) if role else slice(None)
            weights[rules.parts.index(part), roles] = layer[name]
    return dict(zip(rules.parts, map(tuple, weights.tolist()), strict=True))


def check_any_reward(rules: Rules, *layers: Mapping[str, Schedule], where: str = "rewards") -> None:
    """Refuse weights under which nothing is ever paid."""
    most = [{name: max(map(abs, one.values)) for name, one in layer.items()} for layer in layers]
    if not any(map(any, weights_of(rules, *most).values())):
        raise ConfigError(f"{where}: every weight is 0, so that nothing is paid; give one above 0")
