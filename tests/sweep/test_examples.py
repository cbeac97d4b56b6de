"""The sweeps that come along can be begun: every end of every range is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparring.config import TrainConfig
from sparring.sweep.file import read_sweep
from sparring.sweep.settings import check_points, may_share, ranges_shared

FOLDER = Path(__file__).parents[2] / "examples" / "sweeps"
SHARED = {
    "skull_king": ["ppo.epochs", "collect.games"],
    "kuhhandel": ["ppo.epochs", "collect.games"],
    "cage2_orders": [],
    "two_cores": ["ppo.minibatch", "ppo.epochs", "net.activation"],
}
"""What members of one population would all have the same of."""


def test_every_file_is_looked_at() -> None:
    assert {file.stem for file in FOLDER.glob("*.toml")} == set(SHARED)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SHARED)
def test_an_example_can_be_begun(name: str) -> None:
    file = read_sweep(str(FOLDER / f"{name}.toml"))
    check_points(file)
    assert ranges_shared(file) == SHARED[name]


def test_trials_that_pay_roles_otherwise_are_no_members_of_one_population() -> None:
    """Their decisions are linked otherwise; weights alone may differ."""
    plain = TrainConfig(game="skull_king", rewards=("win=1",))
    assert may_share(plain, replace(plain, rewards=("win=2",)))
    assert not may_share(plain, replace(plain, rewards=("manager.win=1",)))
