"""Search for speed: a racing coordinate search that starts from the preset.

The best candidate and a challenger are timed alternately, so that load on the machine affects both.
A clearly slower challenger is dropped after one turn, a close one gets more. A regression over all
timings proposes the next neighbor. At the end the best is timed against the preset once more, and
only that gain is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, Literal

from sparring.errors import ConfigError, SparringError
from sparring.speed.timer import Timer
from sparring.sweep.grid import Grid
from sparring.sweep.parameters import CHANGES_LEARNING, TuneCandidate
from sparring.sweep.sampling import GainModel
from sparring.sweep.timings import (
    Gain,
    Noise,
    RaceResult,
    SearchBudget,
    Timings,
    TuneResult,
    UntimedError,
    summarize_races,
)

State = Literal["preset", "faster", "unconfirmed", "slower", "close", "memory", "failed"]
WORTH = math.log(1.02)
"""Smaller gains are not worth a change of settings."""
MAX_TURNS = 4
"""Maximum turns of a challenger that is neither clearly faster nor clearly slower."""
FULL, MAX_FULL = 5, 15
"""Turns of the confirmation: reserved ones, and the maximum while it is not significant."""
KEPT = 0.2
"""Maximum share of the time that is reserved for them."""
HOPE = 0.003
"""Minimum expected improvement of a candidate."""
SLICES = 80.0
"""Approximate number of timings in a search, which decides their length."""
SHORTEST_S, LONGEST_S = 0.25, 3.0
LANDSLIDE = math.log(1.8)
"""A two-valued parameter with a larger difference is not tried again."""


@dataclass
class SpeedTrial:
    """One candidate and its timings."""

    point: TuneCandidate
    state: State
    at_s: float
    """Seconds into the search."""
    gain: Gain | None = None
    """Gain over the preset, by way of the best at that time."""
    rate: float = 0.0
    """Decisions per second: the preset's times the gain."""
    raced: RaceResult | None = None
    """The race that the gain comes from."""
    why: str = ""
    bytes: int = 0
    """Estimated memory."""

    def plain(self, preset: TuneCandidate) -> dict[str, Any]:
        values: dict[str, Any] = {
            "settings": dict(self.point),
            "changes": self.point.describe_changes(preset),
            "state": self.state,
            "at_s": round(self.at_s, 2),
        }
        if self.gain:
            values |= {"decisions_per_s": round(self.rate), **self.gain.plain()}
        others = {"memory_bytes": self.bytes, "why": self.why}
        return values | {name: value for name, value in others.items() if value}


@dataclass
class SpeedResult(TuneResult):
    """Result of a search for speed: the preset, or a candidate that was confirmed against it."""

    gain: Gain | None = None
    """Gain of the best over the preset. None: the best is the preset."""
    rate: float = 0.0
    """Decisions per second of the best."""
    preset_rate: float = 0.0
    confirmed: bool = True
    """False: stopped before the confirmation."""
    trials: list[SpeedTrial] = field(default_factory=list)
    tried_best: SpeedTrial | None = None
    """TuneCandidate that was best during the search and was not confirmed."""
    lost: Gain | None = None
    """Its gain in the confirmation; None: it could not be timed, see its `why`."""

    @property
    def altered(self) -> list[str]:
        """Settings of the best that change what is learned."""
        return [name for name in self.best.differences(self.preset) if name in CHANGES_LEARNING]

    def trial(self, point: TuneCandidate) -> SpeedTrial:
        return next(trial for trial in self.trials if trial.point == point)

    def plain(self) -> dict[str, Any]:
        values = super().plain() | {
            "decisions_per_s": round(self.rate),
            "preset_decisions_per_s": round(self.preset_rate),
            "confirmed": self.confirmed,
            "alters_learning": self.altered,
        }
        if self.gain:
            values |= self.gain.plain()
        if self.tried_best:
            values["unconfirmed"] = {
                "settings": dict(self.tried_best.point),
                "why": self.tried_best.why,
                **(self.lost.plain() if self.lost else {}),
            }
        return values | {"trials": [trial.plain(self.preset) for trial in self.trials]}


