"""Checks for hindsight relabeling: which games have goals, and which rewards can be recomputed.

csrc/core/goals.hpp implements goals, also for the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.rules import Rules


def check_goals(rules: Rules) -> Literal[True]:
    """Refuse a game without goals, or flags with which goals cannot be relabeled."""
    if not getattr(getattr(rules, "native", None), "has_goals", False):
        raise ConfigError(
            f"hindsight.on: {rules.name} has no goals that could be relabeled; leave it "
            "out (docs/inside/add-a-game.md says how a game declares goals)"
        )
    if refusal := _native.Goals(rules.native).unsupported_reason:
        raise ConfigError(f"hindsight.on: {rules.name} cannot be relabeled with {refusal}")
    return True


def check_reward_parts(rules: Rules, parts: Sequence[str]) -> None:
    """Refuse reward parts that cannot be recomputed for another goal."""
    known = dict(zip(rules.parts, _native.Goals(rules.native).goal_parts, strict=True))
    unknown = [part for part in parts if not known[part]]
    if unknown:
        raise ConfigError(
            f"hindsight.on: the reward {', '.join(unknown)} cannot be recomputed for another goal; "
            f"use {', '.join(part for part in known if known[part])}"
        )
