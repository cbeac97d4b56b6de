"""Where the time goes: every block counts, for itself if it is inside another, also if it fails."""

from __future__ import annotations

import time

import pytest

from sparring.phases import Timing


def test_blocks_add_up_under_their_names_until_they_are_taken() -> None:
    timing, started = Timing(), time.perf_counter()
    with timing("update"):
        with timing("update"), timing("sampling"):
            pass
        with pytest.raises(ValueError, match="wrong"), timing("failed"):
            raise ValueError("wrong")
    whole = time.perf_counter() - started
    found = timing.take()
    assert list(found) == ["sampling", "update", "failed"]
    assert all(seconds > 0 for seconds in found.values())
    assert sum(found.values()) <= whole
    assert timing.take() == {}


def test_laps_count_inside_of_a_block_and_not_for_it() -> None:
    timing, started = Timing(), time.perf_counter()
    with timing("inference"):
        timing.start()
        for name in ("select", "evaluate", "select"):
            sum(range(1000))
            timing.lap(name)
    found = timing.take()
    assert list(found) == ["select", "evaluate", "inference"]
    assert min(found.values()) > 0
    assert sum(found.values()) <= time.perf_counter() - started
