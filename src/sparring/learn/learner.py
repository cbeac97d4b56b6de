"""The protocol of learners: make an update, snapshot, restore, return a policy.

Training loop, checkpoints, evaluation, display and benchmarks use this protocol alone. Also here:
overrides of settings during a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.learn.rollout import Episodes
from sparring.nets.policy import Policy
from sparring.phases import Timing
from sparring.pools.lineups import Lineup
from sparring.pools.protocol import GamePool


class DivergedError(SparringError):
    """The loss is not finite. The weights are those of the step before."""


class LostError(SparringError):
    """A process that a learner needs is gone. Its state can still be saved."""


@dataclass(frozen=True)
class Report:
    """Result of an update of one member."""

    stats: dict[str, float]
    """Metrics by name: losses/..., learning/..., charts/..."""
    decisions: int
    """Decisions of the learner since the run began. Budgets and schedules count these."""
    samples: int
    """Decisions learned from since the run began."""
    opponent_rows: int = 0
    """Decisions of frozen opponents since the run began."""
    episodes: Episodes | None = None
    """The games that finished in this update, if they are recorded."""
    met: npt.NDArray[np.int64] | None = None
    """Games won, drawn and lost against each opponent in this update [players, 3]: policies by id,
    then bots. None in pure self-play."""
    diverged: str = ""
    """Why a member of a population stopped: its loss is not finite. It keeps its weights from
    before that update and has no stats; the others go on. A single run raises `DivergedError`."""


Segment = Callable[[], Mapping[str, Tensor]]
"""Copies a segment of the replay buffer. Called before the next update, and only if the store does
not have the segment yet."""


GAMES, PENDING = "games.bin", "open.bin"
"""Blobs of a snapshot: the running games, and decisions whose rewards are not known yet."""


@dataclass(frozen=True)
class Snapshot:
    """State of a learner between two updates; restored, a run repeats bit for bit.

    The caller owns it: it is written while the learner goes on, so that its tensors are copies
    that share no memory with the learner.
    """

    tensors: dict[str, dict[str, Tensor]]
    """Groups of named tensors. The policy's weights are the group "net"."""
    blobs: dict[str, bytes]
    """Bytes by file name, such as running games."""
    meta: dict[str, Any]
    """JSON values: `update`, `decisions`, `samples`, `opponent_rows`, and others."""
    segments: Mapping[str, Segment] = field(default_factory=dict)
    """Sealed segments of the replay buffer by name. Each is written once; checkpoints name it."""


class Learner(Protocol):
    """Trains one run, or the members of a population together."""

    @property
    def rules(self) -> Rules:
        """The game."""

    @property
    def updates(self) -> int:
        """Number of updates made."""

    @property
    def exact(self) -> bool:
        """Whether a snapshot holds the running games, so that a resumed run repeats exactly."""

    @property
    def phases(self) -> Timing:
        """Seconds of the last update by part."""

    def iterate(self, progress: float) -> list[Report]:
        """Collect and learn once; return one report per member. progress: of the run, 0 to 1."""

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy the state that the next update depends on.

        Segments are read later, but before the next update. A name never stands for other contents,
        also after a restore.
        """

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Restore a snapshot into a fresh learner of the same configuration."""

    def policy(self, member: int = 0) -> Policy:
        """Return a frozen copy of the policy, for evaluation, league and export."""


@contextmanager
def closing_learner(learner: Learner) -> Iterator[None]:
    """Close a learner that has a `close` method, such as one with actor processes."""
    try:
        yield
    finally:
        close = getattr(learner, "close", None)
        if close is not None:
            close()


@runtime_checkable
class SupportsDryRun(Learner, Protocol):
    """A learner whose update `sparring bench train` can time without the games."""

    @property
    def pool(self) -> GamePool:
        """The games."""

    def dry_run(self) -> list[Report]:
        """Make an update without stepping games, and restore everything.

        The network acts on the rows of the last rollout and learns from them again. `phases` hold
        the seconds without the restore. Reports have `learning/decisions`, `learning/samples` and
        `learning/optimizer_steps` of this update, as in `iterate`.
        """


@dataclass(frozen=True)
class Overrides:
    """Changes from the next update on; None leaves a value as it is."""

    lineups: tuple[Lineup, ...] | None = None
    """Line-ups of games that begin."""
    flags: Mapping[str, Any] | None = None
    """Changed flags of the game, for games that begin."""
    starts: Sequence[Any] | None = None
    """Start positions, `sparring.pools.starts.Start`; empty: those of the rules."""
    rewards: Mapping[str, tuple[float, ...]] | None = None
    """Weights of reward parts, one per role, from the next step on."""
    settings: Any = None
    """Settings of the algorithm. Schedules count from the beginning of the run."""
    role_settings: Mapping[str, Any] | None = None
    """Settings of the algorithm by role, if every role has a network."""
    clear_replay: bool = False
    """Empty the replay buffer."""


def apply_game_overrides(pool: Any, overrides: Overrides, **which: int) -> None:
    """Apply overrides to a pool. which: `member=`, for a pool with the games of several."""
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
    """A learner whose games and settings can change between two updates."""

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Apply overrides. Running games keep their rules, seats and start."""
