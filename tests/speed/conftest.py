from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparring.speed.stand import Gauge


@pytest.fixture(scope="session")
def gauge() -> Iterator[Gauge]:
    """One process for all tests that leave it alive."""
    with Gauge() as made:
        yield made
