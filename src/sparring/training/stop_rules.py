"""Rules by which a run ends early: what an evaluation has to find."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, nearest
from sparring.games.flags import read_pair
from sparring.games.rules import Rules
from sparring.games.stats import shown

MET = "stop rules met"
"""The event of a run whose evaluation fulfilled all of them."""
INTERVALS = {"win": ("low", "high"), "score": ("score_low", "score_high")}
"""Results that have an interval, whose near end has to be inside."""
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

    def _holds(self, found: Mapping[str, Any]) -> bool:
        if self.name in INTERVALS:
            ends = [found[end] for end in INTERVALS[self.name]]
        else:
            ends = [found.get("stats", {}).get(self.name)] * 2
        low, high = ends
        return low is not None and high is not None and low >= self.low and high <= self.high


def read_stop_rules(words: Sequence[str], rules: Rules) -> tuple[StopRule, ...]:
    """Read rules as NAME=LOW, NAME=LOW.., NAME=..HIGH or NAME=LOW..HIGH."""
    known = ["score", *(["win"] if rules.seats > 1 else []), *shown(rules.stats)]
    return tuple(_read(word, rules.name, known) for word in words)


def check_stop(config: TrainConfig, rules: Rules) -> None:
    """Refuse rules that no evaluation could fulfill."""
    read_stop_rules(config.eval.stop, rules)
    if config.eval.stop and config.eval.off:
        raise ConfigError(f"{KEY} needs evaluations, and eval.off leaves them out; leave out one")


def meets(words: Sequence[str], rules: Rules, results: Results) -> bool:
    """Whether an evaluation finds all that a run is to end with."""
    return bool(words) and all(rule.holds(results) for rule in read_stop_rules(words, rules))


def is_met(words: Sequence[str], events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run has found it, by its events; who gives a new budget goes beyond it."""
    for event in reversed(events):
        if event["event"] == BUDGET:
            return False
        if event["event"] == MET and event["rules"] == list(words):
            return True
    return False


def _read(word: str, game: str, known: Sequence[str]) -> StopRule:
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
    return StopRule(name, *ends)
