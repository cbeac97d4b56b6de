"""The current status of a run, as displays and callbacks read it."""

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
"""Name of the previous best checkpoint in metrics and tables."""
REST = "other"
"""Name of the time outside of all timed phases."""
WAITING, DONE, STOPPED = "waiting for the last evaluation", "done", "stopped"
"""Shown instead of the time left once training is over."""


LEARNING = (
    *("replay_ratio", "steps_per_decision", "replay_fill", "replay_age"),
    *("epsilon", "temperature", "simulations"),
)
"""Metrics of learning/ that the display shows, if there are any."""

SIMULATIONS_PER_S = "charts/simulations_per_s"
"""Metric of a learner that searches."""
WORKERS = ("workers/memory_mib", "workers/restarts", "workers/idle")
"""Metrics of worker processes that the display shows."""

DISTRIBUTED = (
    "distributed/lag_mean",
    "distributed/actor_idle",
    "distributed/learner_idle",
    "distributed/restarts",
)
"""Metrics of actors that the display shows."""

MAX_STATS = 3
"""Number of the game's statistics that the display shows."""
LIMIT = 64


def shown_of(stats: Mapping[str, float]) -> dict[str, float]:
    told = {name: stats.get(f"learning/{name}", math.nan) for name in LEARNING}
    told |= {
        name: stats[name] for name in (SIMULATIONS_PER_S, *WORKERS, *DISTRIBUTED) if name in stats
    }
    return {name: value for name, value in told.items() if math.isfinite(value)}


def played_of(stats: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """Return the first few statistics of the game; `before` if an update has none."""
    told = {
        name.removeprefix(PREFIX): value for name, value in stats.items() if name.startswith(PREFIX)
    }
    return dict(list(({**before, **told} if before else told).items())[:MAX_STATS])


@dataclass
class Status:
    """The current status of a run."""

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
    """Mean steps of the games that ended in the last update."""
    cpu_cores: float = math.nan
    """Cores that this process used."""
    gpu_share: float = math.nan
    """Share of the time in which the GPU was busy."""
    utilization: Utilization | None = None
    """Share of the machine that the run uses, if it was measured."""
    losses: dict[str, float] = field(default_factory=dict)
    learning: dict[str, float] = field(default_factory=dict)
    """Metrics of learning, workers and actors."""
    stats: dict[str, float] = field(default_factory=dict)
    """A few of the game's statistics."""
    phases: dict[str, float] = field(default_factory=dict)
    """Shares of the time by phase, always in the same order."""
    exploitability: float | None = None
    """Exact exploitability in the last evaluation, where it was measured."""
    wins: dict[str, dict[str, float]] = field(default_factory=dict)
    """Results of the last evaluation, by opponent."""
    history: dict[str, Trail] = field(default_factory=dict)
    """Series from the beginning of the run: score, length, and eval/NAME for every opponent."""
    next_eval_s: float = math.nan
    """Seconds until the next evaluation; negative or NaN: none is planned."""
    evaluating: bool = False
    """Whether an evaluation is running."""
    evaluated: int = -1
    """Update of the last evaluated checkpoint."""
    best: int = -1
    """Update of the best checkpoint."""
    saved: int = -1
    """Update of the last checkpoint."""
    saved_s: float = math.nan
    """Seconds of training at that checkpoint."""
    phase_progress: PhaseProgress | None = None
    """Progress in the curriculum, if there is one."""
    league: str = ""
    """Summary of the league, as text."""
    notes: tuple[str, ...] = ()
    """Lines to print once at the beginning: size of the network, initial weights."""
    message: str = ""
    """A further message."""
    learns: bool = False
    """Whether learning has started: a replay buffer is filled first."""
    warm_up: WarmUp = field(default_factory=WarmUp)
    """State at the end of the warm-up."""
    after: str = ""
    """What happens after training; the clock stops then."""

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
        """Set the totals of decisions and samples; call after seconds and updates are set."""
        self.learns = self.learns or samples > self.samples
        self.decisions, self.samples = decisions, samples
        if not self.learns:
            self.warm_up = WarmUp(self.seconds, self.update, self.progress)

    @property
    def progress(self) -> float:
        return progress_of(self)

    @property
    def shown_progress(self) -> float:
        """Progress by the clock if the budget is in minutes, because planned updates change."""
        if self.timeout_s and self.progress < 1:
            return min(self.seconds / self.timeout_s, 1.0)
        return self.progress


def in_order(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    """Return shares of phases in the order of their first appearance, `REST` last."""
    order = [name for name in {**before, **now} if name != REST]
    return {name: now.get(name, 0.0) for name in (*order, *[REST] * (REST in now))}


class Trail:
    """A series of bounded length: when it is full, neighbors are averaged."""

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
        """The series; the last number may be the mean of fewer values than the others."""
        return [*self._values, self._sum / self._count] if self._count else list(self._values)
