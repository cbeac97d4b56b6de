"""Averaged weights: their formula, who plays them, what is saved; training goes on as without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sparring
from sparring.learn.averaging import TRAINED, average_step
from sparring.store import checkpoint
from sparring.training.callbacks import CallbackRun

SHARE = 0.4
GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "ppo": ("leduc_poker", {"average": 0.0}),
    "dqn": ("tic_tac_toe", {"replay": {"warmup": 100}}),
    "pqn": ("tic_tac_toe", {"dqn": {"mode": "rollouts"}}),
    "sac": ("laser_hockey", {"replay": {"warmup": 100}}),
    "gumbel": ("tic_tac_toe", {}),
}


def train(folder: Path, algo: str, name: str, **options: Any) -> sparring.Agent:
    game, settings = GAMES[algo]
    usual: dict[str, Any] = {"updates": 4, "seed": 3, "threads": 1, "quiet": True}
    usual |= {"collect": {"games": 16, "steps": 16}, "net": {"hidden": (16,)}, **settings}
    usual |= {"runs": str(folder), "tensorboard": False, "eval": {"off": True}}
    learner = {"pqn": "dqn"}.get(algo, algo)
    return sparring.train(game, algo=learner, name=name, **usual | options)


def tensors_of(folder: Path, name: str) -> dict[str, dict[str, Tensor]]:
    newest = checkpoint.latest(folder / name / "checkpoints")
    assert newest
    return checkpoint.load(newest).tensors


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_step_is_the_share_of_the_update_in_what_is_averaged() -> None:
    assert average_step(0.5, before=900, made=1000) == pytest.approx(100 / 500)
    assert average_step(0.2, before=0, made=100) == 1.0
    assert average_step(0.2, before=100, made=100) == 0.0  # nothing was played


@pytest.mark.few(3)
@pytest.mark.parametrize("algo", GAMES)
def test_training_goes_on_as_without_an_average(tmp_path: Path, algo: str) -> None:
    train(tmp_path, algo, "plain")
    agent = train(tmp_path, algo, "averaged", average=SHARE)
    plain, averaged = tensors_of(tmp_path, "plain"), tensors_of(tmp_path, "averaged")
    assert TRAINED not in plain
    assert equal(averaged[TRAINED], plain["net"])
    assert not equal(averaged["net"], plain["net"])
    assert equal(dict(agent.policy.net.state_dict()), averaged["net"])
    for group in plain.keys() - {"net"}:
        assert equal(averaged[group], plain[group])


def test_the_average_is_that_of_the_weights_of_every_update(tmp_path: Path) -> None:
    weights: list[tuple[int, dict[str, Tensor]]] = []

    def watch(run: CallbackRun) -> None:
        weights.append((run.status.decisions, dict(run.policy().net.state_dict())))

    train(tmp_path, "ppo", "plain", on_update=watch)
    train(tmp_path, "ppo", "averaged", average=SHARE)
    slow, before = weights[0][1], weights[0][0]
    for made, newest in weights[1:]:
        part = min((made - before) / (SHARE * made), 1.0)
        slow = {name: value + part * (newest[name] - value) for name, value in slow.items()}
        before = made
    found = tensors_of(tmp_path, "averaged")["net"]
    for name, value in slow.items():
        torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-7)


def test_an_interrupted_run_repeats_its_average(tmp_path: Path) -> None:
    steady = {"lr": 1e-3, "entropy": 0.05}  # schedules depend on the length of the run
    train(tmp_path, "ppo", "whole", average=SHARE, updates=6, ppo=steady)
    train(tmp_path, "ppo", "parts", average=SHARE, updates=3, ppo=steady)
    sparring.resume(tmp_path / "parts", updates=6, quiet=True)
    whole, parts = tensors_of(tmp_path, "whole"), tensors_of(tmp_path, "parts")
    assert equal(whole["net"], parts["net"])
    assert equal(whole[TRAINED], parts[TRAINED])


def test_a_run_with_its_weights_begins_with_the_average(tmp_path: Path) -> None:
    train(tmp_path, "ppo", "first", average=SHARE)
    first = tensors_of(tmp_path, "first")["net"]
    began: list[dict[str, Tensor]] = []

    def watch(run: CallbackRun) -> None:
        began.append(dict(run.policy().net.state_dict()))

    still = {"lr": 0.0, "entropy": 0.0}
    train(
        tmp_path,
        "ppo",
        "second",
        init=str(tmp_path / "first"),
        updates=1,
        ppo=still,
        on_update=watch,
    )
    same = [name for name in first if "value" not in name]  # the scale of returns is measured
    assert same
    assert all(torch.equal(began[0][name], first[name]) for name in same)


def test_networks_by_role_are_averaged(tmp_path: Path) -> None:
    options: dict[str, Any] = {"hierarchy": {"on": True}, "updates": 3}
    options["collect"] = {"games": 8, "steps": 64}
    agent = sparring.train(
        "skull_king",
        average=SHARE,
        name="roles",
        runs=str(tmp_path),
        quiet=True,
        tensorboard=False,
        eval={"off": True},
        threads=1,
        **options,
    )
    saved = tensors_of(tmp_path, "roles")
    assert not equal(saved[TRAINED], saved["net"])
    assert equal(dict(agent.policy.net.state_dict()), saved["net"])
