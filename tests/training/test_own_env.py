"""Training on an environment object of the user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparring
from sparring.config import TrainConfig
from sparring.schedule import Moment
from sparring.training.records.metrics import read
from sparring.training.train import own_settings

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


def test_pendulum_trains_and_its_agent_speaks_the_env_s_language(tmp_path: Path) -> None:
    env = gymnasium.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync")
    with pytest.warns(sparring.errors.SparringWarning, match="not its games"):
        agent = sparring.train(
            env,
            updates=2,
            runs=str(tmp_path),
            collect={"steps": 205},
            ppo={"minibatch": 400},
            **QUICK,
        )
    assert read(agent.run)["charts/length"][2].tolist() == [200.0] * 2
    again = sparring.load(agent.save(tmp_path / "policy"))
    rules = sparring.load(agent.run).rules
    one = gymnasium.make("Pendulum-v1")
    obs, _ = one.reset(seed=1)
    for _ in range(3):
        seen = rules.pack(obs)[None]
        said = again.act(seen, np.ones((1, 0), np.uint8), greedy=True)
        assert said.shape == (1, 1)
        assert (np.abs(said) <= 1).all()
        assert np.array_equal(said, agent.act(seen, np.ones((1, 0))))
        (own,) = rules.env_actions(said)
        assert own == pytest.approx(2 * said[0])
        assert own in one.action_space
        obs = one.step(own)[0]


def test_usual_settings_are_those_of_the_algorithm_alone(tmp_path: Path) -> None:
    usual = TrainConfig()
    for algo, box in (("ppo", 0), ("dqn", 0), ("sac", 0), ("sac", 2), ("my.module:learner", 0)):
        config = own_settings(3, "", {"algo": algo}, box=box)
        changed = {
            name for name in ("ppo", "dqn", "sac") if getattr(config, name) != getattr(usual, name)
        }
        assert changed <= {algo}
        assert (config.replay != usual.replay) == (algo in ("dqn", "sac"))
        assert (config.net.squash, config.net.spread == "predicted") == (box > 0,) * 2
        assert config.collect.games == 3
    file = tmp_path / "mine.toml"
    file.write_text('algo = "sac"\nreplay = { warmup = 7 }\n')
    config = own_settings(3, str(file), {"net": {"squash": False}}, box=1)
    assert (config.algo, config.replay.warmup, config.replay.ratio) == ("sac", 7, 256)
    assert (config.net.squash, config.net.spread) == (False, "predicted")
    assert own_settings(3, str(file), {"algo": "ppo"}).ppo.gamma.at(Moment(0, 0.0)) == 0.99
