"""Racing coordinate search: from the preset, one knob at a time and some together.

The best so far and its challenger are timed in turn, so that a busy moment of the machine meets
both. What is clearly slower is dropped after one turn, what is close gets more of them. Which
neighbour is tried next is guessed from all that were seen. In the end the best is timed against
the preset in full, and that is what is claimed.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparring.errors import ConfigError, SparringError
from sparring.tuning.guess import Guess
from sparring.tuning.knobs import Point
from sparring.tuning.outcome import Look, Outcome, State
from sparring.tuning.ratios import Duel, Gain, Noise, Raced, in_full
from sparring.tuning.space import Space
from sparring.tuning.stand import PassedOverError, Stand, Timer

WORTH = math.log(1.02)
"""Less is not worth another setting."""
MOST_TURNS = 4
"""Of a challenger that is neither clearly faster nor clearly slower."""
FULL, MOST_FULL = 5, 15
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


class Clock:
    """How much time is left."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        """Begin now."""
        self.seconds, self.now, self.began = seconds, now, now()

    @property
    def gone(self) -> float:
        """Seconds since the beginning."""
        return self.now() - self.began

    @property
    def left(self) -> float:
        """Seconds to the end."""
        return self.seconds - self.gone


@dataclass(frozen=True)
class Step:
    """Where a search stands, for whoever watches."""

    doing: str
    gone_s: float
    seconds: float
    standing: str
    """How the best so far compares with the preset, and how sure that is."""


Watch = Callable[[Step], Any]


class Search:
    """A search that can be interrupted: `outcome` is what it has found so far."""

    def __init__(
        self,
        gauge: Timer,
        space: Space,
        clock: Clock,
        *,
        room: int = 0,
        watch: Watch = lambda step: None,
    ) -> None:
        """Prepare; nothing is opened yet. room: bytes that open points may take together."""
        self.space, self.clock, self.watch = space, clock, watch
        self.stand = Stand(gauge, space, room=room)
        self.noise = Noise()
        self.best = space.preset
        self.slice_s = min(max(clock.seconds / SLICES, SHORTEST_S), LONGEST_S)
        self.above = {self.best: (0.0, 0.0)}
        """Of all that were ever best: logarithm of the gain over the preset, and its variance."""
        self.guess = Guess(space.knobs)
        self.turned: set[str] = set()
        """Knobs that were tried; two are turned together only when something is known of each."""
        self.decided: dict[str, float] = {}
        """Of knobs with two values: how clearly the one or the other was faster."""
        self.twice: set[Point] = set()
        """Points that were raced again."""
        self.too_large: float = math.inf
        """Bytes for which there was no memory."""
        self.outcome = Outcome(self.best, self.best)
        self.timed_in_full: Gain | None = None
        """Of the best over the preset, turn by turn; None before that begins."""

    def run(self) -> Outcome:
        """Search until nothing is better or the time is over; then time the best in full."""
        found = self.outcome
        try:
            self.begin()
            while (
                point := self.switched() or self.next_point() or self.second_chance()
            ) is not None:
                self.challenge(point)
            self.confirm()
        except BaseException:
            found.ended, found.confirmed = "interrupted", not found.better
            raise
        finally:
            found.seconds = self.clock.gone
        return found

    def begin(self) -> None:
        """Time the preset; what does not even open cannot be tuned."""
        self.tell("the preset")
        try:
            self.stand.time(self.best, self.slice_s)
            rate = self.stand.time(self.best, self.slice_s)
        except PassedOverError as wrong:
            text = f"what is to be tuned cannot be timed: {wrong}"
            limited = wrong.memory and self.space.most_bytes
            raise (ConfigError(f"gigabytes: {text}") if limited else SparringError(text)) from None
        self.outcome.rate = self.outcome.preset_rate = rate
        look = Look(self.best, "preset", self.clock.gone, Gain(0.0, 0.0, 0.0), rate)
        look.bytes = self.stand.memory.get(self.best, 0)
        self.outcome.looks.append(look)

    def next_point(self) -> Point | None:
        """The neighbour of the best that promises most for its time; None if none promises any."""
        seen = {look.point for look in self.outcome.looks}
        best, top = None, 0.0
        for point in self.space.around(self.best, self.turned):
            if point in seen or self.space.bytes(point) >= self.too_large:
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
        seen = {look.point for look in self.outcome.looks}
        for knob in self.space.knobs:
            if abs(self.decided.get(knob.name, math.inf)) > LANDSLIDE:
                continue
            other = next(value for value in knob.values if value != self.best[knob.name])
            point = self.best.turned({knob.name: other})
            if point not in seen and not self.refused(point):
                return point
        return None

    def second_chance(self) -> Point | None:
        """One that may well be better than the best and lost by a hair: it is raced once more."""
        for look in self.outcome.looks:
            if look.point in self.twice or not look.gain or look.point in self.above:
                continue
            hopeful = math.log1p(look.gain.high) > self.above[self.best][0] + WORTH
            if hopeful and not self.refused(look.point):
                self.twice.add(look.point)
                self.outcome.looks.remove(look)
                return look.point
        return None

    def refused(self, point: Point) -> bool:
        """Whether a point is none, or there is no time for it."""
        if why := self.space.why_not(point):
            if "memory" in why:
                self.note(point, "memory", why=why)
            return True
        if self.price(point) > self.clock.left - self.reserve():
            self.outcome.ended = "time"
            return True
        return False

    def price(self, point: Point) -> float:
        """Seconds that a first turn of a point takes."""
        mine = self.stand.cost(point, self.best, self.slice_s)
        return mine + self.stand.slice_cost(self.best, self.slice_s)

    def challenge(self, point: Point) -> None:
        """Race a point against the best; if it is better, we stand there."""
        self.tell(point.beside(self.space.preset))
        theirs = dict(self.best.values)
        self.turned |= {name for name, value in point.values if theirs[name] != value}
        try:
            self.race(point)
        except PassedOverError as wrong:
            self.note(point, "memory" if wrong.memory else "failed", why=str(wrong))
            if wrong.memory:
                self.too_large = min(self.too_large, self.space.bytes(point))

    def race(self, point: Point) -> None:
        """Time a challenger and the best in turn until it is known who is faster."""
        duel, state = Duel(), None
        while state is None:
            mine, theirs = self.in_turn(point, self.best, len(duel.logs))
            duel.logs.append(math.log(mine / theirs))
            state = self.judge(duel, point)
        if len(duel.logs) > 1:
            self.noise.learn(duel.logs)
        changed = [knob for knob in self.space.knobs if point[knob.name] != self.best[knob.name]]
        if len(changed) == 1 and len(changed[0].values) == 2:
            self.decided[changed[0].name] = duel.mean
        self.note(point, state, duel)
        was, error = self.above[self.best], self.noise.error(len(duel.logs))
        now = was[0] + duel.mean, was[1] + error**2
        self.guess.learn(point, *now)
        if state == "faster":
            self.above[point] = now
            self.best = self.outcome.best = point
            look = self.outcome.look(point)
            self.outcome.gain, self.outcome.rate = look.gain, look.rate
            self.outcome.confirmed = False
        self.stand.keep(self.best, self.space.preset)

    def in_turn(self, one: Point, two: Point, turn: int) -> tuple[float, float]:
        """Time both; who goes first changes from turn to turn."""
        if turn % 2 == 0:
            first = self.stand.time(one, self.slice_s)
            return first, self.stand.time(two, self.slice_s)
        second = self.stand.time(two, self.slice_s)
        return self.stand.time(one, self.slice_s), second

    def judge(self, duel: Duel, point: Point) -> State | None:
        """Say how a challenger did, None while that is not known."""
        turns, mean = len(duel.logs), duel.mean
        error = self.noise.error(turns)
        if mean + error < WORTH:  # hardly worth it: a gain that is missed costs little
            return "slower" if mean + 2 * error < 0 else "close"
        if turns > 1 and mean - 2 * error > 0 and mean > WORTH:
            return "faster"
        again = sum(self.stand.slice_cost(each, self.slice_s) for each in (point, self.best))
        if turns >= MOST_TURNS or again > self.clock.left - self.reserve():
            return "faster" if mean > WORTH else "close"
        return None

    def reserve(self) -> float:
        """Seconds to keep for timing the best against the preset in full."""
        if self.best == self.space.preset:
            pair = 2 * self.stand.slice_cost(self.best, self.slice_s)
        else:
            both = (self.best, self.space.preset)
            pair = sum(self.stand.slice_cost(point, self.slice_s) for point in both)
        return max(min(FULL * pair, KEPT * self.clock.seconds), pair)

    def confirm(self) -> None:
        """Time the best and the preset in turn; what does not hold is not recommended."""
        found, preset = self.outcome, self.space.preset
        if not found.better:
            return
        logs: list[float] = []
        rates: list[tuple[float, float]] = []
        while True:
            self.tell(f"the best against the preset, turn {len(logs) + 1}")
            try:
                mine, theirs = self.in_turn(self.best, preset, len(logs))
            except PassedOverError as wrong:
                self.fall_back(None, rates, str(wrong))
                return
            logs.append(math.log(mine / theirs))
            rates.append((mine, theirs))
            gain = self.timed_in_full = in_full(logs, self.noise)
            sure = gain.low > 0 or gain.high < math.expm1(WORTH)
            pair = sum(self.stand.slice_cost(each, self.slice_s) for each in (self.best, preset))
            if len(logs) >= (FULL if sure else MOST_FULL) or pair > self.clock.left:
                break
        found.confirmed = True
        found.preset_rate = found.look(preset).rate = statistics.median([t for _, t in rates])
        self.rescale(statistics.fmean(logs))
        if gain.low > 0 and gain.value > math.expm1(WORTH):
            found.gain, found.rate = gain, statistics.median([mine for mine, _ in rates])
            found.look(self.best).gain = gain
            found.look(self.best).rate = found.rate
        else:
            self.fall_back(gain, rates, "")

    def fall_back(self, gain: Gain | None, rates: list[tuple[float, float]], why: str) -> None:
        """Recommend the preset after all. gain: what came of it; None: it could not be timed."""
        found = self.outcome
        found.tried_best, found.lost = found.look(self.best), gain
        found.tried_best.state = "unconfirmed"
        found.tried_best.why = why or f"{gain} when it was timed in full"
        if gain:
            found.tried_best.gain = gain
            found.tried_best.rate = found.preset_rate * (1 + gain.value)
        found.best, found.gain, found.confirmed = self.space.preset, None, True
        found.rate = (
            statistics.median([theirs for _, theirs in rates]) if rates else found.preset_rate
        )
        found.preset_rate = found.rate

    def rescale(self, measured: float) -> None:
        """Bring all looks in line with what the best came to in full, beside the preset's rate.

        Gains over the preset were products of races, whose errors have added up.
        """
        guessed = self.above[self.best][0]
        scale = max(measured, 0.0) / guessed if guessed > 0 else 1.0
        for look in self.outcome.looks:
            if look.raced:
                look.gain = look.raced.gain(scale)
                look.rate = self.outcome.preset_rate * (1 + look.gain.value)

    def note(self, point: Point, state: State, duel: Duel | None = None, why: str = "") -> None:
        """Keep what was seen of a point."""
        look = Look(point, state, self.clock.gone, why=why)
        if duel:
            error, turns = self.noise.error(len(duel.logs)), len(duel.logs)
            look.raced = Raced(*self.above[self.best], duel.mean, error, turns, state == "faster")
            look.gain = look.raced.gain()
            look.rate = self.outcome.preset_rate * (1 + look.gain.value)
        look.bytes = self.stand.memory.get(point, 0)
        self.outcome.looks.append(look)

    def tell(self, doing: str) -> None:
        """Tell whoever watches where we are."""
        self.watch(Step(doing, self.clock.gone, self.clock.seconds, self.standing()))

    def standing(self) -> str:
        """Say how the best so far compares with the preset; races alone confirm nothing."""
        if self.best == self.space.preset:
            return "nothing better yet"
        if self.timed_in_full:
            return f"in full {self.timed_in_full}"
        return f"{math.expm1(self.above[self.best][0]):+.0%} so far, to be confirmed"
