"""Where the time goes: every block counts, also one inside another and one that fails."""

from __future__ import annotations

import time

import pytest

from sparring.learn.learner import Timing


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
    assert found["sampling"] + found["failed"] < found["update"] < 2 * whole
    assert timing.take() == {}
