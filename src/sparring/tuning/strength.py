"""Time to a strength: short trainings, of which the slow ones are given up early.

The preset trains first and sets the target. Its neighbours then get a short time each, the better
half of them a longer one, and the last one left trains to the target with two seeds, like the
preset. All have the schedules of one and the same training, and are stopped on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sparring.tuning.knobs import Point
from sparring.tuning.outcome import Ended
from sparring.tuning.search import Clock
from sparring.tuning.space import Space

QUARTER, RUNGS = 0.25, 0.125
"""Shares of the time: in which the preset sets the target, and that the rungs get together."""
SHORTEST_S = 6.0
"""A training that is shorter has hardly been measured."""
MOST_CANDIDATES, SEEDS = 8, 2


@dataclass
class Trial:
    """One training: what was measured, and when."""

    point: Point
    seed: int
    seconds: float
    """Of training, when it was stopped."""
    curve: list[tuple[float, float]] = field(default_factory=list)
    """Seconds of a checkpoint, and how strong it was."""
    why: str = ""
    """What kept it from training."""

    def reached(self, target: float) -> float | None:
        """Seconds of the first checkpoint that was as strong."""
        return next((at for at, strength in self.curve if strength >= target), None)

    def at(self, seconds: float) -> float:
        """The strength of the last checkpoint until then; none is the weakest."""
        there = [strength for when, strength in self.curve if when <= seconds]
        return there[-1] if there else -math.inf

    def plain(self, preset: Point) -> dict[str, Any]:
        """As JSON has it."""
        told = {
            "settings": dict(self.point.values),
            "beside_preset": self.point.beside(preset),
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            "curve": [[round(at, 2), round(value, 4)] for at, value in self.curve],
        }
        return told | ({"why": self.why} if self.why else {})


Trainer = Callable[[Point, int, float, float | None], Trial]
"""Trains a point with a seed for so many seconds, or until a strength is reached."""


@dataclass
class Found:
    """What came of it."""

    preset: Point
    best: Point
    target: float = math.nan
    given: bool = False
    """Somebody named the target."""
    trials: list[Trial] = field(default_factory=list)
    finalist: Point | None = None
    """Whoever met the preset with several seeds; the best, if it was faster."""
    ended: Ended = "done"
    seconds: float = 0.0

    @property
    def better(self) -> bool:
        """Whether something reached the target sooner than the preset."""
        return self.best != self.preset

    def last(self, point: Point) -> list[Trial]:
        """The last training of a point with each seed."""
        found = {t.seed: t for t in self.trials if t.point == point and not t.why}
        return list(found.values())

    def times(self, point: Point) -> list[float | None]:
        """Seconds to the target by seed; None: not reached in its time."""
        return [trial.reached(self.target) for trial in self.last(point)]

    def at_least(self, point: Point) -> list[float]:
        """The same, with how long it trained where it did not reach the target."""
        times = ((trial.reached(self.target), trial.seconds) for trial in self.last(point))
        return [seconds if time is None else time for time, seconds in times]

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        others = [self.finalist] if self.finalist else []
        return {
            "better": self.better,
            "settings": dict(self.best.values),
            "beside_preset": self.best.beside(self.preset),
            "target": None if math.isnan(self.target) else round(self.target, 4),
            "preset": dict(self.preset.values),
            "preset_times_s": self.times(self.preset),
            "finalist": dict(self.finalist.values) if self.finalist else None,
            "finalist_times_s": [time for point in others for time in self.times(point)],
            "ended": self.ended,
            "seconds": round(self.seconds, 2),
            "trials": [trial.plain(self.preset) for trial in self.trials],
        }


class Halving:
    """Successive halving from the preset; `found` is what it has found so far."""

    def __init__(
        self,
        space: Space,
        train: Trainer,
        clock: Clock,
        *,
        target: float = 0.0,
        tell: Callable[[str], Any] = lambda doing: None,
    ) -> None:
        """Prepare. target: 0 for what the preset reaches in a quarter of the time."""
        self.space, self.train, self.clock, self.tell = space, train, clock, tell
        self.found = Found(space.preset, space.preset)
        self.seed = space.base.seed
        self.extra_s = 0.0
        """That a training takes longer than it was told to: its last evaluation."""
        if target:
            self.found.target, self.found.given = target, True

    def run(self) -> Found:
        """Set the target, halve the candidates, and let the last one meet the preset."""
        found = self.found
        try:
            self.set_target()
            candidates = self.halve(self.candidates())
            if candidates and not math.isnan(found.target):
                found.finalist = candidates[0]
                self.meet(candidates[0])
                self.decide(candidates[0])
        except BaseException:
            found.ended = "interrupted"
            raise
        finally:
            found.seconds = self.clock.gone
        return found

    def set_target(self) -> None:
        """Train the preset for a quarter of the time."""
        self.tell("the preset")
        goal = self.found.target if self.found.given else None
        trial = self.go(self.space.preset, 0, QUARTER * self.clock.seconds, goal)
        if not self.found.given and trial.curve:
            last = [strength for _, strength in trial.curve[-2:]]
            self.found.target = sum(last) / len(last)

    def candidates(self) -> list[Point]:
        """Neighbours of the preset, one value away, as many as there is time for."""
        preset, found = self.space.preset, dict[Point, None]()
        for move in self.space.moves(1):
            point = self.space.shifted(preset, move)
            if point is not None and not self.space.why_not(point):
                found[point] = None
        room = int(RUNGS * self.clock.seconds / 2 / SHORTEST_S)
        return list(found)[: max(min(room, MOST_CANDIDATES), 1)]

    def halve(self, points: list[Point]) -> list[Point]:
        """Train all for a short time, the better half for longer, until one is left."""
        rungs = max(math.ceil(math.log2(max(len(points), 1))), 1)
        rung_s = RUNGS * self.clock.seconds / rungs
        while points:
            each = max(rung_s / len(points), SHORTEST_S)
            trials = []
            for point in points:
                if each + self.extra_s > self.clock.left:
                    self.found.ended = "time"
                    break
                self.tell(f"{point.beside(self.space.preset)}, for {each:.0f} s")
                trials.append(self.go(point, 0, each, self.found.target))
            trials = [trial for trial in trials if trial.curve]
            trials.sort(key=lambda trial: self.rank(trial, each))
            points = [trial.point for trial in trials[: max(len(trials) // 2, 1)]]
            if len(points) <= 1:
                break
        return points

    def rank(self, trial: Trial, seconds: float) -> tuple[float, float]:
        """Sooner at the target comes first, then stronger at the end of its time."""
        time = trial.reached(self.found.target)
        return (math.inf if time is None else time), -trial.at(seconds)

    def meet(self, point: Point) -> None:
        """Train the last one and the preset to the target, with as many seeds each.

        One that takes longer than the preset did is not sooner, whatever the other seeds do.
        """
        preset = self.space.preset
        runs = [(point, seed) for seed in range(SEEDS)]
        for one, seed in [*runs, *((preset, seed) for seed in range(1, SEEDS))]:
            cap = min(QUARTER * self.clock.seconds, self.clock.left - self.extra_s)
            if cap < SHORTEST_S:
                self.found.ended = "time"
                return
            name = one.beside(preset) or "the preset"
            self.tell(f"{name} to {self.found.target:.3f}, seed {self.seed + seed}")
            trial = self.go(one, seed, cap, self.found.target)
            if one == point and trial.reached(self.found.target) is None:
                return

    def decide(self, point: Point) -> None:
        """Recommend it only if every seed of it was sooner than every seed of the preset."""
        mine, theirs = self.found.times(point), self.found.at_least(self.found.preset)
        known = [time for time in mine if time is not None]
        enough = len(mine) >= SEEDS and len(theirs) >= SEEDS and len(known) == len(mine)
        if enough and max(known) < min(theirs):
            self.found.best = point

    def go(self, point: Point, seed: int, seconds: float, target: float | None) -> Trial:
        """Train once, and keep what came of it."""
        began = self.clock.gone
        trial = self.train(point, self.seed + seed, seconds, target)
        self.found.trials.append(trial)
        self.extra_s = max(self.extra_s, self.clock.gone - began - seconds)
        return trial


def told_times(times: Sequence[float | None]) -> str:
    """Times to a target in words: the middle and the range, or that some did not reach it."""
    known = [time for time in times if time is not None]
    if not known:
        return "not reached" if times else "not tried"
    told = f"{median(known):.1f} s ({min(known):.1f}..{max(known):.1f})"
    seeds = f"{len(times)} seed{'s' * (len(times) > 1)}"
    missed = len(times) - len(known)
    return f"{told}, {seeds}" + (f", {missed} of them not in its time" if missed else "")
