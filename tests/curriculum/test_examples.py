"""The curricula among the examples run as they stand."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from sparring.games.rules import Rules
from sparring.store.folders import CONFIG
from sparring.training.train import resume, train

EXAMPLES = Path(__file__).parents[2] / "examples" / "curricula"
SMALL: dict[str, Any] = {
    **{"quiet": True, "device": "cpu", "threads": 1, "tensorboard": False},
    **{"eval": {"off": True}, "net": {"hidden": (8,)}},
}


@pytest.mark.parametrize(
    ("game", "file", "changes"),
    [
        ("laser_hockey", "hockey.json", {"replay": {"warmup": 100, "ratio": 1.0}}),
        pytest.param(
            *("laser_hockey_discrete", "hockey.json", {"algo": "dqn", "replay": {"warmup": 100}}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("skull_king", "skull_king.toml", {"collect": {"games": 8, "steps": 16}}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_example_trains_and_goes_on(
    game: str, file: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    settings = {**SMALL, **changes, "runs": str(tmp_path), "curriculum": str(EXAMPLES / file)}
    agent = train(game, decisions=600, **settings)
    assert agent.ended == "done"
    kept = tomllib.loads((agent.run / CONFIG).read_text())
    assert len(kept["phases"]) == (3 if game == "skull_king" else 4)
    assert resume(str(agent.run), decisions=1200, quiet=True).ended == "done"


def test_rounds_may_change_in_skull_king() -> None:
    assert Rules("skull_king").fields["episode"].live
