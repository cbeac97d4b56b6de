"""What every learner is: it turns experience into a better policy, and can be saved and continued.

The loop, checkpoints, evaluation, display and bench know this protocol and nothing else. Besides:
where its time goes, and what may change while a run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.learn.rollout import Episodes
from sparring.nets.policy import Policy
from sparring.pools.lineups import Lineup
from sparring.pools.protocol import GamePool


@dataclass
class Timing:
    """Seconds spent, by part of an update. Always on: two clock reads per part.

    Curves and learners call these parts phases; a curriculum's are stretches of a run.
    """

    seconds: dict[str, float] = field(default_factory=dict)

    def __call__(self, name: str) -> TimedBlock:
        return TimedBlock(self, name)

    def take(self) -> dict[str, float]:
        """Return what was counted and start anew."""
        taken, self.seconds = self.seconds, {}
        return taken


class TimedBlock:
    """A `with` block whose seconds are counted. A generator would cost three times as much."""

    __slots__ = ("name", "started", "timing")

    def __init__(self, timing: Timing, name: str) -> None:
        self.timing, self.name = timing, name

    def __enter__(self) -> None:
        self.started = perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = self.timing.seconds
        seconds[self.name] = seconds.get(self.name, 0.0) + perf_counter() - self.started


class DivergedError(SparringError):
    """A loss that is not a number. The weights are those before it."""


class LostError(SparringError):
    """Somebody that a learner needs is gone. What it has learned so far can still be saved."""


@dataclass(frozen=True)
class Report:
    """What one member earned and learned in an update."""

    stats: dict[str, float]
    """By name, as curves show them: losses/..., learning/..., charts/..."""
    decisions: int
    """The learner's own so far. Budgets, schedules and comparisons count these."""
    samples: int
    """Decisions that were learned from so far."""
    opponent_rows: int = 0
    """Rows that frozen opponents answered so far."""
    episodes: Episodes | None = None
    """The games that finished in this update, where they are kept one by one."""
    met: npt.NDArray[np.int64] | None = None
    """Games won, drawn and lost against everybody that the learner met in this update: policies by
    id, bots behind them [players, 3]. None where nobody but itself plays."""
    diverged: str = ""
    """Why a member of a population learns no more: a loss that is not a number. It stands where it
    was before that update, for good; there are no stats. The others go on. A run that is trained
    alone raises `DivergedError` instead."""


Segment = Callable[[], Mapping[str, Tensor]]
"""Copies a stretch of what is remembered. Asked before the learner goes on, and only if the store
does not have it yet."""


@dataclass(frozen=True)
class Snapshot:
    """A learner between two updates; restored, it goes on bit for bit.

    Whoever gets one owns it: it is written while the learner goes on, so that its tensors are
    copies which share no memory with what learns. The store makes no second one.
    """

    tensors: dict[str, dict[str, Tensor]]
    """Groups of named tensors. The weights of what plays are the group "net"."""
    blobs: dict[str, bytes]
    """Bytes by file name: games in flight and the like."""
    meta: dict[str, Any]
    """Plain values: `update`, `decisions`, `samples`, `opponent_rows`, and what else is needed."""
    segments: Mapping[str, Segment] = field(default_factory=dict)
    """Stretches of what is remembered that never change again, by name: each is written once,
    and every checkpoint that needs it names it."""


class Learner(Protocol):
    """One run, or the members of a population that are trained together."""

    @property
    def rules(self) -> Rules:
        """The game."""

    @property
    def updates(self) -> int:
        """Updates made so far."""

    @property
    def exact(self) -> bool:
        """Whether a snapshot holds the games in flight, so that a resumed run repeats exactly."""

    @property
    def phases(self) -> Timing:
        """Where the time of the last update went."""

    def iterate(self, progress: float) -> list[Report]:
        """Collect and learn once; `progress` runs from 0 to 1. One report per member."""

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy all that the next update depends on: nothing in it changes when learning goes on.

        Segments are the exception: each copies its stretch when it is called, which is before the
        learner goes on. Its name never stands for other contents, also after a restore.
        """

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""

    def policy(self, member: int = 0) -> Policy:
        """Return what plays: for evaluation, league and export. It never changes again."""


@contextmanager
def closing_learner(learner: Learner) -> Iterator[None]:
    """End whoever works for a learner, such as actors, when it is done; most have nobody."""
    try:
        yield
    finally:
        close = getattr(learner, "close", None)
        if close is not None:
            close()


@runtime_checkable
class SupportsDryRun(Learner, Protocol):
    """A learner that `sparring bench train` can hold against itself without games."""

    @property
    def pool(self) -> GamePool:
        """The games."""

    def dry_run(self) -> list[Report]:
        """Do the work of an update with games that cost nothing.

        The rows of the last rollout are answered and learned from once more. Everything is put
        back afterwards, so that training goes on as if nothing had been. `phases` hold the time
        of all but that. As in `iterate`, `learning/decisions` and `learning/samples` of the
        reports are those of this update, `learning/optimizer_steps` how often it stepped.
        """


@dataclass(frozen=True)
class Overrides:
    """What holds from the next update on. What is None stays as it is."""

    lineups: tuple[Lineup, ...] | None = None
    """Drawn from when games begin."""
    flags: Mapping[str, Any] | None = None
    """Of the game, those that may change; each game follows when it begins."""
    starts: Sequence[Any] | None = None
    """Positions in which games begin, `sparring.pools.starts.Start`; empty: as the rules say."""
    rewards: Mapping[str, tuple[float, ...]] | None = None
    """Weights by part, one per role, from the next step on."""
    settings: Any = None
    """Of the algorithm. Schedules count from the beginning of the run."""
    role_settings: Mapping[str, Any] | None = None
    """Of the algorithm by role, where roles have networks of their own."""
    clear_replay: bool = False
    """Forget what is remembered."""


def apply_game_overrides(pool: Any, overrides: Overrides, **which: int) -> None:
    """Tell a pool what concerns it. which: `member=`, of a pool with the games of several."""
    if overrides.lineups is not None:
        pool.set_lineups(overrides.lineups, pool.mixes, **which)
    if overrides.flags:
        pool.set_config(**overrides.flags, **which)
    if overrides.starts is not None:
        pool.set_starts(overrides.starts, **which)
    if overrides.rewards is not None:
        pool.set_rewards(overrides.rewards, **which)


@runtime_checkable
class Overridable(Learner, Protocol):
    """A learner whose games and settings may change between two updates."""

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Go on under other overrides. No running game changes its rules, seats or start."""
