"""Racing coordinate search: from the preset, one knob at a time and some together.

The best so far and its challenger are timed in turn, so that a busy moment of the machine meets
both. What is clearly slower is dropped after one turn, what is close gets more of them. Which
neighbor is tried next is guessed from all that were seen. In the end the best is timed against
the preset in full, and that is what is claimed.
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
from sparring.sweep.knobs import ALTERING, Point
from sparring.sweep.sampling import Guess
from sparring.sweep.timings import (
    Answer,
    Clock,
    Gain,
    Noise,
    PassedOverError,
    Raced,
    Timings,
    in_full,
)

State = Literal["preset", "faster", "unconfirmed", "slower", "close", "memory", "failed"]
WORTH = math.log(1.02)
"""Less is not worth another setting."""
MAX_TURNS = 4
"""Of a challenger that is neither clearly faster nor clearly slower."""
FULL, MAX_FULL = 5, 15
"""Turns of the best against the preset: so many are kept time for, and more are made while nobody
knows who is faster."""
KEPT = 0.2
"""Share of the time that is kept for them at most."""
HOPE = 0.003
"""Expected improvement below which a point is not tried."""
SLICES = 80.0
"""Timings that a search has time for, about; each is so much shorter where there is less time."""
SHORTEST_S, LONGEST_S = 0.25, 3.0
LANDSLIDE = math.log(1.8)
"""A switch that was decided by so much is not asked again."""


@dataclass
class Look:
    """One point, and what was seen of it."""

    point: Point
    state: State
    at_s: float
    """Seconds into the search."""
    gain: Gain | None = None
    """Over the preset, by way of whoever was the best then."""
    rate: float = 0.0
    """Decisions per second: the preset's own, and the gain on top of it."""
    raced: Raced | None = None
    """Where the gain comes from."""
    why: str = ""
    bytes: int = 0
    """About what it takes."""

    def plain(self, preset: Point) -> dict[str, Any]:
        told: dict[str, Any] = {
            "settings": dict(self.point),
            "beside_preset": self.point.beside(preset),
            "state": self.state,
            "at_s": round(self.at_s, 2),
        }
        if self.gain:
            told |= {"decisions_per_s": round(self.rate), **self.gain.plain()}
        others = {"memory_bytes": self.bytes, "why": self.why}
        return told | {name: value for name, value in others.items() if value}


@dataclass
class Outcome(Answer):
    """The preset, or a point that was timed against it in full."""

    gain: Gain | None = None
    """Of the best over the preset, from timings in turn. None: the best is the preset."""
    rate: float = 0.0
    """Decisions per second of the best."""
    preset_rate: float = 0.0
    confirmed: bool = True
    """False: stopped before the best was timed against the preset once more."""
    looks: list[Look] = field(default_factory=list)
    tried_best: Look | None = None
    """What seemed best on the way and did not hold in the end."""
    lost: Gain | None = None
    """What came of it; None: it could not be timed any more, and `why` of its look says it."""

    @property
    def altered(self) -> list[str]:
        """Settings of the best that change what is learned, beside the preset."""
        return [name for name in self.best.changed(self.preset) if name in ALTERING]

    def look(self, point: Point) -> Look:
        return next(look for look in self.looks if look.point == point)

    def plain(self) -> dict[str, Any]:
        told = super().plain() | {
            "decisions_per_s": round(self.rate),
            "preset_decisions_per_s": round(self.preset_rate),
            "confirmed": self.confirmed,
            "alters_learning": self.altered,
        }
        if self.gain:
            told |= self.gain.plain()
        if self.tried_best:
            told["did_not_hold"] = {
                "settings": dict(self.tried_best.point),
                "why": self.tried_best.why,
                **(self.lost.plain() if self.lost else {}),
            }
        return told | {"looks": [look.plain(self.preset) for look in self.looks]}


