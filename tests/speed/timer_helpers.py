"""Settings to be measured that cost next to nothing."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.speed.rounds import steady
from sparring.training.planning.settings import merged, with_preset


def small(game: str = "tic_tac_toe", **changes: object) -> TrainConfig:
    """Settings whose rounds take a few milliseconds."""
    tiny = {"collect": {"games": 16, "steps": 16}, "net": {"hidden": [8]}, "threads": 1}
    return steady(merged(with_preset(game), {**tiny, **changes}, "test"))
