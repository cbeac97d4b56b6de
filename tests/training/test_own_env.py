"""Training on an environment object of the user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparring
from sparring.training.records.metrics import read

gymnasium = pytest.importorskip("gymnasium")

QUICK = {"net": {"hidden": (64, 64)}, "tensorboard": False, "quiet": True}


def test_cartpole_is_learned(tmp_path: Path) -> None:
    env = gymnasium.make_vec("CartPole-v1", num_envs=32, vectorization_mode="sync")
    ppo = {"epochs": 6, "minibatch": 512, "lr": [["0%", 2e-3], ["100%", 2e-4]]}
    with pytest.warns(sparring.errors.SparringWarning, match="keeps its network, not its games"):
        agent = sparring.train(env, updates=20, runs=str(tmp_path), ppo=ppo, **QUICK)
    _, _, length = read(agent.run)["charts/length"]
    assert length[-1] > 4 * length[0]
    with pytest.raises(sparring.SparringError, match="your own environment"):
        agent.evaluate()
    again = sparring.load(agent.save(tmp_path / "policy"))
    obs = np.zeros((1, again.rules.obs_bytes), np.uint8)
    mask = np.ones((1, 2), np.uint8)
    assert again.act(obs, mask, greedy=True) == agent.policy.act(obs, mask, greedy=True)
    assert sparring.load(agent.run).rules.name == agent.policy.rules.name


def test_a_pettingzoo_game_trains_every_seat(tmp_path: Path) -> None:
    from sparring.envs.pettingzoo import aec_env

    with pytest.warns(sparring.errors.SparringWarning, match="not its games"):
        agent = sparring.train(
            aec_env("tic_tac_toe"), updates=2, runs=str(tmp_path), collect={"steps": 60}, **QUICK
        )
    assert agent.policy.rules.seats == 2
    assert read(agent.run)["learning/samples"][2][0] > 50


def test_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sparring.ConfigError, match="vector"):
        sparring.train(object(), runs=str(tmp_path))
    assert not list(tmp_path.iterdir())