class Race:
    """A search that can be interrupted: `found` is what it has found so far."""

    def __init__(
        self,
        timer: Timer,
        grid: Grid,
        clock: Clock,
        *,
        room: int = 0,
        watch: Callable[[str], Any] = lambda doing: None,
    ) -> None:
        """Prepare; nothing is opened yet. room: bytes that open points may take together."""
        self.grid, self.clock, self.watch = grid, clock, watch
        self.timings = Timings(timer, grid, room=room)
        self.noise = Noise()
        self.best = grid.preset
        self.slice_s = min(max(clock.seconds / SLICES, SHORTEST_S), LONGEST_S)
        self.above = {self.best: (0.0, 0.0)}
        """Of all that were ever best: logarithm of the gain over the preset, and its variance."""
        self.guess = Guess(grid.knobs)
        self.turned: set[str] = set()
        """Knobs that were tried; two are turned together only when something is known of each."""
        self.decided: dict[str, float] = {}
        """Of knobs with two values: how clearly the one or the other was faster."""
        self.twice: set[Point] = set()
        """Points that were raced again."""
        self.too_large: float = math.inf
        """Bytes for which there was no memory."""
        self.found = Outcome(self.best, self.best)
        self.timed_in_full: Gain | None = None
        """Of the best over the preset, turn by turn; None before that begins."""

    def run(self) -> Outcome:
        """Search until nothing is better or the time is over; then time the best in full."""
        found = self.found
        with found.timed(self.clock):
            self.begin()
            while point := self.switched() or self.next_point() or self.second_chance():
                self.challenge(point)
            if found.better:
                self.confirm()
        return found

    def begin(self) -> None:
        """Time the preset; what does not even open cannot be tuned."""
        self.tell("the preset")
        try:
            self.timings.time(self.best, self.slice_s)
            rate = self.timings.time(self.best, self.slice_s)
        except PassedOverError as wrong:
            text = f"what is to be tuned cannot be timed: {wrong}"
            limited = wrong.memory and self.grid.max_bytes
            raise (ConfigError(f"gigabytes: {text}") if limited else SparringError(text)) from None
        self.found.rate = self.found.preset_rate = rate
        look = self.note(self.best, "preset")
        look.gain, look.rate = Gain(0.0, 0.0, 0.0), rate

    def unseen(self, points: Sequence[Point]) -> list[Point]:
        """Those of points that nobody has looked at."""
        seen = {look.point for look in self.found.looks}
        return [point for point in points if point not in seen]

    def next_point(self) -> Point | None:
        """The neighbor of the best that promises most for its time; None if none promises any."""
        best, top = None, 0.0
        for point in self.unseen(self.grid.around(self.best, self.turned)):
            if self.grid.bytes(point) >= self.too_large:
                continue
            promised = self.guess.improvement(point, self.above[self.best][0])
            if promised < HOPE or self.refused(point):
                continue
            per_second = promised / self.price(point)
            if per_second > top:
                best, top = point, per_second
        return best

    def switched(self) -> Point | None:
        """The best with a switch the other way round, where that was decided under other settings.

        A second thread loses time in small batches and gains in large ones.
        """
        close = [
            knob
            for knob in self.grid.knobs
            if abs(self.decided.get(knob.name, math.inf)) <= LANDSLIDE
        ]
        others = [
            self.best.turned({knob.name: value})
            for knob in close
            for value in knob.choices
            if value != self.best[knob.name]
        ]
        return next((point for point in self.unseen(others) if not self.refused(point)), None)

    def second_chance(self) -> Point | None:
        """One that may well be better than the best and lost by a hair: it is raced once more."""
        for look in self.found.looks:
            if look.point in self.twice or not look.gain or look.point in self.above:
                continue
            hopeful = math.log1p(look.gain.high) > self.above[self.best][0] + WORTH
            if hopeful and not self.refused(look.point):
                self.twice.add(look.point)
                self.found.looks.remove(look)
                return look.point
        return None

    def refused(self, point: Point) -> bool:
        """Whether a point is none, or there is no time for it."""
        if why := self.grid.why_not(point):
            if "memory" in why:
                self.note(point, "memory", why)
            return True
        if self.price(point) > self.spare():
            self.found.ended = "time"
            return True
        return False

    def price(self, point: Point) -> float:
        mine = self.timings.first_cost(point, self.best, self.slice_s)
        return mine + self.timings.cost(self.slice_s, self.best)

    def spare(self) -> float:
        """Seconds that are left beside those for timing the best against the preset in full."""
        pair = self.timings.cost(self.slice_s, self.best, self.grid.preset)
        kept = max(min(FULL * pair, KEPT * self.clock.seconds), pair)
        return self.clock.left - kept

    def challenge(self, point: Point) -> None:
        self.tell(point.beside(self.grid.preset))
        self.turned |= point.changed(self.best).keys()
        try:
            self.race(point)
        except PassedOverError as wrong:
            self.note(point, "memory" if wrong.memory else "failed", str(wrong))
            if wrong.memory:
                self.too_large = min(self.too_large, self.grid.bytes(point))

    def race(self, point: Point) -> None:
        """Time a challenger and the best in turn until it is known who is faster."""
        logs: list[float] = []
        state: State | None = None
        while state is None:
            mine, theirs = self.timings.in_turn(point, self.best, self.slice_s, len(logs))
            logs.append(math.log(mine / theirs))
            state = self.judge(logs, point)
        if len(logs) > 1:
            self.noise.learn(logs)
        mean, error = middle(logs), self.noise.error(len(logs))
        changed = [knob for knob in self.grid.knobs if knob.name in point.changed(self.best)]
        if len(changed) == 1 and len(changed[0].choices) == 2:
            self.decided[changed[0].name] = mean
        look, (before, variance) = self.note(point, state), self.above[self.best]
        look.raced = Raced(before, variance, mean, error, len(logs), state == "faster")
        self.rate(look)
        now = before + mean, variance + error**2
        self.guess.learn(point, *now)
        if state == "faster":
            self.above[point] = now
            self.best = self.found.best = point
            self.found.gain, self.found.rate = look.gain, look.rate
            self.found.confirmed = False
        self.timings.keep(self.best, self.grid.preset)

    def judge(self, logs: Sequence[float], point: Point) -> State | None:
        """Say how a challenger did, None while that is not known."""
        turns, mean = len(logs), middle(logs)
        error = self.noise.error(turns)
        if mean + error < WORTH:  # hardly worth it: a gain that is missed costs little
            return "slower" if mean + 2 * error < 0 else "close"
        if turns > 1 and mean - 2 * error > 0 and mean > WORTH:
            return "faster"
        again = self.timings.cost(self.slice_s, point, self.best)
        if turns >= MAX_TURNS or again > self.spare():
            return "faster" if mean > WORTH else "close"
        return None

    def confirm(self) -> None:
        """Time the best and the preset in turn; what does not hold is not recommended."""
        found, preset = self.found, self.grid.preset
        logs: list[float] = []
        rates: list[tuple[float, float]] = []
        while True:
            self.tell(f"the best against the preset, turn {len(logs) + 1}")
            try:
                rates.append(self.timings.in_turn(self.best, preset, self.slice_s, len(logs)))
            except PassedOverError as wrong:
                self.fall_back(None, str(wrong))
                break
            logs.append(math.log(rates[-1][0] / rates[-1][1]))
            gain = self.timed_in_full = in_full(logs, self.noise)
            sure = gain.low > 0 or gain.high < math.expm1(WORTH)
            pair = self.timings.cost(self.slice_s, self.best, preset)
            if len(logs) >= (FULL if sure else MAX_FULL) or pair > self.clock.left:
                self.decide(gain, logs, rates)
                break
        if rates and not found.better:
            found.preset_rate = found.rate = median(theirs for _, theirs in rates)

    def decide(self, gain: Gain, logs: Sequence[float], rates: Sequence[Sequence[float]]) -> None:
        """Recommend the best if it is surely and worthily faster than the preset."""
        found = self.found
        found.confirmed = True
        mine, theirs = (median(column) for column in zip(*rates, strict=True))
        found.preset_rate = found.look(self.grid.preset).rate = theirs
        self.rescale(fmean(logs))
        if gain.low <= 0 or gain.value <= math.expm1(WORTH):
            self.fall_back(gain, f"{gain} when it was timed in full")
            return
        look = found.look(self.best)
        look.gain, look.rate = gain, mine
        found.gain, found.rate = gain, mine

    def fall_back(self, gain: Gain | None, why: str) -> None:
        """Recommend the preset after all. gain: what came of it; None: it could not be timed."""
        found = self.found
        look = found.tried_best = found.look(self.best)
        found.lost, look.state, look.why = gain, "unconfirmed", why
        if gain:
            look.gain, look.rate = gain, found.preset_rate * (1 + gain.value)
        found.best, found.gain, found.confirmed = self.grid.preset, None, True
        found.rate = found.preset_rate

    def rescale(self, measured: float) -> None:
        """Bring all looks in line with what the best came to in full, beside the preset's rate.

        Gains over the preset were products of races, whose errors have added up.
        """
        guessed = self.above[self.best][0]
        scale = max(measured, 0.0) / guessed if guessed > 0 else 1.0
        for look in self.found.looks:
            if look.raced:
                self.rate(look, scale)

    def rate(self, look: Look, scale: float = 1.0) -> None:
        """Say what a race comes to beside the preset."""
        assert look.raced
        look.gain = look.raced.gain(scale)
        look.rate = self.found.preset_rate * (1 + look.gain.value)

    def note(self, point: Point, state: State, why: str = "") -> Look:
        memory = self.timings.memory.get(point, 0)
        look = Look(point, state, self.clock.gone, why=why, bytes=memory)
        self.found.looks.append(look)
        return look

    def tell(self, doing: str) -> None:
        """Tell whoever watches where we are; races alone confirm nothing."""
        standing = f"{math.expm1(self.above[self.best][0]):+.0%} so far, to be confirmed"
        if self.best == self.grid.preset:
            standing = "nothing better yet"
        elif self.timed_in_full:
            standing = f"in full {self.timed_in_full}"
        self.watch(f"{standing}; trying {doing}")


def middle(logs: Sequence[float]) -> float:
    """Of many ratios the median, which one busy moment does not move."""
    return median(logs) if len(logs) > 2 else fmean(logs)
