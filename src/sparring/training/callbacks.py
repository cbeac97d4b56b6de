"""Callbacks during training: read the status, log metrics, stop the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sparring.learn.rollout import Episodes
from sparring.nets.policy import Policy
from sparring.training.member import Member
from sparring.training.status import Status


@dataclass
class CallbackRun:
    """The run that is passed to callbacks."""

    member: Member
    policy: Callable[[], Policy]
    """Returns a copy of the current policy."""
    stop_reason: str = ""
    """Set by `stop`; "" otherwise."""

    @property
    def status(self) -> Status:
        """Status of the run: update, seconds, decisions, losses, win shares."""
        return self.member.status

    def log(self, values: Mapping[str, float]) -> None:
        """Log metrics at the current update."""
        self.member.metrics.add(self.status.update, values, seconds=self.status.seconds)

    def stop(self, why: str = "a callback asked for it") -> None:
        """End the run after this update; it is saved as usual."""
        self.stop_reason = why


@dataclass(frozen=True)
class Callbacks:
    """Functions that the training process calls. If one raises, the run is saved and ends."""

    on_update: Callable[[CallbackRun], Any] | None = None
    on_evaluation: Callable[[CallbackRun, dict[str, Any]], Any] | None = None
    """Receives `MatchResult.summary` by opponent."""
    on_episode: Callable[[CallbackRun, Episodes], Any] | None = None
    """Receives all games that finished in an update."""