class SpeedSearch:
    """Search for speed that can be interrupted: `found` is the result so far."""

    def __init__(
        self,
        timer: Timer,
        grid: Grid,
        budget: SearchBudget,
        *,
        room: int = 0,
        watch: Callable[[str], Any] = lambda doing: None,
    ) -> None:
        """Prepare; nothing is opened yet. room: bytes of all open candidates together."""
        self.grid, self.budget, self.watch = grid, budget, watch
        self.timings = Timings(timer, grid, room=room)
        self.noise = Noise()
        self.best = grid.preset
        self.slice_s = min(max(budget.total_s / SLICES, SHORTEST_S), LONGEST_S)
        self.above = {self.best: (0.0, 0.0)}
        """Of every former best: log gain over the preset, and its variance."""
        self.model = GainModel(grid.parameters)
        self.turned: set[str] = set()
        """Parameters that were tried; two are moved together only if both were."""
        self.decided: dict[str, float] = {}
        """Log ratio of the two values of a two-valued parameter."""
        self.twice: set[TuneCandidate] = set()
        """Candidates that were raced a second time."""
        self.too_large: float = math.inf
        """Smallest number of bytes that ran out of memory."""
        self.found = SpeedResult(self.best, self.best)
        self.timed_in_full: Gain | None = None
        """Gain in the confirmation so far; None before it starts."""

    def run(self) -> SpeedResult:
        """Search until nothing is better or the time is over; then confirm the best."""
        found = self.found
        with found.timed(self.budget):
            self.begin()
            while point := self.show_value() or self.next_point() or self.second_chance():
                self.challenge(point)
            if found.better:
                self.confirm()
        return found

    def begin(self) -> None:
        """Time the preset; raise if it cannot be timed."""
        self.tell("the preset")
        try:
            self.timings.time(self.best, self.slice_s)
            rate = self.timings.time(self.best, self.slice_s)
        except UntimedError as error:
            text = f"what is to be tuned cannot be timed: {error}"
            limited = error.memory and self.grid.max_bytes
            raise (ConfigError(f"gigabytes: {text}") if limited else SparringError(text)) from None
        self.found.rate = self.found.preset_rate = rate
        trial = self.note(self.best, "preset")
        trial.gain, trial.rate = Gain(0.0, 0.0, 0.0), rate

    def unseen(self, points: Sequence[TuneCandidate]) -> list[TuneCandidate]:
        """Return the candidates without a trial."""
        seen = {trial.point for trial in self.found.trials}
        return [point for point in points if point not in seen]

    def next_point(self) -> TuneCandidate | None:
        """Return the neighbor with the best expected gain per second; None if none pays."""
        best, top = None, 0.0
        for point in self.unseen(self.grid.neighbors(self.best, self.turned)):
            if self.grid.bytes(point) >= self.too_large:
                continue
            promised = self.model.improvement(point, self.above[self.best][0])
            if promised < HOPE or self.refused(point):
                continue
            per_second = promised / self.price(point)
            if per_second > top:
                best, top = point, per_second
        return best

    def show_value(self) -> TuneCandidate | None:
        """Return the best with another value of a close two-valued parameter.

        A second thread loses time in small batches and gains in large ones.
        """
        close = [
            parameter
            for parameter in self.grid.parameters
            if abs(self.decided.get(parameter.name, math.inf)) <= LANDSLIDE
        ]
        others = [
            self.best.replaced({parameter.name: value})
            for parameter in close
            for value in parameter.choices
            if value != self.best[parameter.name]
        ]
        return next((point for point in self.unseen(others) if not self.refused(point)), None)

    def second_chance(self) -> TuneCandidate | None:
        """Return a candidate that lost narrowly and may be better: it is raced once more."""
        for trial in self.found.trials:
            if trial.point in self.twice or not trial.gain or trial.point in self.above:
                continue
            hopeful = math.log1p(trial.gain.high) > self.above[self.best][0] + WORTH
            if hopeful and not self.refused(trial.point):
                self.twice.add(trial.point)
                self.found.trials.remove(trial)
                return trial.point
        return None

    def refused(self, point: TuneCandidate) -> bool:
        """Whether a candidate is invalid, or there is no time for it."""
        if why := self.grid.unsupported_reason(point):
            if "memory" in why:
                self.note(point, "memory", why)
            return True
        if self.price(point) > self.spare():
            self.found.ended = "time"
            return True
        return False

    def price(self, point: TuneCandidate) -> float:
        mine = self.timings.first_cost(point, self.best, self.slice_s)
        return mine + self.timings.cost(self.slice_s, self.best)

    def spare(self) -> float:
        """Seconds left, without those reserved for the confirmation."""
        pair = self.timings.cost(self.slice_s, self.best, self.grid.preset)
        kept = max(min(FULL * pair, KEPT * self.budget.total_s), pair)
        return self.budget.left_s - kept

    def challenge(self, point: TuneCandidate) -> None:
        self.tell(point.describe_changes(self.grid.preset))
        self.turned |= point.differences(self.best).keys()
        try:
            self.race(point)
        except UntimedError as error:
            self.note(point, "memory" if error.memory else "failed", str(error))
            if error.memory:
                self.too_large = min(self.too_large, self.grid.bytes(point))

    def race(self, point: TuneCandidate) -> None:
        """Time a challenger and the best alternately until it is clear which is faster."""
        logs: list[float] = []
        state: State | None = None
        while state is None:
            mine, theirs = self.timings.in_turn(point, self.best, self.slice_s, len(logs))
            logs.append(math.log(mine / theirs))
            state = self.judge(logs, point)
        if len(logs) > 1:
            self.noise.learn(logs)
        mean, error = middle(logs), self.noise.error(len(logs))
        changed = [
            parameter
            for parameter in self.grid.parameters
            if parameter.name in point.differences(self.best)
        ]
        if len(changed) == 1 and len(changed[0].choices) == 2:
            self.decided[changed[0].name] = mean
        trial, (before, variance) = self.note(point, state), self.above[self.best]
        trial.raced = RaceResult(before, variance, mean, error, len(logs), state == "faster")
        self.rate(trial)
        now = before + mean, variance + error**2
        self.model.learn(point, *now)
        if state == "faster":
            self.above[point] = now
            self.best = self.found.best = point
            self.found.gain, self.found.rate = trial.gain, trial.rate
            self.found.confirmed = False
        self.timings.keep(self.best, self.grid.preset)

    def judge(self, logs: Sequence[float], point: TuneCandidate) -> State | None:
        """Return the state of a challenger, None while it is not clear."""
        turns, mean = len(logs), middle(logs)
        error = self.noise.error(turns)
        if mean + error < WORTH:  # a missed gain of this size costs little
            return "slower" if mean + 2 * error < 0 else "close"
        if turns > 1 and mean - 2 * error > 0 and mean > WORTH:
            return "faster"
        again = self.timings.cost(self.slice_s, point, self.best)
        if turns >= MAX_TURNS or again > self.spare():
            return "faster" if mean > WORTH else "close"
        return None

    def confirm(self) -> None:
        """Confirm the best: time it and the preset alternately."""
        found, preset = self.found, self.grid.preset
        logs: list[float] = []
        rates: list[tuple[float, float]] = []
        while True:
            self.tell(f"the best against the preset, turn {len(logs) + 1}")
            try:
                rates.append(self.timings.in_turn(self.best, preset, self.slice_s, len(logs)))
            except UntimedError as error:
                self.fall_back(None, str(error))
                break
            logs.append(math.log(rates[-1][0] / rates[-1][1]))
            gain = self.timed_in_full = summarize_races(logs, self.noise)
            sure = gain.low > 0 or gain.high < math.expm1(WORTH)
            pair = self.timings.cost(self.slice_s, self.best, preset)
            if len(logs) >= (FULL if sure else MAX_FULL) or pair > self.budget.left_s:
                self.decide(gain, logs, rates)
                break
        if rates and not found.better:
            found.preset_rate = found.rate = median(theirs for _, theirs in rates)

    def decide(self, gain: Gain, logs: Sequence[float], rates: Sequence[Sequence[float]]) -> None:
        """Recommend the best if its gain is significant and large enough."""
        found = self.found
        found.confirmed = True
        mine, theirs = (median(column) for column in zip(*rates, strict=True))
        found.preset_rate = found.trial(self.grid.preset).rate = theirs
        self.rescale(fmean(logs))
        if gain.low <= 0 or gain.value <= math.expm1(WORTH):
            self.fall_back(gain, f"{gain} when it was timed in full")
            return
        trial = found.trial(self.best)
        trial.gain, trial.rate = gain, mine
        found.gain, found.rate = gain, mine

    def fall_back(self, gain: Gain | None, why: str) -> None:
        """Recommend the preset. gain: in the confirmation; None: the best could not be timed."""
        found = self.found
        trial = found.tried_best = found.trial(self.best)
        found.lost, trial.state, trial.why = gain, "unconfirmed", why
        if gain:
            trial.gain, trial.rate = gain, found.preset_rate * (1 + gain.value)
        found.best, found.gain, found.confirmed = self.grid.preset, None, True
        found.rate = found.preset_rate

    def rescale(self, measured: float) -> None:
        """Rescale all gains to the confirmed gain of the best.

        Gains over the preset are products of races, whose errors add up.
        """
        guessed = self.above[self.best][0]
        scale = max(measured, 0.0) / guessed if guessed > 0 else 1.0
        for trial in self.found.trials:
            if trial.raced:
                self.rate(trial, scale)

    def rate(self, trial: SpeedTrial, scale: float = 1.0) -> None:
        """Set gain and rate of a trial from its race."""
        assert trial.raced
        trial.gain = trial.raced.gain(scale)
        trial.rate = self.found.preset_rate * (1 + trial.gain.value)

    def note(self, point: TuneCandidate, state: State, why: str = "") -> SpeedTrial:
        memory = self.timings.memory.get(point, 0)
        trial = SpeedTrial(point, state, self.budget.elapsed_s, why=why, bytes=memory)
        self.found.trials.append(trial)
        return trial

    def tell(self, doing: str) -> None:
        """Report progress; races alone confirm nothing."""
        standing = f"{math.expm1(self.above[self.best][0]):+.0%} so far, to be confirmed"
        if self.best == self.grid.preset:
            standing = "nothing better yet"
        elif self.timed_in_full:
            standing = f"in full {self.timed_in_full}"
        self.watch(f"{standing}; trying {doing}")


def middle(logs: Sequence[float]) -> float:
    """Return the median of many ratios, which a moment of load does not move."""
    return median(logs) if len(logs) > 2 else fmean(logs)
