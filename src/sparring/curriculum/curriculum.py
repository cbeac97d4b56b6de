"""A curriculum: line-ups, flags, rewards and settings at every moment of each phase.

All methods are pure functions of the phase, the moment when it began (origin) and the current
moment. `CurriculumState` keeps these three, and a checkpoint saves nothing else.
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
"""Name of the only phase of a run without phases."""
START = Moment(0, 0.0)


@dataclass(frozen=True)
class Curriculum:
    """The phases of a run, at least one. A run without phases has one that never ends."""

    rules: Rules
    """Rules with the flags of the run; evaluations use them too."""
    phases: tuple[Phase, ...]
    seatings: tuple[tuple[Seating, ...], ...]
    """Line-ups with their weights, by phase."""
    base: Phase = field(default_factory=lambda: Phase(SINGLE_PHASE))
    """Scheduled flags, rewards and starts of the run. Its schedules count from the start of the
    run, in every phase."""

    def lineups_at(self, index: int, origin: Moment, now: Moment) -> tuple[Lineup, ...]:
        """Return the line-ups with a weight above 0."""
        phase = self.phases[index]
        lineups = []
        for seating in self.seatings[index]:
            schedule = seating.weight
            if phase.opponents is not None:
                schedule = shift_schedule(schedule, phase, origin)
            weight = schedule.at(now)
            if weight > 0:
                lineups.append(replace(seating.lineup, weight=weight))
        if not lineups:
            raise ConfigError(
                f"phase {phase.name!r}: after {now.decisions:,} decisions every weight of "
                "opponents is 0; leave one above 0"
            )
        return tuple(lineups)

    def flags_at(self, index: int, origin: Moment, now: Moment) -> dict[str, Any]:
        """Return the current values of all flags that any phase changes."""
        phase, defaults = self.phases[index], self.rules.config
        flags = {}
        for name in self._changed_flags:
            if name in phase.flags:
                value = shift_flag(phase.flags[name], phase, origin)
                flags[name] = flag_at(self.rules, name, value, now)
            elif name in self.base.flags:
                flags[name] = flag_at(self.rules, name, self.base.flags[name], now)
            elif name in defaults:  # custom environments do not list their flags
                flags[name] = defaults[name]
        return flags

    @cached_property
    def _changed_flags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in (self.base, *self.phases) for name in one.flags))

    def rewards_at(self, index: int, origin: Moment, now: Moment) -> Weights | None:
        """Return the weights of all reward parts by role; None: always the game's defaults."""
        if not self.base.rewards and not any(phase.rewards for phase in self.phases):
            return None
        phase = self.phases[index]
        of_run = {name: one.at(now) for name, one in self.base.rewards.items()}
        of_phase = {
            name: shift_schedule(one, phase, origin).at(now) for name, one in phase.rewards.items()
        }
        return weights_of(self.rules, of_run, of_phase)

    def settings_at(
        self, index: int, origin: Moment, algo: str, settings: Any, lr_factor: float = 1.0
    ) -> Any:
        """Return the settings of the algorithm (or of one role) with the phase's overrides.

        settings: of the run, already scaled by lr_factor; rates of the phase are scaled here.
        """
        phase = self.phases[index]
        changes = {}
        for name, value in phase.settings.get(algo, {}).items():
            schedule = shift_schedule(value, phase, origin)
            changes[name] = schedule.scaled(lr_factor) if name in RATES else schedule
        return replace(settings, **changes) if changes else settings

    def starts_of(self, index: int) -> tuple[str, ...]:
        """Return the starts of a phase as texts; empty: the default start."""
        starts = self.phases[index].starts
        return (self.base.starts or ()) if starts is None else starts

    @cached_property
    def starts(self) -> tuple[tuple[Start, ...], ...]:
        """Starts by phase; empty if no phase sets any."""
        if all(phase.starts is None for phase in self.phases):
            return ()
        texts = [self.starts_of(index) for index in range(len(self.phases))]
        return tuple(read_starts(self.rules, one) for one in texts)

    def is_over(self, index: int, origin: Moment, now: Moment) -> bool:
        """Whether a phase has used up its decisions or games; the last one ends with the run.

        `CurriculumState` checks thresholds, which need evaluations.
        """
        phase = self.phases[index]
        if index == len(self.phases) - 1:
            return False
        return (0 < phase.decisions <= now.decisions - origin.decisions) or (
            0 < phase.episodes <= now.episodes - origin.episodes
        )

    def has_schedules(self, index: int) -> bool:
        """Whether line-ups, flags or rewards change within a phase."""
        phase = self.phases[index]
        flags: Mapping[str, Any] = {**self.base.flags, **phase.flags}
        rewards = {**self.base.rewards, **phase.rewards}
        weights = [seating.weight for seating in self.seatings[index]]
        return any(map(is_scheduled, (*flags.values(), *rewards.values(), *weights)))

    @property
    def is_constant(self) -> bool:
        """Whether nothing ever changes: no phases and no schedules."""
        return self.phases == (Phase(SINGLE_PHASE),) and not self.has_schedules(0)

    @property
    def pays_by_role(self) -> bool:
        """Whether some reward weight is set for one role alone."""
        return any("." in name for one in (self.base, *self.phases) for name in one.rewards)


def shift_schedule(schedule: Schedule, phase: Phase, origin: Moment) -> Schedule:
    return schedule.shifted(origin, decisions=phase.decisions, episodes=phase.episodes)


def shift_flag(value: Any, phase: Phase, origin: Moment) -> Any:
    """Shift the schedules of a phase's flag to the clock of the run."""
    if isinstance(value, list | tuple):
        return [shift_flag(one, phase, origin) for one in value]
    return shift_schedule(value, phase, origin) if isinstance(value, Schedule) else value


def is_scheduled(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(is_scheduled, value))
    return isinstance(value, Schedule) and value.changes
