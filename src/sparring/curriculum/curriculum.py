"""A run as a sequence of phases: what holds at every moment of each, and when it is over.

Everything here is a function of the phase, of the moment at which it began and of the moment now;
who leads a run through its phases keeps those, and nothing else has to be saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sparring.config.algorithms import RATES
from sparring.curriculum.checks import flag_at
from sparring.curriculum.phases import Phase
from sparring.curriculum.rewards import Weights, weights_of
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.starts import Start, read_starts
from sparring.learn.plan import Seating
from sparring.pools.lineups import Lineup
from sparring.schedule import Moment, Schedule

SINGLE_PHASE = "run"
"""The name of the one phase of a run that has none."""
START = Moment(0, 0.0)


@dataclass(frozen=True)
class Curriculum:
    """The phases of a run, at least one: a run without any is one that never ends."""

    rules: Rules
    """With the run's own flags, which evaluations play with."""
    phases: tuple[Phase, ...]
    seatings: tuple[tuple[Seating, ...], ...]
    """Who plays, phase by phase."""
    own: Phase = field(default_factory=lambda: Phase(SINGLE_PHASE))
    """What the run itself says: scheduled flags, rewards and starts. Its schedules count from the
    beginning of the run, whatever the phase."""

    def lineups_at(self, index: int, origin: Moment, now: Moment) -> tuple[Lineup, ...]:
        """Who is met, without those whose weight is 0 by now. origin: when the phase began."""
        phase = self.phases[index]
        drawn = []
        for seating in self.seatings[index]:
            own = phase.opponents is None
            schedule = seating.weight if own else shift_schedule(seating.weight, phase, origin)
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
        phase, usual = self.phases[index], self.rules.config
        found = {}
        for name in self._changed_flags:
            if name in phase.flags:
                value = shift_flag(phase.flags[name], phase, origin)
                found[name] = flag_at(self.rules, name, value, now)
            elif name in self.own.flags:
                found[name] = flag_at(self.rules, name, self.own.flags[name], now)
            elif name in usual:  # environments of somebody's own tell nobody
                found[name] = usual[name]
        return found

    @cached_property
    def _changed_flags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in (self.own, *self.phases) for name in one.flags))

    def rewards_at(self, index: int, origin: Moment, now: Moment) -> Weights | None:
        """The weights of all parts, one per role; None: the game's own, all the time."""
        if not self.own.rewards and not any(phase.rewards for phase in self.phases):
            return None
        phase = self.phases[index]
        own = {name: one.at(now) for name, one in self.own.rewards.items()}
        here = {
            name: shift_schedule(one, phase, origin).at(now) for name, one in phase.rewards.items()
        }
        return weights_of(self.rules, own, here)

    def settings_at(
        self, index: int, origin: Moment, algo: str, settings: Any, lr_factor: float = 1.0
    ) -> Any:
        """Settings of the algorithm (or of one role) with what a phase says, on the run's clock.

        settings: of the run, lr_factor already in them; rates of the phase are multiplied too.
        """
        phase = self.phases[index]
        changes = {}
        for name, value in phase.settings.get(algo, {}).items():
            schedule = shift_schedule(value, phase, origin)
            changes[name] = schedule.scaled(lr_factor) if name in RATES else schedule
        return replace(settings, **changes) if changes else settings

    def starts_of(self, index: int) -> tuple[str, ...]:
        """Where games begin, in words; none: as the rules say."""
        starts = self.phases[index].starts
        return (self.own.starts or ()) if starts is None else starts

    @cached_property
    def starts(self) -> tuple[tuple[Start, ...], ...]:
        """Where games begin, phase by phase; none where no phase says anything about it."""
        if all(phase.starts is None for phase in self.phases):
            return ()
        words = [self.starts_of(index) for index in range(len(self.phases))]
        return tuple(read_starts(self.rules, one) for one in words)

    def is_over(self, index: int, origin: Moment, now: Moment) -> bool:
        """Whether a phase has had its decisions or games; the last one has no end but the run's.

        Thresholds are for whoever knows the evaluations.
        """
        phase = self.phases[index]
        if index == len(self.phases) - 1:
            return False
        return (0 < phase.decisions <= now.decisions - origin.decisions) or (
            0 < phase.episodes <= now.episodes - origin.episodes
        )

    def moves(self, index: int) -> bool:
        """Whether line-ups, flags or rewards change within a phase, so that terms are due again."""
        phase = self.phases[index]
        flags: Mapping[str, Any] = {**self.own.flags, **phase.flags}
        rewards = {**self.own.rewards, **phase.rewards}
        weights = [seating.weight for seating in self.seatings[index]]
        return any(map(changes, (*flags.values(), *rewards.values(), *weights)))

    @property
    def is_plain(self) -> bool:
        """Whether nothing ever changes: a run without phases and without such schedules."""
        return self.phases == (Phase(SINGLE_PHASE),) and not self.moves(0)

    @property
    def pays_by_role(self) -> bool:
        """Whether roles are paid differently at any time."""
        return any("." in name for one in (self.own, *self.phases) for name in one.rewards)


def shift_schedule(schedule: Schedule, phase: Phase, origin: Moment) -> Schedule:
    return schedule.placed(origin, decisions=phase.decisions, episodes=phase.episodes)


def shift_flag(value: Any, phase: Phase, origin: Moment) -> Any:
    """A flag of a phase, its schedules on the clock of the run."""
    if isinstance(value, list | tuple):
        return [shift_flag(one, phase, origin) for one in value]
    return shift_schedule(value, phase, origin) if isinstance(value, Schedule) else value


def changes(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(changes, value))
    return isinstance(value, Schedule) and value.changes
