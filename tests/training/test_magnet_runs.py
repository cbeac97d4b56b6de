"""Runs with a magnet: they resume to the bit, start from others, and refuse what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import sparring
from sparring.errors import ConfigError
from sparring.store.policies import load_policy
from sparring.training.records.metrics import read
from training.run_helpers import settings, trained

MAGNET: dict[str, Any] = {"updates": 6, "keep": 6, "ppo": {"magnet": 0.5, "magnet_period": 4}}


def test_a_run_is_resumed_between_two_copies(tmp_path: Path) -> None:
    run = trained(tmp_path, **MAGNET).run
    curve = read(run)["losses/magnet_kl"][2]
    assert len(curve) == 6 and min(curve) > -1e-6 and max(curve) > 0
    again = sparring.resume(run, number=2, quiet=True).run
    one, other = (load_policy(where / "checkpoints" / "00000006") for where in (run, again))
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_it_begins_at_the_policy_that_a_run_starts_from(tmp_path: Path) -> None:
    first = trained(tmp_path, updates=2).run
    run = trained(tmp_path, init=str(first), **MAGNET).run
    assert read(run)["losses/magnet_kl"][2][0] < 0.01


def test_a_phase_gives_it_weight(tmp_path: Path) -> None:
    phases = ({"name": "free", "decisions": 200}, {"name": "held", "ppo": {"magnet": 1.0}})
    run = trained(tmp_path, updates=4, keep=4, phases=phases).run
    assert len(read(run)["losses/magnet_kl"][2]) == 2
    again = sparring.resume(run, number=3, quiet=True).run
    one, other = (load_policy(where / "checkpoints" / "00000004") for where in (run, again))
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_what_cannot_be_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo\.magnet -1 must be at least 0"):
        settings(tmp_path, ppo={"magnet": -1})
    uniform = {"magnet": 0.1, "magnet_period": 0}
    with pytest.raises(ConfigError, match=r"ppo\.magnet_period 0 needs a game with discrete"):
        sparring.train("laser_hockey", ppo=uniform, device="cpu", updates=1, runs=str(tmp_path))
