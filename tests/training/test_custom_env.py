"""Training on an environment object of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparring
from sparring.cli import main
from sparring.config import ReplayConfig, TrainConfig
from sparring.learn.sac import SAC
from sparring.pools.custom import CustomRules, pool_of
from sparring.pools.custom.bounds import Bounds
from sparring.pools.custom.make import EnvInfo
from sparring.schedule import Moment
from sparring.training.records.metrics import read
from sparring.training.train import complete

gymnasium = pytest.importorskip("gymnasium")

QUICK = {"net": {"hidden": (64, 64)}, "tensorboard": False, "quiet": True, "threads": 1}


def own_settings(
    games: int, changes: dict[str, Any], *, file: str = "", box: int = 0
) -> TrainConfig:
    """What an env with so many games, and numbers in an action, is trained with."""
    bounds = Bounds((-1.0,) * box, (1.0,) * box, (box,), "float32") if box else None
    rules = CustomRules("own", seats=1, rows=1, actions=0, numbers=1, bounds=bounds)
    return complete("", file, changes, facts=EnvInfo(rules, games))


def pendulums(count: int) -> Any:
    return gymnasium.make_vec("Pendulum-v1", num_envs=count, vectorization_mode="sync")


@pytest.mark.slow
def test_cartpole_is_learned(tmp_path: Path) -> None:
    env = gymnasium.make_vec("CartPole-v1", num_envs=32, vectorization_mode="sync")
    ppo = {"epochs": 6, "minibatch": 512, "lr": [["0%", 2e-3], ["100%", 2e-4]]}
    with pytest.warns(sparring.errors.SparringWarning, match="restores its network, not its games"):
        agent = sparring.train(env, updates=20, runs=str(tmp_path), ppo=ppo, **QUICK)
    _, _, length = read(agent.run)["charts/length"]
    assert length[-1] > 4 * length[0]
    with pytest.raises(sparring.SparringError, match="was given as an object"):
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
    env = pendulums(2)
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
        config = own_settings(3, {"algo": algo}, box=box)
        changed = {
            name for name in ("ppo", "dqn", "sac") if getattr(config, name) != getattr(usual, name)
        }
        assert changed <= {algo}
        assert (config.replay != usual.replay) == (algo in ("dqn", "sac"))
        assert (config.net.squash, config.net.std == "predicted") == (box > 0,) * 2
        assert config.collect.games == 3
    file = tmp_path / "mine.toml"
    file.write_text('algo = "sac"\nreplay = { warmup = 7 }\n')
    config = own_settings(3, {"net": {"squash": False}}, file=str(file), box=1)
    assert (config.algo, config.replay.warmup, config.replay.ratio) == ("sac", 7, 256)
    assert (config.net.squash, config.net.std) == (False, "predicted")
    file.write_text('algo = "sac"\n')
    ppo = own_settings(3, {"algo": "ppo"}, file=str(file)).ppo
    assert ppo.gamma.at(Moment(0, 0.0)) == 0.99


@pytest.mark.slow
def test_pendulum_trains_with_sac(tmp_path: Path) -> None:
    replay = {"warmup": 800, "batch": 16, "ratio": 16.0}
    options = QUICK | {"net": {"hidden": (16,)}, "threads": 1}
    with pytest.warns(sparring.errors.SparringWarning, match="not its games"):
        agent = sparring.train(
            pendulums(2), algo="sac", updates=1, runs=str(tmp_path), replay=replay, **options
        )
    curves = {name: values[2][-1] for name, values in read(agent.run).items()}
    assert curves["charts/length"] == 200
    assert 150 <= curves["learning/optimizer_steps"] <= 200  # one per decision, once it is warm
    again = sparring.load(agent.run)
    assert (again.net.config.squash, again.net.config.std) == (True, "predicted")
    seen, nothing = again.rules.pack(np.ones((1, 3))), np.ones((1, 0), np.uint8)
    said = again.act(seen, nothing, greedy=True)
    assert np.array_equal(said, agent.act(seen, nothing))
    assert again.rules.env_actions(said)[0] in gymnasium.make("Pendulum-v1").action_space


def test_sac_goes_on_with_what_it_remembers_in_new_episodes() -> None:
    """As after a divergence: the games of an env of one's own are not part of a snapshot."""

    def learner() -> SAC:
        config = own_settings(2, {"algo": "sac", "net": {"hidden": (8,)}}, box=1)
        remember = ReplayConfig(warmup=1, batch=8, ratio=1.0, capacity=5000)
        pool = pool_of(pendulums(2), seed=1)
        made = SAC(pool, config.collect, config.sac, remember, config.net)
        made.experience.rounds = 100
        return made

    first, second = learner(), learner()
    first.iterate(0.0)
    second.restore(first.snapshot())
    assert (second.experience.replay.head, len(second.experience.replay)) == (
        first.experience.replay.head,
        len(first.experience.replay),
    )
    (report,) = second.iterate(0.0)
    assert report.decisions == 2 * first.collector.decisions
    lost = first.pool.num_games  # those that were open in games that nobody plays to their end
    assert len(second.experience.replay) == 2 * first.collector.decisions - 2 * lost
    assert np.isfinite(report.stats["losses/critic_loss"])


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_an_env_that_raises_on_the_way_is_told_in_a_line_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("breaks_late.py").write_text(
        "from own_envs import make_cards\n"
        "def make():\n"
        "    env, steps = make_cards(), []\n"
        "    play = env.step\n"
        "    def step(action):\n"
        "        steps.append(action)\n"
        "        if len(steps) > 40:\n"
        "            raise ValueError('the map is gone')\n"
        "        return play(action)\n"
        "    env.step = step\n"
        "    return env\n"
    )
    assert main(["train", "breaks_late.py:make", "--updates", "9", "--threads", "1"]) == 3
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "step 41: ValueError: the map is gone (breaks_late.py:8)" in told
