"""Rules by which a run ends early: what an evaluation has to find."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.config import EvaluationConfig
from sparring.errors import ConfigError, nearest
from sparring.games.flags import read_pair
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.games.stats import shown, written

MET = "stop rules met"
"""The event of a run whose evaluation fulfilled all of them."""
INTERVALS = {"win": ("low", "high"), "score": ("score_low", "score_high")}
"""Results that have an interval, whose near end has to be inside."""
LOWER_UPPER = (" (lower end of 95 %)", " (upper end of 95 %)")
KEY = "eval.stop"
BUDGET = "budget"
"""The event of a run that was given another budget."""

Results = Mapping[str, Mapping[str, Any]]
"""By opponent, as `MatchResult.summary`."""


@dataclass(frozen=True)
class StopRule:
    """A result and the range in which it ends a run."""

    name: str
    low: float = -math.inf
    high: float = math.inf

    def holds(self, results: Results) -> bool:
        """Whether an evaluation is sure of it, against every opponent; what is unknown is not."""
        return bool(results) and all(self._holds(found) for found in results.values())

    def told(self, results: Results) -> list[str]:
        """What an evaluation has found that fulfills it: the opponent that is nearest to an end."""
        lows, highs = zip(*(self._ends(found) for found in results.values()), strict=True)
        lower, upper = LOWER_UPPER if self.name in INTERVALS else ("", "")
        least = f"{self.name} {written(min(lows))}{lower} >= {self.low:g}"
        most = f"{self.name} {written(max(highs))}{upper} <= {self.high:g}"
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
    """Read rules as NAME=LOW, NAME=LOW.., NAME=..HIGH or NAME=LOW..HIGH."""
    known = ["score", *(["win"] if rules.seats > 1 else []), *shown(rules.stats)]
    shares = ("win", *shares_of(rules.name))
    return tuple(_read(word, rules.name, known, shares) for word in words)


def shares_of(game: str) -> tuple[str, ...]:
    """Return the statistics of a game that are shares, from 0 to 1, as its folder says."""
    shares: tuple[str, ...] = getattr(game_module(game), "SHARES", ())
    return shares


def check_stop(wanted: EvaluationConfig, rules: Rules) -> None:
    """Refuse rules that no evaluation could fulfill."""
    read_stop_rules(wanted.stop, rules)
    if wanted.stop and wanted.off:
        raise ConfigError(f"{KEY} needs evaluations, and eval.off leaves them out; leave out one")


def meets(words: Sequence[str], rules: Rules, results: Results) -> bool:
    """Whether an evaluation finds all that a run is to end with."""
    return bool(words) and all(rule.holds(results) for rule in read_stop_rules(words, rules))


def what_met(words: Sequence[str], rules: Rules, results: Results) -> list[str]:
    """Say by which values an evaluation meets the rules: order_kept 0.53 >= 0.3."""
    return [text for rule in read_stop_rules(words, rules) for text in rule.told(results)]


def is_met(words: Sequence[str], events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run has found it, by its events; who gives a new budget goes beyond it."""
    for event in reversed(events):
        if event["event"] == BUDGET:
            return False
        if event["event"] == MET and event["rules"] == list(words):
            return True
    return False


def _read(word: str, game: str, known: Sequence[str], shares: Sequence[str]) -> StopRule:
    name, told = read_pair(word, KEY)
    if name not in known:
        raise ConfigError(f"{KEY} {word}: {game} measures no {name!r}{nearest(name, known)}")
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
