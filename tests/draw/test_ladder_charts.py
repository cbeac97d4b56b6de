"""Matrix, ladder and past ratings show the numbers that they were given."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from sparring.draw.charts.chart import Series
from sparring.draw.charts.league import (
    Payoff,
    Rung,
    color_for,
    ladder_page,
    past_page,
    payoff_page,
)
from sparring.draw.charts.page import COLORS, ChartPage, render


def pixels(page: ChartPage) -> npt.NDArray[np.uint8]:
    with Image.open(io.BytesIO(render(page, ".png"))) as image:
        return np.array(image.convert("RGB"))


def is_color(image: npt.NDArray[np.uint8], color: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (image == list(bytes.fromhex(color[1:]))).all(axis=2)
    return found


@pytest.mark.parametrize("parity", [0.5, 0.25])
def test_equals_are_white_and_colors_grow_with_the_distance(parity: float) -> None:
    assert color_for(parity, parity) == "#ffffff"
    red = [int(color_for(share, parity)[1:3], 16) for share in (parity, 0.9, 1.0)]
    blue = [int(color_for(share, parity)[5:7], 16) for share in (parity, 0.1, 0.0)]
    assert red == sorted(red, reverse=True)
    assert blue == sorted(blue, reverse=True)
    assert red[2] < 120
    assert blue[2] < 120


@pytest.mark.few(2)
@pytest.mark.parametrize("players", [2, 15, 30, 41])
def test_a_cell_has_the_color_of_its_share(players: int) -> None:
    share = np.full((players, players), np.nan)
    share[0, 1], share[1, 0] = 0.9, 0.1
    names = tuple(f"player {at}" for at in range(players))
    image = pixels(payoff_page(Payoff(names, share, share - 0.02, share + 0.02), title="who"))
    beats, beaten = (is_color(image[:-130], color_for(s, 0.5)) for s in (0.9, 0.1))
    assert beats.any()
    assert beaten.any()
    # The first row's is above and to the right of the second row's.
    assert np.nonzero(beats)[0].mean() < np.nonzero(beaten)[0].mean()
    assert np.nonzero(beats)[1].mean() > np.nonzero(beaten)[1].mean()


def test_a_longer_interval_is_a_longer_bar_and_anchors_have_none() -> None:
    rungs = [
        Rung("sure", 500, 490, 510),
        Rung("unsure", 300, 100, 500),
        Rung("fixed", 0, 0, 0, True),
    ]
    image = is_color(pixels(ladder_page(rungs, title="ladder")), COLORS[0])
    rows = [image[110 + 6 + 44 * at : 110 + 6 + 44 * (at + 1)].any(axis=0) for at in range(3)]
    sure, unsure, fixed = (np.ptp(np.flatnonzero(row)) for row in rows)
    assert unsure > 8 * sure
    assert fixed < 14


def test_ladders_of_any_length_are_drawn() -> None:
    for count in (1, 45):
        image = pixels(ladder_page([Rung("x" * 90, at, at, at) for at in range(count)], title="l"))
        assert image.shape[1] == 1200


def test_ratings_over_time_have_a_line_per_player() -> None:
    x = np.linspace(0, 1e6, 10)
    players = [
        Series("main", 0, x, x / 1e3, x / 1e3 - 50, x / 1e3 + 50),
        Series("past", 0, x, 0 * x),
    ]
    image = pixels(past_page(players, title="ratings"))
    assert is_color(image, COLORS[0]).any()
    assert is_color(image, COLORS[1]).any()
    assert render(past_page([], title="nothing yet"), ".png")
