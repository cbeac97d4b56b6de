"""A run as a sequence of phases: what holds at every moment of each, and when it is over.

Everything here is a function of the phase, of the moment at which it began and of the moment now;
who leads a run through its phases keeps those, and nothing else has to be saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sparring.curriculum.phases import Phase
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.cast import Seating
from sparring.pools.lineups import Lineup
from sparring.schedule import Moment, Schedule

THE_RUN = "run"
"""The name of the one phase of a run that has none."""
RATES = ("lr", "critic_lr", "temperature_lr")
"""Learning rates, by the names that they have in any algorithm."""


@dataclass(frozen=True)
class Curriculum:
    """The phases of a run, at least one: a run without any is one that never ends."""

    rules: Rules
    """With the run's own flags, which evaluations play with."""
    phases: tuple[Phase, ...]
    seatings: tuple[tuple[Seating, ...], ...]
    """Who plays, phase by phase."""
    own: Phase = field(default_factory=lambda: Phase(THE_RUN))
    """The flags, rewards and starts of the run itself, whose schedules count from its beginning."""
    seats_of_run: tuple[bool, ...] = ()
    """Phase by phase, whether the line-ups are those of the run, with schedules that count from
    its beginning."""

    def lineups_at(self, index: int, origin: Moment, now: Moment) -> tuple[Lineup, ...]:
        """Who is met, without those whose weight is 0 by now."""
        phase = self.phases[index]
        own = self.seats_of_run[index] if self.seats_of_run else False
        drawn = []
        for seating in self.seatings[index]:
            schedule = seating.weight if own else placed(seating.weight, phase, origin)
            weight = schedule.at(now)
            if weight > 0:
                drawn.append(replace(seating.lineup, weight=weight))
        if not drawn:
            raise ConfigError(
                f"phase {phase.name!r}: nobody is met after {now.decisions:,} decisions, every "
                "weight of opponents is 0; leave one above 0"
            )
        return tuple(drawn)

    def flags_at(self, index: int, origin: Moment, now: Moment) -> dict[str, Any]:
        """All flags that any phase changes, as they are now."""
        raise NotImplementedError

    def rewards_at(
        self, index: int, origin: Moment, now: Moment
    ) -> dict[str, tuple[float, ...]] | None:
        """The weights of all parts, one per role; None: the game's own, all the time."""
        raise NotImplementedError

    def settings_at(
        self, index: int, origin: Moment, algo: str, settings: Any, lr_factor: float = 1.0
    ) -> Any:
        """Settings of the algorithm (or of one role) with what a phase says, on the run's clock.

        settings: of the run, lr_factor already in them; that of the phase is multiplied too.
        """
        raise NotImplementedError

    def starts_of(self, index: int) -> tuple[str, ...]:
        """Where games begin, in words; none: as the rules say."""
        raise NotImplementedError

    def is_over(self, index: int, origin: Moment, now: Moment) -> bool:
        """Whether a phase has had its decisions or games; the last one has no end but the run's.

        Thresholds are for whoever knows the evaluations.
        """
        raise NotImplementedError

    def moves(self, index: int) -> bool:
        """Whether line-ups, flags or rewards change within a phase, so that terms are due again."""
        raise NotImplementedError

    @property
    def is_plain(self) -> bool:
        """Whether nothing ever changes: a run without phases and without such schedules."""
        raise NotImplementedError


def placed(schedule: Schedule, phase: Phase, origin: Moment) -> Schedule:
    """A schedule of a phase on the clock of the run."""
    return schedule.placed(origin, decisions=phase.decisions, episodes=phase.episodes)
