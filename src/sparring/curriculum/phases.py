"""A phase: a named stretch of a run, what holds in it, and when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparring.schedule import Schedule


@dataclass(frozen=True)
class Threshold:
    """Strength that ends a phase, measured by the evaluations beside training."""

    value: float
    """What the lower end of the interval has to reach."""
    score: bool = False
    """By score. Otherwise by the share of wins."""
    against: str = ""
    """The bot; left out, the hardest of those that the run is measured against."""


@dataclass(frozen=True)
class Phase:
    """What a phase changes of a run. Schedules in it count from its beginning.

    What it does not name is as the run has it, not as the phase before left it.
    """

    name: str
    decisions: int = 0
    """Of the learner, after which it ends. 0: by something else."""
    episodes: int = 0
    """Finished games, after which it ends. 0: by something else."""
    until: Threshold | None = None
    """Ends it earlier; decisions or episodes are the fallback."""
    opponents: tuple[str, ...] | None = None
    """Tables as WHO=WEIGHT; a weight may be a schedule."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Of the game, as they are set, or schedules."""
    starts: tuple[str, ...] | None = None
    """Where games begin."""
    rewards: Mapping[str, Schedule] = field(default_factory=dict)
    """Weights by PART or ROLE.PART."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of the algorithm, those that may be scheduled: {"ppo": {"lr": ...}}."""
    clear_replay: bool = False
    """What is remembered is forgotten when it begins."""

    @property
    def ends(self) -> bool:
        """Whether it ends before the run does."""
        return bool(self.decisions or self.episodes or self.until)
