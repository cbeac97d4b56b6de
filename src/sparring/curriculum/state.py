"""State of a run's curriculum: the current phase, its overrides, and when it ends.

All overrides follow from the phase, the moment when it began and the current moment. The training
loop asks for them before every update; results of evaluations take effect there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sparring.curriculum.curriculum import START, Curriculum
from sparring.curriculum.phases import Phase, PhaseProgress, describe_threshold, lower_bound
from sparring.learn.learner import Overrides
from sparring.schedule import Moment


class CurriculumState:
    """Current phase and overrides of one run, or of one member of a population."""

    def __init__(
        self,
        curriculum: Curriculum,
        *,
        algo: str = "",
        settings: Any = None,
        role_settings: Mapping[str, Any] | None = None,
        starts: Sequence[Sequence[Any]] = (),
        lr_factor: float = 1.0,
    ) -> None:
        """Begin before the first phase.

        settings, role_settings: of the run, already scaled by lr_factor.
        starts: start positions by phase; empty: they never change.
        """
        self.curriculum, self.algo, self.lr_factor = curriculum, algo, lr_factor
        self.settings, self.role_settings = settings, dict(role_settings or {})
        self.starts = starts
        self.index, self.origin, self.update = 0, START, 0
        self.applied = START
        """Moment of the last call of `overrides`."""
        self.reached: dict[str, Any] | None = None
        """Evaluation that reached the threshold of this phase."""
        self.last: dict[str, Any] | None = None
        """Last evaluation of this phase."""
        self._is_new_phase = True
        """Whether `overrides` was not called in this phase yet."""
        self.current: dict[str, Any] = {}
        """Values handed out last, by field of `Overrides`."""

    @property
    def phase(self) -> Phase:
        return self.curriculum.phases[self.index]

    @property
    def is_last(self) -> bool:
        return self.index == len(self.curriculum.phases) - 1

    def begin(self) -> Overrides:
        """Return overrides for making the games; learner settings follow with the first update."""
        return self._changed(self._game_values(START))

    def advance(self, now: Moment, update: int) -> dict[str, Any] | None:
        """Begin the next phase if this one is over, and return the event for the log.

        Called before every update. The reason is decisions, episodes, threshold or fallback.
        """
        reason = "" if self.is_last else self._end_reason(now)
        if not reason:
            return None
        evaluation = dict(self.reached or {}) if reason == "threshold" else {}
        if reason == "fallback" and self.last:
            evaluation = dict(self.last)
        self.index, self.origin, self.update = self.index + 1, now, update
        self.reached = self.last = None
        self._is_new_phase = True
        return {**self.phase_event(reason), **evaluation}

    def phase_event(self, reason: str) -> dict[str, Any]:
        return {"phase": self.index + 1, "name": self.phase.name, "why": reason}

    def _end_reason(self, now: Moment) -> str:
        if self.reached is not None:
            return "threshold"
        if not self.curriculum.is_over(self.index, self.origin, now):
            return ""
        if self.phase.until is not None:
            return "fallback"
        elapsed = now.decisions - self.origin.decisions
        return "decisions" if 0 < self.phase.decisions <= elapsed else "episodes"

    def record_evaluation(self, number: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Compare the results of checkpoint `number`, by opponent, with the threshold.

        Checkpoints of earlier phases are ignored. The phase ends before the next update.
        """
        until = self.phase.until
        if until is None or self.is_last or number <= self.update or self.reached:
            return
        low = lower_bound(until, results)
        if low is None:
            return
        self.last = {"checkpoint": number, "low": low, "wanted": until.value}
        if low >= until.value:
            self.reached = self.last

    def overrides(self, now: Moment) -> Overrides | None:
        """Return the overrides that changed since the last call, None if none did.

        Called before every update.
        """
        is_new, self._is_new_phase, self.applied = self._is_new_phase, False, now
        if not is_new and not self.curriculum.has_schedules(self.index):
            return None
        values = self._game_values(now)
        if is_new:
            values |= self._learner_values()
        changed = self._changed(values)
        if is_new and self.phase.clear_replay and self.index:
            changed = Overrides(**{**vars(changed), "clear_replay": True})
        return changed if changed != Overrides() else None

    def _game_values(self, now: Moment) -> dict[str, Any]:
        curriculum, index, origin = self.curriculum, self.index, self.origin
        return {
            "lineups": curriculum.lineups_at(index, origin, now),
            "flags": curriculum.flags_at(index, origin, now),
            "starts": tuple(self.starts[index]) if self.starts else None,
            "rewards": curriculum.rewards_at(index, origin, now),
        }

    def _learner_values(self) -> dict[str, Any]:
        at, factor = (self.index, self.origin, self.algo), self.lr_factor
        values: dict[str, Any] = {}
        if self.settings is not None:
            values["settings"] = self.curriculum.settings_at(*at, self.settings, factor)
        if self.role_settings:
            values["role_settings"] = {
                role: self.curriculum.settings_at(*at, settings, factor)
                for role, settings in self.role_settings.items()
            }
        return values

    def _changed(self, values: Mapping[str, Any]) -> Overrides:
        """Return the values that differ from the current ones, and make all of them current."""
        current, changed = self.current, dict[str, Any]()
        for name, value in values.items():
            if name == "flags":
                old = current.get(name, {})
                flags = {k: v for k, v in value.items() if k not in old or old[k] != v}
                if flags:
                    changed[name] = flags
            elif name not in current or current[name] != value:
                changed[name] = value
        current.update(values)
        return Overrides(**changed)

    def state(self) -> dict[str, Any]:
        return {
            "phase": self.index,
            "name": self.phase.name,
            "began": {**asdict(self.origin), "update": self.update},
            "applied": asdict(self.applied),
            "reached": self.reached,
            "last": self.last,
        }

    def restore(self, state: Mapping[str, Any]) -> Overrides:
        """Restore a saved state; return its overrides, to be applied before games are loaded."""
        began = dict(state["began"])
        self.update = int(began.pop("update"))
        self.index, self.origin = int(state["phase"]), Moment(**began)
        self.applied = Moment(**state["applied"])
        self.reached, self.last = state.get("reached"), state.get("last")
        self._is_new_phase, self.current = False, {}
        return self._changed(self._game_values(self.applied) | self._learner_values())

    def progress(self, now: Moment) -> PhaseProgress:
        phase, phases = self.phase, self.curriculum.phases
        elapsed = {
            "decisions": now.decisions - self.origin.decisions,
            "episodes": now.episodes - self.origin.episodes,
        }
        fractions, conditions = [], []
        if phase.until is not None:
            conditions.append(describe_threshold(phase.until, self.last))
        for name, unit in (("decisions", "decisions"), ("episodes", "games")):
            length = getattr(phase, name)
            if length:
                fractions.append(min(elapsed[name] / length, 1.0))
                conditions.append(f"{length:,} {unit}")
        next_phase = "" if self.is_last else phases[self.index + 1].name
        fraction = max(fractions) if fractions and next_phase else None
        until = " or ".join(conditions) if next_phase else ""
        return PhaseProgress(phase.name, self.index + 1, len(phases), fraction, until, next_phase)
