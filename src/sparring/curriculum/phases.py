"""A phase: a stretch of a run, what holds in it, when it ends, and where a run stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparring.schedule import Schedule

SINGLE_PLAYER_PARITY = 1.0
"""The parity of a seat without opponents: then the score counts."""


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
        return bool(self.decisions or self.episodes or self.until)


def lower_bound(until: Threshold, results: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The lower end of the 95 % interval that counts, None if this was not measured.

    Without a bot that is named: of the one against whom it is lowest.
    """
    if until.against and until.against not in results:
        return None
    met = [results[until.against]] if until.against else list(results.values())
    lows = [found["score_low" if by_score(until, found) else "low"] for found in met]
    known = [float(low) for low in lows if low is not None]
    return min(known) if known and len(known) == len(lows) else None


def by_score(until: Threshold, found: Mapping[str, Any]) -> bool:
    return until.score or found.get("parity") == SINGLE_PLAYER_PARITY


def describe_threshold(until: Threshold, last: Mapping[str, Any] | None) -> str:
    """What a phase waits for, in words, and how much of it is sure by now."""
    what = f"score {until.value:g}" if until.score else f"win share {until.value:g}"
    against = f" against {until.against}" if until.against else ""
    now = f" (now sure of {last['low']:.3g})" if last else ""
    return f"{what}{against}{now}"


@dataclass(frozen=True)
class PhaseProgress:
    """What there is to show about where a run stands."""

    name: str
    phase: int
    """Counted from 1."""
    phases: int
    share: float | None
    """How much of the phase is over, from 0 to 1; None where nothing but strength ends it."""
    until: str
    """What ends it, in words; "" in the last one."""
    following: str
    """The name of the next one."""
