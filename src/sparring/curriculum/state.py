"""Where one run stands in its curriculum, and what holds there.

All of it follows from the phase, the moment at which it began and the moment now. The loop asks
before every update; what evaluations found takes effect there too.
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
    """One member of a population, or a run alone, on its way through the phases."""

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
        """Stand before the first phase.

        settings, role_settings: of the run, in which lr_factor is already.
        starts: positions in which games begin, phase by phase; none: nobody ever changes them.
        """
        self.curriculum, self.algo, self.lr_factor = curriculum, algo, lr_factor
        self.settings, self.role_settings = settings, dict(role_settings or {})
        self.starts = starts
        self.index, self.origin, self.update = 0, START, 0
        self.applied = START
        """When terms were last asked for."""
        self.reached: dict[str, Any] | None = None
        """The evaluation that ends this phase."""
        self.last: dict[str, Any] | None = None
        """The last one of this phase that counted."""
        self._fresh = True
        """Whether nothing of this phase was asked for yet."""
        self.holds: dict[str, Any] = {}
        """What was handed out, by the name that it has in terms."""

    @property
    def phase(self) -> Phase:
        return self.curriculum.phases[self.index]

    @property
    def is_last(self) -> bool:
        return self.index == len(self.curriculum.phases) - 1

    # Going through

    def begin(self) -> Overrides:
        """What games are made under; settings follow with the first update."""
        return self._news(self._games(START))

    def advance(self, now: Moment, update: int) -> dict[str, Any] | None:
        """Begin the next phase if this one is over; return its number and name, why, and facts.

        Called before every update. why: decisions, episodes, threshold or fallback.
        """
        why = "" if self.is_last else self._over(now)
        if not why:
            return None
        facts = dict(self.reached or {}) if why == "threshold" else {}
        if why == "fallback" and self.last:
            facts = dict(self.last)
        self.index, self.origin, self.update = self.index + 1, now, update
        self.reached = self.last = None
        self._fresh = True
        return {**self.named(why), **facts}

    def named(self, why: str) -> dict[str, Any]:
        """The phase as its event names it, counted from 1."""
        return {"phase": self.index + 1, "name": self.phase.name, "why": why}

    def _over(self, now: Moment) -> str:
        if self.reached is not None:
            return "threshold"
        if not self.curriculum.is_over(self.index, self.origin, now):
            return ""
        if self.phase.until is not None:
            return "fallback"
        gone = now.decisions - self.origin.decisions
        return "decisions" if 0 < self.phase.decisions <= gone else "episodes"

    def measured(self, number: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in what an evaluation of checkpoint `number` found, by opponent.

        Only those count that were made in this phase. It ends before the next update.
        """
        until = self.phase.until
        if until is None or self.is_last or number <= self.update or self.reached:
            return
        sure = lower_bound(until, results)
        if sure is None:
            return
        self.last = {"checkpoint": number, "low": sure, "wanted": until.value}
        if sure >= until.value:
            self.reached = self.last

    def overrides(self, now: Moment) -> Overrides | None:
        """What holds from now on, if anything of it is new. Called before every update."""
        fresh, self._fresh, self.applied = self._fresh, False, now
        if not fresh and not self.curriculum.moves(self.index):
            return None
        found = self._games(now)
        if fresh:
            found |= self._learning()
        news = self._news(found)
        if fresh and self.phase.clear_replay and self.index:
            news = Overrides(**{**vars(news), "clear_replay": True})
        return news if news != Overrides() else None

    def _games(self, now: Moment) -> dict[str, Any]:
        curriculum, index, origin = self.curriculum, self.index, self.origin
        return {
            "lineups": curriculum.lineups_at(index, origin, now),
            "flags": curriculum.flags_at(index, origin, now),
            "starts": tuple(self.starts[index]) if self.starts else None,
            "rewards": curriculum.rewards_at(index, origin, now),
        }

    def _learning(self) -> dict[str, Any]:
        at, factor = (self.index, self.origin, self.algo), self.lr_factor
        found: dict[str, Any] = {}
        if self.settings is not None:
            found["settings"] = self.curriculum.settings_at(*at, self.settings, factor)
        if self.role_settings:
            found["role_settings"] = {
                role: self.curriculum.settings_at(*at, mine, factor)
                for role, mine in self.role_settings.items()
            }
        return found

    def _news(self, found: Mapping[str, Any]) -> Overrides:
        """What differs from what was handed out before."""
        known, news = self.holds, dict[str, Any]()
        for name, value in found.items():
            if name == "flags":
                old = known.get(name, {})
                changed = {k: v for k, v in value.items() if k not in old or old[k] != v}
                if changed:
                    news[name] = changed
            elif name not in known or known[name] != value:
                news[name] = value
        known.update(found)
        return Overrides(**news)

    # Saving

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
        """Stand where a state was taken; return what holds there, before games are loaded."""
        began = dict(state["began"])
        self.update = int(began.pop("update"))
        self.index, self.origin = int(state["phase"]), Moment(**began)
        self.applied = Moment(**state["applied"])
        self.reached, self.last = state.get("reached"), state.get("last")
        self._fresh, self.holds = False, {}
        return self._news(self._games(self.applied) | self._learning())

    # Showing

    def standing(self, now: Moment) -> PhaseProgress:
        phase, phases = self.phase, self.curriculum.phases
        gone = {
            "decisions": now.decisions - self.origin.decisions,
            "episodes": now.episodes - self.origin.episodes,
        }
        shares, words = [], []
        if phase.until is not None:
            words.append(describe_threshold(phase.until, self.last))
        for name, unit in (("decisions", "decisions"), ("episodes", "games")):
            length = getattr(phase, name)
            if length:
                shares.append(min(gone[name] / length, 1.0))
                words.append(f"{length:,} {unit}")
        following = "" if self.is_last else phases[self.index + 1].name
        share = max(shares) if shares and following else None
        until = " or ".join(words) if following else ""
        return PhaseProgress(phase.name, self.index + 1, len(phases), share, until, following)
