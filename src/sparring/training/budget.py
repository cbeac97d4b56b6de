"""Budgets of runs, intervals of evaluations and checkpoints, and rules that stop a run early."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sparring.config import EvaluationConfig
from sparring.errors import ConfigError, suggestion
from sparring.games.flags import read_pair
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.games.stats import format_stat, main_stats

COUNTED = ("updates", "decisions", "episodes")
"""Budgets that do not depend on the clock; one of them replaces the minutes."""
BUDGETS = ("minutes", *COUNTED)
PLAN_AFTER_S = 8.0
"""Seconds of training after which the minutes are turned into a number of updates."""
PLAN_AGAIN = (0.25, 0.5, 0.75)
"""Shares of the budget after which the plan is corrected, because the machine's load changes."""
PLAN_MARGIN = 0.97
"""Share of the remaining time that is planned; the rest covers slower updates later on."""
MET = "stop rules met"
"""Event: an evaluation met all rules of eval.stop."""
INTERVALS = {"win": ("low", "high"), "score": ("score_low", "score_high")}
"""Results with a 95 % interval: both of its ends have to be in the range."""
LOWER_UPPER = (" (lower end of 95 %)", " (upper end of 95 %)")
KEY = "eval.stop"
BUDGET = "budget"
"""Event: the run got another budget."""

Results = Mapping[str, Mapping[str, Any]]
"""By opponent, as `MatchResult.summary`."""


class WarmUp(NamedTuple):
    """State of a run at its first update from a replay buffer; the pace differs after it."""

    seconds: float = 0.0
    update: int = 0
    progress: float = 0.0


class RunCounts(Protocol):
    """Counters of a run and their budgets; a budget of 0 is no limit."""

    update: int
    seconds: float
    decisions: int
    episodes: int
    total_updates: int
    timeout_s: float
    total_decisions: int
    total_episodes: int
    warm_up: WarmUp


def only_budget(given: Mapping[str, float]) -> str:
    """Return the name of the given budget, "" if none is given; two are an error."""
    named = [kind for kind in BUDGETS if given.get(kind)]
    if len(named) > 1:
        shown = " and ".join(f"{kind} {given[kind]:.10g}" for kind in named)
        raise ConfigError(f"{shown}: a run has one budget; give one of them")
    return named[0] if named else ""


def set_budget(counts: RunCounts, kind: str, amount: float) -> None:
    """Set a budget, and clear the others."""
    counts.timeout_s = amount * 60 if kind == "minutes" else 0.0
    for counted in COUNTED:
        setattr(counts, f"total_{counted}", int(amount) if kind == counted else 0)


def progress_of(counts: RunCounts) -> float:
    for gone, total in (
        (counts.update, counts.total_updates),  # planned updates take precedence over the clock
        (counts.decisions, counts.total_decisions),
        (counts.episodes, counts.total_episodes),
        (counts.seconds, counts.timeout_s),
    ):
        if total:
            return min(gone / total, 1.0)
    return 0.0


def planned_updates(counts: RunCounts, events: Sequence[Mapping[str, Any]]) -> int:
    """Plan how many updates fit into the minutes, from the pace since the last plan.

    Returns 0 if no plan is due, and the current update once the minutes are over.
    events: of the run, with earlier plans; after a changed budget, planning starts again.
    """
    if not counts.timeout_s or counts.update == counts.total_updates:
        return 0
    if counts.seconds >= counts.timeout_s:
        return counts.update
    start: Mapping[str, Any] = {"seconds": 0.0, "update": 0}
    plans: list[Mapping[str, Any]] = []
    for event in events:
        if event["event"] == "budget":
            start, plans = event, []
        elif event["event"] == "planned":
            plans.append(event)
    whole, gone = counts.timeout_s - start["seconds"], counts.seconds - start["seconds"]
    if plans:
        made = counts.update - start["update"]
        share = max(gone / whole, made / max(counts.total_updates - start["update"], 1))
        due = len(plans) <= len(PLAN_AGAIN) and share >= PLAN_AGAIN[len(plans) - 1]
    else:
        due = gone >= min(PLAN_AFTER_S, whole / 8)
    last = plans[-1] if plans and "seconds" in plans[-1] else start
    since = max(WarmUp(last["seconds"], last["update"]), counts.warm_up)
    if not due or counts.update == since.update:
        return 0
    pace = (counts.seconds - since.seconds) / (counts.update - since.update)
    left = (counts.timeout_s - counts.seconds) * PLAN_MARGIN
    return counts.update + max(int(left / pace), 1)


