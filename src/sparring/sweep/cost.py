"""What a sweep will cost, as far as that can be known before it starts."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from sparring.config import TrainConfig
from sparring.sweep.file import SweepFile
from sparring.sweep.search import START_S
from sparring.training.planning.settings import budget_of

EVALUATION_S = 3.0
"""Seconds for the evaluation at the end of a trial."""
MEASURING_S = 4.0
"""Seconds for the games at the end of a run that confirms."""


@dataclass(frozen=True)
class Cost:
    """Trials and seconds; None where the budget of a trial is not in minutes."""

    trials: int | None
    at_once: int
    each_s: float | None
    """Of a trial."""
    search_s: float | None
    confirm_s: float | None
    """Of the confirmation; None where a trial's own time is not known."""
    why: str = ""

    @property
    def whole_s(self) -> float | None:
        """All of it."""
        if self.search_s is None or self.confirm_s is None:
            return None
        return self.search_s + self.confirm_s

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "seconds": self.whole_s}


def cost_of(
    file: SweepFile, config: TrainConfig, at_once: int, *, together: bool, groups: int = 1
) -> Cost:
    """Estimate it: trials by minutes by how many run at once, confirmation, evaluations.

    together: trials are members of populations, whose evaluations are played in turn.
    groups: of runs that cannot be members of one, in the confirmation.
    """
    search = file.search
    kind, amount = budget_of(config)
    trials = search.trials or None
    if kind != "minutes":
        why = f"a trial's budget is {amount:g} {kind}: how long that takes is known after the first"
        limit = search.minutes * 60 if search.minutes else None
        return Cost(trials, at_once, None, limit, 0.0 if limit else None, why)
    at_once = max(at_once, 1)
    trained = amount * 60 + EVALUATION_S * (at_once if together else 1)
    each = trained + START_S
    confirm = confirm_s(search.confirm, trained, at_once, together=together, groups=groups)
    rounds = math.ceil(trials / at_once) if trials else math.inf
    if search.minutes:
        rounds = min(rounds, max(int((search.minutes * 60 - confirm) // each), 0))
        trials = int(min(trials or math.inf, rounds * at_once))
    return Cost(trials, at_once, each, rounds * each, confirm)


def confirm_s(
    seeds: int, trial_s: float, at_once: int, *, together: bool, groups: int = 1
) -> float:
    """Seconds of a confirmation: the best setting and the preset, each with so many seeds.

    trial_s: of a trial with its evaluation. groups: 2 where the best setting and the preset are
    trained one after the other, because they cannot be members of one population.
    """
    if not seeds:
        return 0.0
    rounds = groups * math.ceil(2 * seeds / at_once)
    measured = 2 * seeds if together else rounds
    return rounds * (trial_s + START_S) + measured * MEASURING_S
