"""Runs with a critic that sees what is hidden: resumed to the bit, and played without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import sparring
from sparring.store.policies import load_policy
from sparring.training.records.metrics import read
from training.run_helpers import TINY

FULL: dict[str, Any] = {
    **TINY,
    "net": {"hidden": (16,), "critic": "full", "critic_hidden": (8,)},
    "updates": 4,
    "keep": 4,
    "device": "cpu",
    "quiet": True,
}


def test_a_run_is_resumed_to_the_bit(tmp_path: Path) -> None:
    agent = sparring.train("leduc_poker", runs=str(tmp_path), **FULL)
    run = agent.run
    assert len(read(run)["losses/critic_loss"][2]) == 4
    again = sparring.resume(run, number=2, quiet=True).run
    folders = [where / "checkpoints" / "00000004" for where in (run, again)]
    one, other = map(load_policy, folders)
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    critics = [(folder / "critic.safetensors").read_bytes() for folder in folders]
    assert critics[0] == critics[1]
    assert read(again)["losses/critic_loss"][2][-1] == read(run)["losses/critic_loss"][2][-1]
    check_without(run, one, tmp_path)


def check_without(run: Path, policy: sparring.Policy, tmp_path: Path) -> None:
    """Nothing that plays has anything of it, nor have runs that start there or meet it."""
    assert policy.has_values and policy.net.config.critic == "own"
    settings = {**FULL, "net": {"hidden": (16,)}, "updates": 1, "init": str(run)}
    sparring.train("leduc_poker", runs=str(tmp_path), **settings)
    opponents = ("self=1", "past=1", f"{run}=1")
    met = sparring.train("leduc_poker", runs=str(tmp_path), **{**FULL, "opponents": opponents})
    assert met.ended == "done"
