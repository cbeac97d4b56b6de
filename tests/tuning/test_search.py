"""The search holds what it promises on surfaces that are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from tuning.surface import KnownGauge, Surface

from sparring.config import TrainConfig
from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.training.planning.settings import with_preset
from sparring.tuning.knobs import GAMES, STEPS, THREADS, Ground, Knob, Point, chosen, knobs_of
from sparring.tuning.outcome import Outcome
from sparring.tuning.search import Clock, Search
from sparring.tuning.space import Space

BATCH = "ppo.minibatch"
CONFIG = with_preset("tic_tac_toe")
RULES = Rules("tic_tac_toe")
GRID = (
    Knob(GAMES, (64, 128, 256, 512), 256),
    Knob(BATCH, (256, 1024, 4096), 1024),
    Knob(THREADS, (1, 2), 2),
)
"""24 points, as benchmarks/tuning.py has them."""


def hill(games: float, minibatch: float, threads: int, *, together: float = 0.0) -> Surface:
    """Highest at some values; `together`: how much a ridge lies across games and minibatch."""

    def rate(config: TrainConfig) -> float:
        x = math.log2(config.collect.games / games)
        y = math.log2(config.ppo.minibatch / minibatch)
        off = 0.06 * x * x + 0.05 * y * y - together * x * y
        return 20_000 * math.exp(-off) * (1.0 if config.threads == threads else 0.7)

    return rate


def points_of(space: Space) -> list[Point]:
    names = [knob.name for knob in space.knobs]
    values = itertools.product(*(knob.values for knob in space.knobs))
    return [Point(tuple(zip(names, one, strict=True))) for one in values]


def search(surface: Surface, seconds: float, **how: float) -> tuple[Outcome, KnownGauge, Space]:
    gauge = KnownGauge(surface, noise=how.get("noise", 0.0), seed=int(how.get("seed", 0)))
    space = Space(CONFIG, GRID, RULES)
    found = Search(gauge, space, Clock(seconds, gauge.clock)).run()
    return found, gauge, space


def share_of_best(found: Outcome, surface: Surface, space: Space) -> float:
    legal = [point for point in points_of(space) if not space.why_not(point)]
    best = max(surface(space.config(point)) for point in legal)
    return surface(space.config(found.best)) / best


@pytest.mark.parametrize(
    "surface",
    [
        pytest.param(hill(64, 4096, 2), id="few games, large batches"),
        pytest.param(hill(512, 4096, 1), id="everything larger, one thread"),
        pytest.param(hill(128, 256, 2), id="smaller"),
        pytest.param(hill(512, 4096, 2, together=0.04), id="a ridge across two knobs"),
        pytest.param(hill(256, 1024, 2), id="the preset is best"),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_best_of_a_grid_is_nearly_reached_in_a_third_of_its_time(
    surface: Surface, noise: float
) -> None:
    shares = []
    for seed in range(8):
        found, gauge, space = search(surface, 0.3 * 24 * 5.0, noise=noise, seed=seed)
        assert gauge.now <= 0.3 * 24 * 5.0 + 1.0
        shares.append(share_of_best(found, surface, space))
    assert sorted(shares)[1 if noise else 0] >= 0.95, shares