class Interval:
    """An interval in seconds, or in decisions of the learner.

    Decisions count from the start of the run, so a resumed run continues at the same points.
    """

    def __init__(self, seconds: float, decisions: int, counts: RunCounts, now: float) -> None:
        self.seconds, self.decisions = seconds, decisions
        self.done(counts, now)

    def due(self, counts: RunCounts, now: float) -> bool:
        if self.decisions:
            return counts.decisions // self.decisions > self._before // self.decisions
        return now - self._at >= self.seconds

    def done(self, counts: RunCounts, now: float) -> None:
        self._before, self._at = counts.decisions, now

    def left_s(self, now: float) -> float:
        """Seconds until it is due; NaN for an interval in decisions."""
        return math.nan if self.decisions else max(self._at + self.seconds - now, 0.0)


@dataclass(frozen=True)
class StopRule:
    """A result, and the range in which it stops a run."""

    name: str
    low: float = -math.inf
    high: float = math.inf

    def holds(self, results: Results) -> bool:
        """Whether the results against all opponents, with their intervals, are in the range."""
        return bool(results) and all(self._holds(found) for found in results.values())

    def describe(self, results: Results) -> list[str]:
        """Return the worst result and the bound that it meets: "win 0.62 >= 0.6"."""
        lows, highs = zip(*(self._ends(found) for found in results.values()), strict=True)
        lower, upper = LOWER_UPPER if self.name in INTERVALS else ("", "")
        least = f"{self.name} {format_stat(min(lows))}{lower} >= {self.low:g}"
        most = f"{self.name} {format_stat(max(highs))}{upper} <= {self.high:g}"
        ends = ((least, self.low), (most, self.high))
        return [text for text, end in ends if math.isfinite(end)]

    def _holds(self, found: Mapping[str, Any]) -> bool:
        low, high = self._ends(found)
        return low is not None and high is not None and low >= self.low and high <= self.high

    def _ends(self, found: Mapping[str, Any]) -> tuple[Any, Any]:
        if self.name in INTERVALS:
            low, high = INTERVALS[self.name]
            return found[low], found[high]
        value = found.get("stats", {}).get(self.name)
        return value, value


def read_stop_rules(words: Sequence[str], rules: Rules) -> tuple[StopRule, ...]:
    """Parse rules: NAME=LOW, NAME=LOW.., NAME=..HIGH or NAME=LOW..HIGH."""
    known = ["score", *(["win"] if rules.seats > 1 else []), *main_stats(rules.stats)]
    shares = ("win", *shares_of(rules.name))
    return tuple(_read(word, rules.name, known, shares) for word in words)


def shares_of(game: str) -> tuple[str, ...]:
    """Return the statistics of a game that are shares from 0 to 1."""
    shares: tuple[str, ...] = getattr(game_module(game), "SHARES", ())
    return shares


def check_stop(wanted: EvaluationConfig, rules: Rules) -> None:
    """Raise an error for rules that no evaluation can meet."""
    read_stop_rules(wanted.stop, rules)
    if wanted.stop and wanted.off:
        raise ConfigError(f"{KEY} needs evaluations, and eval.off turns them off; leave out one")


def meets(words: Sequence[str], rules: Rules, results: Results) -> bool:
    """Whether an evaluation meets all rules."""
    return bool(words) and all(rule.holds(results) for rule in read_stop_rules(words, rules))


def met_conditions(words: Sequence[str], rules: Rules, results: Results) -> list[str]:
    """Return the values that meet the rules: order_kept 0.53 >= 0.3."""
    return [text for rule in read_stop_rules(words, rules) for text in rule.describe(results)]


def is_met(words: Sequence[str], events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the rules were met since the last change of the budget."""
    for event in reversed(events):
        if event["event"] == BUDGET:
            return False
        if event["event"] == MET and event["rules"] == list(words):
            return True
    return False


def _read(word: str, game: str, known: Sequence[str], shares: Sequence[str]) -> StopRule:
    name, told = read_pair(word, KEY)
    if name not in known:
        raise ConfigError(f"{KEY} {word}: {game} measures no {name!r}{suggestion(name, known)}")
    low, _, high = told.partition("..")
    try:
        ends = float(low or -math.inf), float(high or math.inf)
    except ValueError:
        ends = (math.nan, math.nan)
    if not ends[0] <= ends[1] or not low + high:
        raise ConfigError(
            f"{KEY} {word}: {told!r} is no range; {name}=0.9 ends at 0.9 or more, "
            f"{name}=..0.9 at 0.9 or less"
        )
    if name in shares and any(math.isfinite(end) and not 0 <= end <= 1 for end in ends):
        raise ConfigError(f"{KEY} {word}: it is a share, from 0 to 1; 90 % is 0.9")
    return StopRule(name, *ends)
