"""Goals: what a decision sets, later ones pursue, and a record tells of when it is settled.

The work is done by csrc/core/goals.hpp, which the GPU shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.rules import Rules


def check_goals(rules: Rules) -> Literal[True]:
    """Refuse a game that has none, or whose flags leave out what a record would have to tell."""
    if not getattr(getattr(rules, "native", None), "has_goals", False):
        raise ConfigError(
            f"hindsight.on: {rules.name} has no goals that could be seen in hindsight; leave it "
            "out (docs/add-a-game.md says how a game declares goals)"
        )
    if refusal := _native.Goals(rules.native).refusal:
        raise ConfigError(f"hindsight.on: {rules.name} cannot be seen so with {refusal}")
    return True


def check_reward_parts(rules: Rules, parts: Sequence[str]) -> None:
    """Refuse parts whose payments nobody could tell from a record."""
    told = dict(zip(rules.parts, _native.Goals(rules.native).pays, strict=True))
    untold = [part for part in parts if not told[part]]
    if untold:
        raise ConfigError(
            f"hindsight.on: what {', '.join(untold)} would have paid for another goal is not known "
            f"any more; with it rewards are {', '.join(part for part in told if told[part])}"
        )
