"""Successive halving finds who is first at a strength, and claims no more than it saw."""

from __future__ import annotations

import math

import pytest

from sparring.draw.charts.page import render
from sparring.sweep.charts import strength_page
from sparring.sweep.grid import Grid
from sparring.sweep.parameters import GAMES, TuneCandidate, parameter
from sparring.sweep.strength_search import StrengthResult, SuccessiveHalving, describe_times
from sparring.sweep.timings import SearchBudget
from sparring.sweep.trials import FAILED, Trial
from sweep.surface import CONFIG, GRID, RULES

EVERY_S = 1.0


class Learning:
    """Trainings whose curves are known: strength grows toward 1, faster with some settings."""

    def __init__(self, best: int, *, luck: float = 0.0) -> None:
        """Let time stand still until somebody trains."""
        self.best, self.luck, self.now = best, luck, 0.0
        self.asked: list[tuple[TuneCandidate, int]] = []

    def budget(self) -> float:
        """The time that trainings took."""
        return self.now

    def pace(self, point: TuneCandidate, seed: int) -> float:
        """How fast strength grows."""
        off = abs(math.log2(int(point[GAMES]) / self.best))
        return 0.05 * (1 - 0.3 * off) * (1 + self.luck * (seed % 2))

    def __call__(
        self, point: TuneCandidate, seed: int, seconds: float, target: float | None
    ) -> Trial:
        """Train, and measure every second."""
        self.asked.append((point, seed))
        at, curve = 0.0, []
        while at + EVERY_S <= seconds:
            at += EVERY_S
            strength = 1 - math.exp(-self.pace(point, seed) * at)
            curve.append((at, 0.0, strength))
            if target is not None and strength >= target:
                break
        self.now += at + 0.5
        return Trial(0, point, seed=seed, seconds=at, curve=tuple(curve))


def halved(train: Learning, seconds: float = 240.0, target: float = 0.0) -> StrengthResult:
    grid = Grid(CONFIG, GRID, RULES)
    return SuccessiveHalving(grid, train, SearchBudget(seconds, train.budget), target=target).run()


def test_who_is_sooner_with_two_seeds_is_recommended() -> None:
    train = Learning(best=512)
    found = halved(train)
    assert found.better and found.best[GAMES] == 512
    mine, theirs = found.times(found.best), found.times(found.preset)
    assert len(mine) == len(theirs) == 2 and None not in mine
    assert max(time for time in mine if time) < min(time for time in theirs if time)
    assert train.now <= 240.0 * 1.05


def test_the_preset_stays_where_it_is_best_or_seeds_disagree() -> None:
    assert not halved(Learning(best=256)).better
    mixed = halved(Learning(best=512, luck=-0.8))
    assert not mixed.better, "one seed that is late is enough not to be sure"


def test_a_target_that_nobody_reaches_is_told_so() -> None:
    found = halved(Learning(best=512), seconds=60.0, target=0.999)
    assert not found.better and set(found.times(found.preset)) == {None}
    assert describe_times(found.times(found.preset)) == "not reached"
    assert found.plain()["target"] == 0.999


def test_the_picture_shows_every_training() -> None:
    found = halved(Learning(best=512))
    page = strength_page("tuned", ("fact",), found)
    assert len(page.charts[0].series) == len(found.trials)  # type: ignore[union-attr]
    assert f"target {found.target:.3f}" in render(page, ".html").decode()
    assert not strength_page("tuned", (), StrengthResult(found.preset, found.preset)).charts


def test_training_that_fails_is_passed_over() -> None:
    class Failing(Learning):
        def __call__(
            self, point: TuneCandidate, seed: int, seconds: float, target: float | None
        ) -> Trial:
            if int(point[GAMES]) > 256:
                return Trial(0, point, FAILED, seed=seed, why="memory ran out")
            return super().__call__(point, seed, seconds, target)

    found = halved(Failing(best=512))
    assert not found.better
    assert next(trial.why for trial in found.trials if trial.why) == "memory ran out"


def test_a_preset_without_neighbors_is_no_error() -> None:
    train = Learning(best=512)
    grid = Grid(CONFIG, tuple(parameter(k.name, (k.start,), k.start) for k in GRID), RULES)
    found = SuccessiveHalving(grid, train, SearchBudget(240.0, train.budget)).run()
    assert not found.better and found.finalist is None


@pytest.mark.parametrize("seconds", [1.0, 8.0])
def test_hardly_any_time_is_no_claim(seconds: float) -> None:
    found = halved(Learning(best=512), seconds=seconds)
    assert not found.better and found.best == found.preset
