"""What there is to show about a run at some moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparring.curriculum.phases import PhaseProgress
from sparring.games.stats import PREFIX
from sparring.training.budget import WarmUp, progress_of
from sparring.training.utilization.share import Utilization

PREVIOUS_BEST = "previous best"
"""What curves and tables call the best checkpoint before this one."""
REST = "other"
"""The phase that is all time outside the others."""
WAITING, DONE, STOPPED = "waiting for the last evaluation", "done", "stopped"
"""What is shown instead of the time left once training is over."""


LEARNING = (
    *("replay_ratio", "steps_per_decision", "replay_fill", "replay_age"),
    *("epsilon", "temperature"),
)
"""What is shown of learning/..., where a learner says it."""

WORKERS = ("workers/memory_mib", "workers/restarts", "workers/idle")
"""What is shown of worker processes, where there are some."""

DISTRIBUTED = (
    "distributed/lag_mean",
    "distributed/actor_idle",
    "distributed/learner_idle",
    "distributed/restarts",
)
"""What is shown of actors, where there are some."""

MAX_STATS = 3
"""So many of the game's statistics are shown."""
LIMIT = 64


def shown_of(stats: Mapping[str, float]) -> dict[str, float]:
    told = {name: stats.get(f"learning/{name}", math.nan) for name in LEARNING}
    told |= {name: stats[name] for name in (*WORKERS, *DISTRIBUTED) if name in stats}
    return {name: value for name, value in told.items() if math.isfinite(value)}


def played_of(stats: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """The first few statistics of the game; `before` stays where an update counted nothing."""
    told = {
        name.removeprefix(PREFIX): value for name, value in stats.items() if name.startswith(PREFIX)
    }
    return dict(list(({**before, **told} if before else told).items())[:MAX_STATS])


@dataclass
class Status:
    """What there is to show about a run at some moment."""

    game: str
    run: Path
    update: int = 0
    total_updates: int = 0
    seconds: float = 0.0
    timeout_s: float = 0.0
    decisions: int = 0
    total_decisions: int = 0
    episodes: int = 0
    total_episodes: int = 0
    samples: int = 0
    decisions_per_s: float = 0.0
    samples_per_s: float = 0.0
    score: float = math.nan
    length: float = math.nan
    """Steps of a game, mean of those that ended in the last update."""
    cpu_cores: float = math.nan
    """Cores that were busy with this process."""
    gpu_share: float = math.nan
    """Share of the time in which the GPU was busy."""
    utilization: Utilization | None = None
    """How the run stands to what this machine can do, where that was measured."""
    losses: dict[str, float] = field(default_factory=dict)
    learning: dict[str, float] = field(default_factory=dict)
    """What a learner from replay says about it, in the order of `LEARNING`."""
    stats: dict[str, float] = field(default_factory=dict)
    """How the learner plays, a few of the game's statistics."""
    phases: dict[str, float] = field(default_factory=dict)
    """Shares of the time, always in the same order."""
    wins: dict[str, dict[str, float]] = field(default_factory=dict)
    """What the last evaluation found, by opponent."""
    history: dict[str, Trail] = field(default_factory=dict)
    """Series from the beginning of the run: score, length, and eval/NAME for every opponent."""
    next_eval_s: float = math.nan
    """Seconds until the next evaluation is asked for; negative or NaN: none is planned."""
    evaluating: bool = False
    """Whether an evaluation is under way."""
    evaluated: int = -1
    """Update whose evaluation came last."""
    best: int = -1
    """Update of the best checkpoint."""
    saved: int = -1
    """Update of the last checkpoint."""
    saved_s: float = math.nan
    """Seconds of training at that checkpoint."""
    standing: PhaseProgress | None = None
    """In its curriculum, where there is one."""
    league: str = ""
    """How it stands with past selves, in words."""
    told: tuple[str, ...] = ()
    """What is said once, before anything else: how large the network is, what it began with."""
    message: str = ""
    """What else there is to say."""
    learns: bool = False
    """Whether anything was learned from yet: a replay is filled first."""
    warm_up: WarmUp = field(default_factory=WarmUp)
    """How far it was until then."""
    after: str = ""
    """What is left once training is over; its clock stands then."""

    def take(self, stats: Mapping[str, float]) -> None:
        self.score = stats.get("charts/score", self.score)
        self.length = stats.get("charts/length", self.length)
        self.cpu_cores = stats.get("charts/cpu_share", self.cpu_cores)
        self.gpu_share = stats.get("charts/gpu_busy", self.gpu_share)
        self.remember("score", stats.get("charts/score", math.nan))
        self.remember("length", stats.get("charts/length", math.nan))
        self.losses = {k.removeprefix("losses/"): v for k, v in stats.items() if k[:6] == "losses"}
        self.learning = shown_of(stats)
        self.stats = played_of(stats, self.stats)

    def remember(self, name: str, value: float) -> None:
        if math.isfinite(value):
            self.history.setdefault(name, Trail()).add(value)

    def count(self, decisions: int, samples: int) -> None:
        """Take in what has been made so far, once seconds, updates and episodes are there."""
        self.learns = self.learns or samples > self.samples
        self.decisions, self.samples = decisions, samples
        if not self.learns:
            self.warm_up = WarmUp(self.seconds, self.update, self.progress)

    @property
    def progress(self) -> float:
        return progress_of(self)

    @property
    def shown_progress(self) -> float:
        """The same by the clock where minutes are the budget: their plan changes on the way."""
        if self.timeout_s and self.progress < 1:
            return min(self.seconds / self.timeout_s, 1.0)
        return self.progress


def in_order(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    """Shares of phases in the order of their first meeting, what is left last."""
    order = [name for name in {**before, **now} if name != REST]
    return {name: now.get(name, 0.0) for name in (*order, *[REST] * (REST in now))}


class Trail:
    """A series from its beginning: where it grows too long, neighbors become their mean."""

    def __init__(self) -> None:
        self._values: list[float] = []
        self._each, self._sum, self._count = 1, 0.0, 0

    def add(self, value: float) -> None:
        self._sum, self._count = self._sum + value, self._count + 1
        if self._count < self._each:
            return
        self._values.append(self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self._values) == LIMIT:
            pairs = zip(self._values[::2], self._values[1::2], strict=True)
            self._values = [(a + b) / 2 for a, b in pairs]
            self._each *= 2

    def values(self) -> list[float]:
        """The series; the last number may stand for fewer values than the others."""
        return [*self._values, self._sum / self._count] if self._count else list(self._values)
