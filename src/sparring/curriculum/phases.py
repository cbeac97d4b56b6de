"""Phases of a curriculum: the settings they override, their end conditions, and progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparring.schedule import Schedule

SINGLE_PLAYER_PARITY = 1.0
"""`parity` of an evaluation without opponents. Thresholds then compare scores."""


@dataclass(frozen=True)
class Threshold:
    """Strength that ends a phase, measured by evaluations."""

    value: float
    """Required lower bound of the 95 % interval."""
    score: bool = False
    """Compare scores instead of win shares."""
    against: str = ""
    """Name of the bot. Empty: the hardest opponent of the evaluations."""


@dataclass(frozen=True)
class Phase:
    """Overrides of one phase. Its schedules count from the start of the phase.

    Settings that a phase does not name have the value of the run, not of the previous phase.
    """

    name: str
    decisions: int = 0
    """Decisions of the learner after which the phase ends. 0: no limit."""
    episodes: int = 0
    """Finished games after which the phase ends. 0: no limit."""
    until: Threshold | None = None
    """Strength that ends the phase earlier; decisions or episodes are the fallback."""
    opponents: tuple[str, ...] | None = None
    """Line-ups as OPPONENT=WEIGHT; a weight may be a schedule."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Flags of the game: values or schedules."""
    starts: tuple[str, ...] | None = None
    """Start positions as START=WEIGHT."""
    rewards: Mapping[str, Schedule] = field(default_factory=dict)
    """Weights by PART or ROLE.PART."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Schedulable settings by algorithm: {"ppo": {"lr": ...}}."""
    clear_replay: bool = False
    """Clear the replay buffer when the phase begins."""

    @property
    def has_end(self) -> bool:
        return bool(self.decisions or self.episodes or self.until)


def lower_bound(until: Threshold, results: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return the lower bound that a threshold is compared with, None if it was not measured.

    Without a named bot it is the lowest over all opponents.
    """
    if until.against and until.against not in results:
        return None
    selected = [results[until.against]] if until.against else list(results.values())
    lows = [one["score_low" if uses_score(until, one) else "low"] for one in selected]
    known = [float(low) for low in lows if low is not None]
    return min(known) if known and len(known) == len(lows) else None


def uses_score(until: Threshold, result: Mapping[str, Any]) -> bool:
    return until.score or result.get("parity") == SINGLE_PLAYER_PARITY


def describe_threshold(until: Threshold, last: Mapping[str, Any] | None) -> str:
    """Describe a threshold and the last measured lower bound."""
    measure = f"score {until.value:g}" if until.score else f"win share {until.value:g}"
    against = f" against {until.against}" if until.against else ""
    now = f" (lower bound now {last['low']:.3g})" if last else ""
    return f"{measure}{against}{now}"


@dataclass(frozen=True)
class PhaseProgress:
    """Progress of a run within its curriculum, for display."""

    name: str
    phase: int
    """Number of the phase, from 1."""
    num_phases: int
    fraction: float | None
    """Fraction of the phase that is done; None if only a threshold ends it."""
    until: str
    """End condition as text; "" in the last phase."""
    next_phase: str
    """Name of the next phase; "" in the last one."""
