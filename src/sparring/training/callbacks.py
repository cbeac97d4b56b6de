"""What a program may do while a run trains: look, log, stop."""

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
    """A run as a callback sees it."""

    member: Member
    policy: Callable[[], Policy]
    """Returns what plays now; it never changes again."""
    asked: str = ""
    """Why the run is to stop, "" if nobody asked."""

    @property
    def status(self) -> Status:
        """Where the run is: update, seconds, decisions, losses, win shares."""
        return self.member.status

    def log(self, values: Mapping[str, float]) -> None:
        """Add values of your own to the curves, at this update."""
        self.member.metrics.add(self.status.update, values, seconds=self.status.seconds)

    def stop(self, why: str = "a callback asked for it") -> None:
        """End the run after this update; it is saved like any other."""
        self.asked = why


@dataclass(frozen=True)
class Callbacks:
    """Called in the training process between updates. What they raise ends the run, saved."""

    on_update: Callable[[CallbackRun], Any] | None = None
    on_evaluation: Callable[[CallbackRun, dict[str, Any]], Any] | None = None
    """Gets the results by opponent, as `MatchResult.summary` has them."""
    on_episode: Callable[[CallbackRun, Episodes], Any] | None = None
    """Gets the games that finished in an update, in one batch."""
