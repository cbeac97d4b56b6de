"""What curves show of a curriculum: the phase, and the weights and flags that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.curriculum.course import Course
from sparring.curriculum.curriculum import Curriculum
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.pools.lineups import LEARNER, Lineup, Pot

PHASE = "charts/phase"
"""The phase, counted from 1."""
GROUP = "curriculum/"
MOST_NUMBERS = 16
"""Of a flag that is a list; longer ones are not drawn."""


def curves_of(course: Course) -> dict[str, float]:
    """What holds now, by the names of curves; of rewards and line-ups, those that ever change."""
    curriculum, holds = course.curriculum, course.holds
    found: dict[str, float] = {}
    if len(curriculum.phases) > 1:
        found[PHASE] = float(course.index + 1)
    if holds.get("rewards") is not None:
        found |= weights(curriculum, holds["rewards"])
    for name, value in holds.get("flags", {}).items():
        found |= flag(curriculum.rules, name, value)
    if changes_company(curriculum):
        everybody = [seating.lineup for phase in curriculum.seatings for seating in phase]
        found |= dict.fromkeys((f"{GROUP}opponents/{who(one)}" for one in everybody), 0.0)
        found |= shares(holds["lineups"])
    return found


def weights(curriculum: Curriculum, rewards: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Weights of the parts that a phase or a schedule changes, role by role where they differ."""
    named = {name for phase in curriculum.phases for name in phase.rewards}
    named |= {name for name, one in curriculum.own.rewards.items() if one.changes}
    parts = {name.rpartition(".")[2] for name in named}
    found: dict[str, float] = {}
    for part, by_role in rewards.items():
        if part not in parts:
            continue
        if len(set(by_role)) == 1:
            found[f"{GROUP}reward/{part}"] = float(by_role[0])
        else:
            named_roles = zip(curriculum.rules.roles, by_role, strict=True)
            found |= {f"{GROUP}reward/{role}.{part}": float(one) for role, one in named_roles}
    return found


def flag(rules: Rules, name: str, value: Any) -> dict[str, float]:
    """A flag as numbers; one of words by the place of its word."""
    try:
        field = rules.fields.get(name)
        numbers = field.parse(value) if field else [float(value)]
    except (ConfigError, TypeError, ValueError):
        return {}
    if len(numbers) == 1:
        return {f"{GROUP}flag/{name}": numbers[0]}
    if len(numbers) > MOST_NUMBERS:
        return {}
    return {f"{GROUP}flag/{name}[{at}]": one for at, one in enumerate(numbers)}


def changes_company(curriculum: Curriculum) -> bool:
    """Whether anybody is met more or less often at some time."""
    every = [seating for phase in curriculum.seatings for seating in phase]
    other = any(phase.opponents is not None for phase in curriculum.phases)
    return other or any(seating.weight.changes for seating in every)


def shares(lineups: Sequence[Lineup]) -> dict[str, float]:
    """How often every line-up is drawn."""
    total = sum(lineup.weight for lineup in lineups)
    found: dict[str, float] = {}
    for lineup in lineups:
        name = f"{GROUP}opponents/{who(lineup)}"
        found[name] = found.get(name, 0.0) + lineup.weight / total
    return found


def who(lineup: Lineup) -> str:
    """The others at a table, each of them once."""
    names = [called(player) for player in lineup.players if player != LEARNER]
    return ",".join(dict.fromkeys(names)) or "self"


def called(player: Any) -> str:
    """A player of a line-up in words."""
    if isinstance(player, Pot):
        return player.name
    return player if isinstance(player, str) else f"policy {player}"
