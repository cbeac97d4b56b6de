"""What is paid for, as a user writes it: score=1 for all roles, worker.score=1 for one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparring.errors import ConfigError, nearest
from sparring.games.flags import read_pair
from sparring.games.rules import Rules

Weights = dict[str, tuple[float, ...]]
"""By part, one weight per role."""
LARGEST = float(np.finfo(np.float32).max)


def read_rewards(rules: Rules, words: Sequence[Any]) -> Weights | None:
    """Turn NAME=WEIGHT and ROLE.NAME=WEIGHT into weights; None leaves the game's own.

    Parts that are not named keep the weight that the game gives them. What is said about one role
    goes before what is said about all.
    """
    if not words:
        return None
    given: dict[tuple[str, str], float] = {}
    for word in words:
        name, weight = read_weight(word)
        role, _, part = name.rpartition(".")
        if role and role not in rules.roles:
            raise ConfigError(f"rewards: no role {role!r}{nearest(role, rules.roles)}")
        if part not in rules.parts:
            raise ConfigError(f"rewards: no reward part {part!r}{nearest(part, rules.parts)}")
        if (role, part) in given:
            raise ConfigError(f"rewards: {name} was given twice; give it once")
        given[role, part] = weight
    weights = np.array(rules.weights(None)).reshape(len(rules.parts), len(rules.roles))
    for (role, part), weight in sorted(given.items()):  # "", which is all of them, comes first
        roles = rules.roles.index(role) if role else slice(None)
        weights[rules.parts.index(part), roles] = weight
    if not weights.any():
        raise ConfigError("rewards: every weight is 0, so that nothing is paid; give one above 0")
    return dict(zip(rules.parts, map(tuple, weights.tolist()), strict=True))


def read_weight(word: Any) -> tuple[str, float]:
    """Return the name and the number of NAME=WEIGHT."""
    name, amount = read_pair(str(word), "rewards")
    try:
        weight = float(amount)
    except ValueError:
        weight = math.nan
    if not abs(weight) <= LARGEST:
        raise ConfigError(f"rewards: {word!r} is not NAME=WEIGHT; give a finite number")
    return name, weight
