"""Goals: what a decision sets, later ones pursue, and a record tells of when it is settled.

The work is done by csrc/core/goals.hpp, which the GPU shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.rules import Rules


def demand_goals(rules: Rules) -> Literal[True]:
    """Refuse a game that has none, or whose flags leave out what a record would have to tell."""
    if not rules.native.has_goals:
        raise ConfigError(
            f"{rules.name} has no goals that could be seen in hindsight; leave out hindsight.on "
            "(docs/add-a-game.md says how a game declares goals)"
        )
    if refusal := _native.Goals(rules.native).refusal:
        raise ConfigError(f"{rules.name} cannot be seen in hindsight with {refusal}")
    return True


def demand_told(rules: Rules, weights: Sequence[float]) -> None:
    """Refuse weights of parts whose payments nobody could tell from a record."""
    roles, told = len(rules.roles), _native.Goals(rules.native).pays
    untold = [
        part
        for number, part in enumerate(rules.parts)
        if not told[number] and any(weights[number * roles : (number + 1) * roles])
    ]
    if untold:
        known = ", ".join(part for part, tells in zip(rules.parts, told, strict=True) if tells)
        raise ConfigError(
            f"rewards {', '.join(untold)} cannot be told again for another goal; with hindsight "
            f"pay {known}, or leave out hindsight.on"
        )
