"""The search holds what it promises on surfaces that are known."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from sparring.commands.tune import cells, next_command, verdict
from sparring.config import TrainConfig
from sparring.config.tools import TuneConfig
from sparring.errors import SparringError
from sparring.sweep.grid import Grid
from sparring.sweep.parameters import GAMES, THREADS, TuneCandidate, parameter
from sparring.sweep.speed_search import SpeedResult, SpeedSearch
from sparring.sweep.timings import RaceResult, SearchBudget
from sweep.surface import BATCH, CONFIG, GRID, RULES, KnownTimer, Surface, rows

GRID_S, OPENING_S, SHARE = 4.0, 0.7, 0.3


def hill(games: float, minibatch: float, threads: int, *, together: float = 0.0) -> Surface:
    """Highest at some values; `together`: how much a ridge lies across games and minibatch."""

    def rate(config: TrainConfig) -> float:
        x = math.log2(config.collect.games / games)
        y = math.log2(config.ppo.minibatch / minibatch)
        off = 0.06 * x * x + 0.05 * y * y - together * x * y
        return 40_000 * math.exp(-off) * (1.0 if config.threads == threads else 0.7)

    return rate


def points_of(grid: Grid) -> list[TuneCandidate]:
    """All points of a grid that can be opened."""
    names = [one.name for one in grid.parameters]
    values = itertools.product(*(one.choices for one in grid.parameters))
    points = [TuneCandidate(tuple(zip(names, one, strict=True))) for one in values]
    return [point for point in points if not grid.unsupported_reason(point)]


def grid_time(grid: Grid, surface: Surface) -> float:
    """Seconds that timing every point alike would take."""
    configs = [grid.config(point) for point in points_of(grid)]
    rates = [(config, surface(config)) for config in configs]
    return sum(GRID_S + OPENING_S + 2 * rows(config) / rate for config, rate in rates if rate > 0)


def search(
    surface: Surface, *, seconds: float = 0.0, noise: float = 0.0, seed: int = 0
) -> tuple[SpeedResult, KnownTimer, Grid]:
    timer = KnownTimer(surface, noise=noise, seed=seed)
    grid = Grid(CONFIG, GRID, RULES)
    budget = SearchBudget(seconds or SHARE * grid_time(grid, surface), timer.budget)
    return SpeedSearch(timer, grid, budget).run(), timer, grid


def share_of_best(found: SpeedResult, surface: Surface, grid: Grid) -> float:
    best = max(surface(grid.config(point)) for point in points_of(grid))
    return surface(grid.config(found.best)) / best


@pytest.mark.parametrize(
    "surface",
    [
        pytest.param(hill(64, 4096, 2), id="few games, large batches"),
        pytest.param(hill(512, 4096, 1), id="everything larger, one thread"),
        pytest.param(hill(128, 256, 2), id="smaller"),
        pytest.param(hill(512, 4096, 2, together=0.04), id="a ridge across two parameters"),
        pytest.param(hill(256, 1024, 2), id="the preset is best"),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_nearly_the_best_of_a_grid_is_found_in_a_third_of_its_time(
    surface: Surface, noise: float
) -> None:
    shares = []
    for seed in range(3 if noise else 1):
        found, timer, grid = search(surface, noise=noise, seed=seed)
        assert timer.now <= SHARE * grid_time(grid, surface) * 1.03
        shares.append(share_of_best(found, surface, grid))
    assert statistics.median(shares) >= 0.95, shares


@pytest.mark.parametrize(
    ("noise", "hills", "most"),
    [
        (0.0, 20, 20),
        pytest.param(0.06, 50, 47, marks=pytest.mark.slow),
        *(
            pytest.param(noise, 100, most, marks=pytest.mark.slow)
            for noise, most in ((0.0, 100), (0.03, 98), (0.06, 94))
        ),
    ],
)
def test_of_hills_drawn_by_lot_most_are_climbed(noise: float, hills: int, most: int) -> None:
    climbed = 0
    for seed in range(hills):
        lot = random.Random(seed)
        top = 2 ** lot.uniform(6, 9), 2 ** lot.uniform(8, 12), lot.choice((1, 2))
        surface = hill(*top, together=lot.uniform(0.0, 0.04))
        found, _, grid = search(surface, noise=noise, seed=seed)
        climbed += share_of_best(found, surface, grid) >= 0.95
    assert climbed >= most


def test_what_is_recommended_was_timed_in_turn_with_the_preset() -> None:
    surface = hill(64, 4096, 2)
    found, timer, grid = search(surface, noise=0.02)
    assert found.better and found.confirmed and found.gain and found.gain.turns >= 5
    trial = found.trial(found.best)
    assert trial.gain == found.gain and trial.state == "faster"
    timed = [rates for rates in timer.timed.values() if found.rate in rates]
    assert timed, "the rate that is claimed is one that was measured"
    true = surface(grid.config(found.best)) / surface(grid.config(found.preset)) - 1
    assert found.gain.low <= true * 1.02 and true * 0.98 <= found.gain.high


def test_nothing_better_is_the_preset_itself() -> None:
    for seed in range(2):
        found, _, grid = search(hill(256, 1024, 2), noise=0.03, seed=seed)
        assert found.best == grid.preset and not found.better and found.gain is None
    assert found.plain()["settings"] == dict(grid.preset)


def test_rows_progress_verdict_and_next_step_agree_on_what_did_not_hold(tmp_path: Path) -> None:
    """A challenger that was lucky in its races and is as fast as the preset in full."""
    lucky = [64_000.0] * 4

    def surface(config: TrainConfig) -> float:
        large = config.ppo.minibatch == 4096
        return lucky.pop() if large and lucky else 40_000.0 + 400 * large

    timer, told = KnownTimer(surface, noise=0.004), list[str]()
    grid = Grid(CONFIG, (parameter(BATCH, (1024, 4096), 1024),), RULES)
    budget = SearchBudget(120.0, timer.budget)
    found = SpeedSearch(timer, grid, budget, watch=told.append).run()

    assert not found.better and found.tried_best and found.lost
    assert any("so far, to be confirmed" in doing for doing in told)
    assert told[-1].startswith("in full ") and "+60%" not in told[-1]
    name, _, gain, turns, _, said = cells(found.trial(found.tried_best.point), found)
    assert gain == str(found.lost) and turns == str(found.lost.turns)
    assert name == "minibatch 4096" and said == f"not confirmed: {gain} when it was timed in full"
    assert found.lost.low < found.lost.value < found.lost.high
    assert verdict(found).startswith("nothing was better than the preset")
    assert "not confirmed" in verdict(found)
    given = TuneConfig("tic_tac_toe", set=("seats=2",), algo="ppo")
    again = "sparring train tic_tac_toe --algo ppo --set seats=2"
    assert next_command(given, tmp_path / "tuned.toml", better=found.better) == again


def test_what_lost_to_a_leader_that_did_not_hold_is_not_said_to_equal_the_preset() -> None:
    lost = RaceResult(before=0.5, variance=0.01, mean=-0.2, error=0.05, turns=2, won=False)
    assert lost.gain().value == pytest.approx(math.expm1(0.3))
    in_full = lost.gain(scale=0.0)
    assert in_full.value == pytest.approx(math.expm1(-0.2)) and in_full.low < in_full.high


def test_what_runs_out_of_memory_is_marked_and_passed_over() -> None:
    def surface(config: TrainConfig) -> float:
        return 0.0 if config.collect.games > 256 else hill(512, 4096, 2)(config)

    found, _, grid = search(surface)
    marked = [trial for trial in found.trials if trial.state == "memory"]
    assert len(marked) == 1, "whatever is as large is not tried after that"
    assert "memory" in marked[0].why
    assert found.best[GAMES] == 256 and share_of_best(found, surface, grid) >= 0.95


def test_settings_that_are_refused_do_not_end_the_search() -> None:
    def surface(config: TrainConfig) -> float:
        return -1.0 if config.threads == 1 else hill(512, 4096, 2)(config)

    found, _, _ = search(surface, seconds=60.0)
    assert found.best[GAMES] == 512 and found.best[BATCH] == 4096
    assert {trial.state for trial in found.trials if trial.point[THREADS] == 1} == {"failed"}


def test_a_limit_of_memory_holds_for_guesses_and_for_what_is_measured() -> None:
    grid = Grid(CONFIG, GRID, RULES)
    large = grid.preset.replaced({GAMES: 512})
    surface = hill(512, 4096, 2)
    timer, limited = KnownTimer(surface), Grid(CONFIG, GRID, RULES, False, grid.bytes(large) - 1)
    timer.bare = 0
    found = SpeedSearch(timer, limited, SearchBudget(60.0, timer.budget)).run()
    assert found.best[GAMES] != 512
    assert all(trial.gain is None for trial in found.trials if trial.point[GAMES] == 512)
    # Nobody guessed it, and it shows when it is timed.
    timer = KnownTimer(surface)
    timer.weigh = lambda config: 10**9 if config.collect.games == 512 else 10**7
    limited = Grid(CONFIG, GRID, RULES, max_bytes=5 * 10**8)
    found = SpeedSearch(timer, limited, SearchBudget(60.0, timer.budget)).run()
    seen = [trial for trial in found.trials if trial.point[GAMES] == 512]
    assert seen and {trial.state for trial in seen} == {"memory"} and found.best[GAMES] != 512


def test_only_as_many_are_open_as_there_is_room_for() -> None:
    grid = Grid(CONFIG, GRID, RULES)
    smallest = grid.bytes(grid.preset.replaced({GAMES: 64}))
    for room, most in ((0, 3), (smallest, 1)):  # no two fit into what the smallest needs
        timer = KnownTimer(hill(128, 1024, 2))
        found = SpeedSearch(timer, grid, SearchBudget(120.0, timer.budget), room=room).run()
        assert timer.max_open <= most
        assert found.best[GAMES] == 128


def test_time_is_kept_and_what_is_found_stays_when_somebody_stops_it() -> None:
    surface, grid = hill(64, 4096, 2), Grid(CONFIG, GRID, RULES)
    timer = KnownTimer(surface)

    def stop(doing: str) -> None:
        if timer.now > 12:
            raise KeyboardInterrupt

    running = SpeedSearch(timer, grid, SearchBudget(100.0, timer.budget), watch=stop)
    with pytest.raises(KeyboardInterrupt):
        running.run()
    found = running.found
    assert found.ended == "interrupted" and found.better and not found.confirmed
    assert found.gain and found.trial(found.best).gain == found.gain
    # With hardly any time only the preset is timed.
    timer = KnownTimer(surface)
    found = SpeedSearch(timer, grid, SearchBudget(1.0, timer.budget)).run()
    assert not found.better and len(found.trials) == 1 and found.ended == "time"


def test_a_preset_that_cannot_be_timed_is_an_error_in_words() -> None:
    fails: list[Callable[[TrainConfig], float]] = [lambda config: 0.0, lambda config: -1.0]
    for surface in fails:
        with pytest.raises(SparringError, match="cannot be timed"):
            search(surface, seconds=5.0)


def test_a_switch_that_was_decided_is_asked_again_where_the_rest_has_moved() -> None:
    def threads_pay_in_large_batches(config: TrainConfig) -> float:
        x = math.log2(config.collect.games / 64)
        y = math.log2(config.ppo.minibatch / 256)
        second = -0.83 + 0.07 * x + 0.2 * y if config.threads == 2 else 0.0
        return 20_000 * math.exp(0.05 * x + 0.13 * y + second)

    found, _, grid = search(threads_pay_in_large_batches)
    assert found.best[THREADS] == 2
    assert share_of_best(found, threads_pay_in_large_batches, grid) >= 0.95
