"""Games behind Stable-Baselines3's VecEnv."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from envs.helpers import ALL_GAMES, TURN_GAMES, LegalEnv, choose, needs_duel
from sparring import LEARNER, IllegalActionError, Lineup, Pool, Rules
from sparring.envs.gymnasium import SparringEnv
from sparring.envs.sb3 import SparringVecEnv

GAMES = 6


def choose_all(rules: Rules, obs: np.ndarray, env: Any) -> np.ndarray:
    masks = [None] * len(obs) if rules.box else get_action_masks(env)
    return np.array([choose(rules, o, m) for o, m in zip(obs, masks, strict=True)])


@pytest.mark.parametrize("game", ALL_GAMES)
def test_sb3_accepts_the_single_env(game: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(LegalEnv(game))


@pytest.mark.parametrize("game", ALL_GAMES)
def test_equals_sb3_own_batching(game: str) -> None:
    """Observations, rewards, dones and infos are those of DummyVecEnv over monitored envs."""
    fast = SparringVecEnv(game, GAMES, seed=9)
    slow = DummyVecEnv(
        [lambda i=i: Monitor(SparringEnv(game, seed=9, first_game=i)) for i in range(GAMES)]
    )
    obs = fast.reset()
    assert np.array_equal(obs, slow.reset())
    ends = 0
    for _ in range(100):
        if not fast.rules.box:
            assert np.array_equal(get_action_masks(fast), get_action_masks(slow))
        actions = choose_all(fast.rules, obs, fast)
        obs, reward, done, infos = fast.step(actions)
        expected = slow.step(actions)
        assert np.array_equal(obs, expected[0])
        assert np.array_equal(reward, expected[1])
        assert reward.dtype == expected[1].dtype
        assert np.array_equal(done, expected[2])
        for i in np.flatnonzero(done):
            ends += 1
            told, wanted = infos[i], expected[3][i]
            assert np.array_equal(told["terminal_observation"], wanted["terminal_observation"])
            assert told["TimeLimit.truncated"] is wanted["TimeLimit.truncated"]
            assert told["episode"]["r"] == pytest.approx(wanted["episode"]["r"], abs=1e-5)
            assert told["episode"]["l"] == wanted["episode"]["l"]
            assert (told["score"], told["end"]) == (wanted["score"], wanted["end"])
            assert fast.reset_infos[i]["seat"] == slow.reset_infos[i]["seat"]
    assert ends >= 1


@pytest.mark.parametrize("game", TURN_GAMES)
def test_masks_and_rewards_are_the_pool_s(game: str) -> None:
    rules = Rules(game)
    lineup = Lineup((LEARNER, *["random"] * (rules.seats - 1)))
    pool = Pool(rules, GAMES, seed=1, threads=1, lineups=[lineup])
    batch = pool.reset()
    env = SparringVecEnv(game, GAMES, seed=1, threads=1)
    obs = env.reset()
    total, expected = 0.0, 0.0
    for _ in range(60):
        assert np.array_equal(env.action_masks(), batch.mask.astype(bool))
        assert np.array_equal(obs, rules.widen(batch.obs))
        seats = batch.seat.copy()
        actions = choose_all(rules, obs, env)
        obs, reward, _, _ = env.step(actions)
        batch = pool.step(actions)
        total += float(reward.sum())
        expected += float(batch.reward[np.arange(GAMES), seats, 0].sum())
    assert total == expected


def train(game: str, folder: Path, **options: Any) -> MaskablePPO:
    torch.set_num_threads(1)
    env = SparringVecEnv(game, 8, threads=1)
    model = MaskablePPO("MlpPolicy", env, seed=0, device="cpu", **options)
    model.set_logger(configure(str(folder), ["csv"]))
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(options["n_steps"] * 8)
    after = list(model.policy.parameters())
    assert all(torch.isfinite(p).all() for p in after)
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert "rollout/ep_rew_mean" in (folder / "progress.csv").read_text()
    return model


def test_maskable_ppo_trains_on_tic_tac_toe(tmp_path: Path) -> None:
    model = train("tic_tac_toe", tmp_path, n_steps=256, batch_size=256, n_epochs=2)
    assert model.num_timesteps == 2048
    episodes = list(model.ep_info_buffer)
    assert len(episodes) == 100
    assert all(-1 <= e["r"] <= 1 and 2 <= e["l"] <= 5 for e in episodes)


def test_maskable_ppo_trains_on_skull_king(tmp_path: Path) -> None:
    model = train("skull_king", tmp_path, n_steps=80, batch_size=128, n_epochs=1)
    assert len(model.ep_info_buffer) == 8
    assert all(episode["l"] == 65 for episode in model.ep_info_buffer)


def test_evaluation_trusts_our_episodes() -> None:
    """Without Monitor SB3 warns and counts by itself; with us there is nothing to warn of."""
    env = SparringVecEnv("tic_tac_toe", 4, opponents="careful")
    model = MaskablePPO("MlpPolicy", env, seed=0, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returns, lengths = evaluate_policy(model, env, 20, return_episode_rewards=True)
    assert len(returns) == 20
    assert set(returns) <= {-1.0, 0.0, 1.0}
    assert all(2 <= length <= 5 for length in lengths)


@needs_duel
def test_continuous_games_train_with_plain_ppo() -> None:
    torch.set_num_threads(1)
    env = SparringVecEnv("duel", 4, config={"limit": 5}, opponents="pusher", threads=1)
    assert not is_masking_supported(env)
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, device="cpu", seed=0)
    model.learn(128)
    assert len(model.ep_info_buffer) >= 1


def test_a_seed_applies_at_the_next_reset() -> None:
    env = SparringVecEnv("skull_king", GAMES)
    assert env.seed(5) == [5] * GAMES
    first = env.reset()
    second = env.reset()
    assert not np.array_equal(first, second)
    env.seed(5)
    assert np.array_equal(env.reset(), first)
    assert np.array_equal(SparringVecEnv("skull_king", GAMES, seed=5).reset(), first)
    assert not np.array_equal(first[0], first[1])


def test_an_illegal_action_leaves_every_game_as_it_was() -> None:
    env, twin = SparringVecEnv("skull_king", GAMES), SparringVecEnv("skull_king", GAMES)
    obs = env.reset()
    twin.reset()
    actions = choose_all(env.rules, obs, env)
    wrong = actions.copy()
    wrong[-1] = np.flatnonzero(~env.action_masks()[-1])[0]
    with pytest.raises(IllegalActionError):
        env.step(wrong)
    assert np.array_equal(env.step(actions)[0], twin.step(actions)[0])


def test_single_games_can_be_asked() -> None:
    env = SparringVecEnv("tic_tac_toe", 3)
    env.reset()
    masks = env.action_masks()
    assert is_masking_supported(env)
    assert np.array_equal(env.env_method("action_masks", indices=1)[0], masks[1])
    assert np.array_equal(env.get_attr("action_masks", indices=[2])[0](), masks[2])
    assert env.get_attr("render_mode") == [None] * 3
    assert not env.has_attr("no_such_thing")
    with pytest.raises(AttributeError, match="fly"):
        env.env_method("fly")
    with pytest.raises(NotImplementedError, match="share one pool"):
        env.set_attr("speed", 3)


def test_sb3_wrappers_work_on_top() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # VecMonitor warns that it replaces our episode infos
        env = VecMonitor(SparringVecEnv("tic_tac_toe", GAMES))
    obs = env.reset()
    episodes = []
    for _ in range(20):
        obs, _, _, infos = env.step(choose_all(Rules("tic_tac_toe"), obs, env))
        episodes += [info["episode"] for info in infos if "episode" in info]
    assert episodes
    assert all(2 <= episode["l"] <= 5 for episode in episodes)


@needs_duel
def test_truncation_is_reported_as_a_time_limit() -> None:
    env = SparringVecEnv("duel", 4, config={"limit": 3, "reach": 100})
    obs = env.reset()
    for _ in range(3):
        obs, _, done, infos = env.step(choose_all(env.rules, obs, env))
    assert done.all()
    for info in infos:
        assert info["TimeLimit.truncated"] is True
        assert info["terminal_observation"][2] == pytest.approx(3 / 20)
        assert info["episode"]["l"] == 3
    assert (obs[:, 2] == 0).all()


def test_plain_ppo_plays_without_masks() -> None:
    env = SparringVecEnv("tic_tac_toe", 4, illegal="random", illegal_reward=-0.1, threads=1)
    PPO("MlpPolicy", env, n_steps=8, batch_size=32, seed=1, device="cpu").learn(64)
    env.reset()
    counted = []
    for _ in range(12):
        _, _, done, infos = env.step(np.zeros(4, np.int64))
        counted += [
            infos[i]["episode"]["l"] - infos[i]["illegal_actions"] for i in np.flatnonzero(done)
        ]
    assert counted
    assert set(counted) <= {0, 1}, "one field can be taken once a game"


@pytest.mark.parametrize(("kind", "game"), [(SAC, "laser_hockey"), (DQN, "laser_hockey_discrete")])
def test_learners_from_replay_train_on_hockey(kind: Any, game: str) -> None:
    torch.set_num_threads(1)
    env = SparringVecEnv(game, 2, opponents="weak", threads=1)
    net = {"net_arch": [16]}
    options = {"learning_starts": 630, "batch_size": 16, "buffer_size": 2000, "policy_kwargs": net}
    model = kind("MlpPolicy", env, seed=0, device="cpu", **options)
    model.learn(640)
    assert all(torch.isfinite(p).all() for p in model.policy.parameters())
    kept, count = model.replay_buffer, model.replay_buffer.pos
    done = kept.dones[:count] != 0
    assert done.any()
    # What follows a decision is the next one's row, and behind an end a row of its own.
    same = (kept.next_observations[: count - 1] == kept.observations[1:count]).all(axis=2)
    assert np.array_equal(same, ~done[: count - 1])
    assert (np.abs(kept.actions[:count]) <= 1).all() or game != "laser_hockey"
