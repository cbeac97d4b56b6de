"""Bars and sparklines out of letters."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from sparring.draw.text_charts import (
    LEVELS,
    bar,
    is_ascii_only,
    shorten_middle,
    sparkline,
    to_ascii,
)


def test_a_bar_of_an_equal_ends_at_the_tick() -> None:
    assert bar(0.25, 20, tick=0.25).plain == "━━━━━┼──────────────"
    assert bar(0.5, 20, tick=0.25).plain == "━━━━━╋━━━━──────────"
    assert bar(1.0, 4, tick=1.0).plain == "━━━╋"
    assert bar(7.0, 4).plain == "━━━━"


def test_a_sparkline_rises_with_its_series() -> None:
    assert sparkline(range(7), 8) == LEVELS
    assert sparkline([0.5] * 3, 8) == "▄▄▄"
    assert sparkline([0.0, 1.0], 8, low=0, high=1) == "▁▇"
    assert len(sparkline(range(1000), 12)) == 12
    assert sparkline([math.nan, 1.0, math.inf], 5) == "▄"
    assert sparkline([], 5) == ""


@pytest.mark.parametrize("width", range(1, 30))
def test_a_shortened_name_fits_and_keeps_both_ends(width: int) -> None:
    name = "runs/20260101-skull_king"
    short = shorten_middle(name, width)
    assert len(short) == min(width, len(name))
    if 3 <= width < len(name):
        assert short[0] == "r"
        assert short[-1] == "g"


def test_what_a_terminal_can_show_follows_encoding_and_locale() -> None:
    utf8 = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    ascii_ = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert is_ascii_only(ascii_, {"LANG": "en_GB.UTF-8"})
    assert not is_ascii_only(utf8, {})
    assert not is_ascii_only(utf8, {"LANG": "C", "LC_ALL": "en_GB.UTF-8"})
    assert is_ascii_only(utf8, {"LANG": "en_GB.UTF-8", "LC_ALL": "C"})
    text = f"{LEVELS}━─╋┼│╭╮╰╯…±é"
    assert to_ascii(text).isascii()
    assert len(to_ascii(text)) == len(text)
