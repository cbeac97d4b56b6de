"""What may change while a run goes on, and the learner that takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from sparring.learn.learner import Learner
from sparring.pools.lineups import Lineup


@dataclass(frozen=True)
class Terms:
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


def adjust_games(pool: Any, terms: Terms, **which: int) -> None:
    """Tell a pool what concerns it. which: `member=`, of a pool with the games of several."""
    if terms.lineups is not None:
        pool.set_lineups(terms.lineups, pool.pots, **which)
    if terms.flags:
        pool.set_config(**terms.flags, **which)
    if terms.starts is not None:
        pool.set_starts(terms.starts, **which)
    if terms.rewards is not None:
        pool.set_rewards(terms.rewards, **which)


@runtime_checkable
class Adjustable(Learner, Protocol):
    """A learner whose games and settings may change between two updates."""

    def adjust(self, terms: Terms, member: int = 0) -> None:
        """Go on under other terms. No running game changes its rules, seats or start."""
