from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparring.speed.timer import TimerProcess


@pytest.fixture(scope="session")
def timer() -> Iterator[TimerProcess]:
    """One process for all tests that leave it alive."""
    with TimerProcess() as made:
        yield made
