"""Gymnasium vector envs that people bring along: the learner must see the truth."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper

from pools.foreign_envs import Countdown, episodes
from sparring import IllegalActionError, Lineup, Pool, Rules, SparringError
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.envs.gymnasium import SparringVectorEnv
from sparring.errors import ConfigError, SparringWarning
from sparring.learn.ppo import PPO
from sparring.learn.transitions import TERMINATED, TO_NEXT, TRUNCATED
from sparring.pools.custom import CustomRules, VectorEnvPool, pool_of
from sparring.pools.custom.encoding import encoding_of
from sparring.schedule import Schedule

MODES = list(AutoresetMode)

LR = Schedule.line(2.5e-3, 2.5e-4)


def countdowns(mode: AutoresetMode, masks: str = "nowhere", count: int = 3, **more: Any) -> Any:
    return SyncVectorEnv([lambda: Countdown(masks)] * count, autoreset_mode=mode, **more)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("game", "steps"), [("tic_tac_toe", 60), ("skull_king", 130)])
def test_ppo_sees_the_same_transitions_as_in_the_native_pool(
    game: str, steps: int, mode: AutoresetMode
) -> None:
    rules = Rules(game)
    lineup = Lineup((0, *["random"] * (rules.seats - 1)))
    native = Pool(rules, 4, seed=11, threads=1, lineups=[lineup])
    env = SparringVectorEnv(rules, 4, autoreset_mode=mode, threads=1)
    wanted, found = episodes(native, steps), episodes(pool_of(env, seed=11), steps)
    assert sum(map(len, wanted.values())) > 4
    for key, all_of_them in wanted.items():
        # In NEXT_STEP resets take a step each, so that fewer episodes end.
        short = len(found[key]) if mode is AutoresetMode.NEXT_STEP else len(all_of_them)
        assert 0 < short <= len(found[key])
        for ours, theirs in zip(all_of_them, found[key], strict=False):
            assert ours.decisions == theirs.decisions
            assert (ours.terminated, ours.last_obs) == (theirs.terminated, theirs.last_obs)


@pytest.mark.parametrize("masks", ["info", "method", "obs", "nowhere"])
@pytest.mark.parametrize("mode", MODES)
def test_the_end_of_an_episode_in_every_mode(mode: AutoresetMode, masks: str) -> None:
    def choose(numbers: np.ndarray, mask: np.ndarray) -> int:
        episode, time = numbers
        assert mask.tolist() == [1, 1, 1 if masks == "nowhere" else time % 2]
        return 1 if time == episode % 3 else 0

    found = episodes(pool_of(countdowns(mode, masks)), 40, choose=choose)
    assert set(found) == {(0, 0), (1, 0), (2, 0)}
    for ended in found.values():
        for number, (decisions, terminated, last_obs, score) in enumerate(ended, start=1):
            length = number % 3 + 1
            assert terminated
            times = [np.frombuffer(one.obs, np.float32).tolist() for one in decisions]
            assert times == [[number, time] for time in range(length)]
            assert [one.paid for one in decisions] == [0.25] * (length - 1) + [2.0]
            assert [one.link for one in decisions] == [TO_NEXT] * (length - 1) + [TERMINATED]
            assert np.frombuffer(last_obs, np.float32).tolist() == [number, length]
            assert score == 2.0 + 0.25 * (length - 1)


@pytest.mark.parametrize("masks", ["info", "method", "obs", "nowhere"])
@pytest.mark.parametrize("mode", MODES)
def test_a_time_limit_is_bootstrapped_from_the_last_observation(
    mode: AutoresetMode, masks: str
) -> None:
    pool = pool_of(countdowns(mode, masks))
    found = episodes(pool, 40, choose=lambda *_: 0)
    for ended in found.values():
        for number, (decisions, terminated, last_obs, score) in enumerate(ended, start=1):
            assert not terminated
            assert [one.link for one in decisions] == [TO_NEXT] * 3 + [TRUNCATED]
            assert np.frombuffer(last_obs, np.float32).tolist() == [number, 4.0]
            assert score == 1.0
    while not pool.step(np.zeros(3, int)).truncated.any():
        pass
    told = masks in ("info", "obs") or (masks == "method" and mode is not AutoresetMode.SAME_STEP)
    assert pool._batch.final_mask[:, 0].tolist() == [[1, 1, 0 if told else 1]] * 3


def test_terminated_and_truncated_at_once_is_terminated() -> None:
    pool = pool_of(countdowns(AutoresetMode.NEXT_STEP, count=1))
    pool.reset()
    for action in (0, 0, 0, 1):
        batch = pool.step([action])
    assert batch.terminated.all()
    assert not batch.truncated.any()
    assert not batch.final_mask.any()
    assert pool.rules.ends[batch.final_reason[0]] == "terminated"
    assert batch.policy.tolist() == [-1]
    batch = pool.step([2**31])  # nobody decides: any action will do
    assert batch.policy.tolist() == [0]
    assert batch.reward.sum() == 0
    assert batch.obs[:, :8].view(np.float32).tolist() == [[2, 0]]


class PaysForResets(VectorWrapper):
    """Pays for the step that only resets, against the rules."""

    def step(self, actions: Any) -> Any:
        obs, reward, *rest = self.env.step(actions)
        return obs, np.where(obs[:, 1] == 0, 7.0, reward), *rest


def test_what_a_reset_pays_belongs_to_nobody() -> None:
    pool = pool_of(PaysForResets(countdowns(AutoresetMode.NEXT_STEP, "nowhere")))
    for ended in episodes(pool, 30, choose=lambda *_: 0).values():
        assert {episode.score for episode in ended} == {1.0}


def test_a_last_observation_without_a_mask_is_bootstrapped_too() -> None:
    env = countdowns(AutoresetMode.NEXT_STEP, "info", count=1)
    pool = pool_of(env)
    pool.reset()
    for time in range(4):
        env.envs[0].masks = "nowhere" if time == 3 else "info"
        batch = pool.step([0])
    assert batch.final_mask.tolist() == [[[1, 1, 1]]]
    env.envs[0].masks = "info"
    assert pool.step([0]).mask.tolist() == [[1, 1, 0]]


def test_observations_are_copied() -> None:
    kept, reused = (countdowns(AutoresetMode.SAME_STEP, copy=copy) for copy in (True, False))
    assert episodes(pool_of(kept), 30) == episodes(pool_of(reused), 30)


def test_masks_of_worker_processes() -> None:
    for masks, legal in (("method", [1, 1, 0]), ("nowhere", [1, 1, 1])):
        env = AsyncVectorEnv([lambda masks=masks: Countdown(masks)] * 2)
        try:
            pool = pool_of(env)
            assert pool.reset().mask.tolist() == [legal] * 2
            assert pool.step([0, 0]).mask.tolist() == [[1, 1, 1]] * 2
        finally:
            env.close()


def test_cart_pole_is_learned() -> None:
    torch.set_num_threads(1)
    pool = pool_of(gymnasium.make_vec("CartPole-v1", num_envs=16), seed=1)
    config = PPOConfig(epochs=4, minibatch=256, lr=LR, gamma=Schedule.constant(0.99))
    collect = CollectConfig(games=16, steps=64)
    ppo = PPO(pool, collect, config, NetConfig(hidden=(64, 64)), seed=1)
    lengths = []
    for update in range(25):
        (report,) = ppo.iterate(update / 25)
        lengths.append(report.stats.get("charts/length", np.nan))
    assert lengths[0] < 40
    assert np.nanmean(lengths[-6:]) > 4 * lengths[0]
    assert pool.rules.name == "CartPole-v1"


def test_ppo_values_what_was_cut() -> None:
    pool = pool_of(countdowns(AutoresetMode.NEXT_STEP, "info"))
    collect = CollectConfig(games=3, steps=40)
    ppo = PPO(pool, collect, PPOConfig(minibatch=60), NetConfig(hidden=(16,)))
    (report,) = ppo.iterate(0.0)
    rollout = ppo.collector.rollout
    cut = rollout.truncated
    assert cut.any()
    assert (np.isfinite(rollout.final_value[..., 0]) == cut).all()
    asked = rollout.policy == 0
    still_open = asked[-1] & ~cut[-1] & ~rollout.terminated[-1]
    assert report.samples == asked.sum() - still_open.sum()


def test_an_illegal_action_refuses_the_whole_step() -> None:
    env = countdowns(AutoresetMode.SAME_STEP, "info")
    pool = pool_of(env)
    pool.reset()
    for wrong in (2, 3, -1, 2**40):
        with pytest.raises(IllegalActionError) as refused:
            pool.step(np.array([0, 0, wrong]))
        text = f"SyncVectorEnv env 2, seat 0: action {wrong} is not legal; legal: 0, 1"
        assert text == str(refused.value)
    assert [one.steps_taken for one in env.envs] == [0, 0, 0]
    with pytest.raises(IllegalActionError, match=r"shape \(2,\), need \(3,\)"):
        pool.step([0, 0])
    with pytest.raises(IllegalActionError, match="need integers"):
        pool.step([0.0, 0.0, 0.0])
    pool.step([0, 0, 1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("poison", "message"),
    [
        ((np.nan, 0.0), r"env 1, step {}: observation\[1\] is nan"),
        ((0.0, np.inf), r"env 1, step {}: reward is inf"),
    ],
)
@pytest.mark.parametrize("at", [3, 4])  # in mid-game, and at the end of one
def test_numbers_that_are_not_finite_are_named(
    poison: tuple[float, float], message: str, at: int, mode: AutoresetMode
) -> None:
    env = countdowns(mode)
    pool = pool_of(env)
    pool.reset()
    env.envs[1].poison = {at: poison}
    with pytest.raises(SparringError, match=message.format(at)):
        for _ in range(at):
            pool.step([0, 0, 0])
    with pytest.raises(IllegalActionError, match="call reset"):
        pool.step([0, 0, 0])
    pool.reset()
    pool.step([0, 0, 0])


def test_masks_and_modes_that_contradict_themselves() -> None:
    env = countdowns(AutoresetMode.SAME_STEP)
    env.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    pool = pool_of(env)
    pool.reset()
    with pytest.raises(SparringError, match="says autoreset_mode NextStep"):
        for _ in range(4):
            pool.step([0, 0, 0])
    env = countdowns(AutoresetMode.NEXT_STEP)
    env.metadata = {}
    with pytest.warns(SparringWarning, match="NextStep is assumed"):
        pool_of(env)
    for first, later, message in (("nowhere", "info", "gave none"), ("info", "nowhere", "no act")):
        env = countdowns(AutoresetMode.DISABLED, first)
        pool = pool_of(env)
        pool.reset()
        env.envs[2].masks = later
        with pytest.raises(SparringError, match=message):
            pool.step([0, 0, 0])


def test_flattening_is_gymnasiums() -> None:
    space = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (2, 3), np.uint8),
            "kind": spaces.Discrete(4, start=-1),
            "both": spaces.Tuple((spaces.MultiBinary((2, 2)), spaces.MultiDiscrete([3, 2]))),
            "far": spaces.Box(-np.inf, np.inf, (), np.float64),
        }
    )
    encoding = encoding_of(space, spaces.Discrete(2), "test")
    space.seed(1)
    seen = [space.sample() for _ in range(5)]
    wanted = np.stack([spaces.flatten(space, one) for one in seen]).astype(np.float32)
    assert encoding.numbers == wanted.shape[1]
    batch = {key: np.stack([one[key] for one in seen]) for key in ("image", "kind", "far")} | {
        "both": tuple(np.stack([one["both"][i] for one in seen]) for i in (0, 1))
    }
    assert np.array_equal(encoding.flatten(batch, 5), wanted)
    assert np.array_equal(np.stack([encoding.flatten(one) for one in seen]), wanted)
    with pytest.raises(SparringError, match="outside of its space"):
        encoding.flatten(seen[0] | {"kind": 3})
    with pytest.raises(ConfigError, match="Text"):
        encoding_of(spaces.Dict({"a": spaces.Text(3)}), spaces.Discrete(2), "test")


def test_rules_of_an_env() -> None:
    rules = CustomRules("ALE/Pong-v5", seats=1, rows=1, actions=3, numbers=5, first_action=2)
    assert (rules.name, rules.obs_bytes, rules.config, rules.bots) == ("ALE_Pong-v5", 32, {}, ())
    numbers = np.arange(10, dtype=np.float32).reshape(2, 5)
    assert np.array_equal(rules.widen(rules.pack(numbers)), numbers)
    assert rules.features[3].name == "obs[3]"
    assert rules.action_name(1) == "3"
    assert rules.weights(None) == [1.0]
    assert CustomRules(**rules.plain()).features == rules.features
    pool = VectorEnvPool(countdowns(AutoresetMode.SAME_STEP))
    assert pool.can == frozenset()
    with pytest.raises(SparringError, match=r"cannot be saved exactly.*resumed run loses"):
        pool.state()
    with pytest.raises(SparringError, match="call reset"):
        pool.load_state(b"")


@pytest.mark.parametrize("thing", ["CartPole-v1", None, [], [1, 2], [Countdown(), 1]])
def test_an_unknown_object_is_told_what_is_accepted(thing: Any) -> None:
    with pytest.raises(ConfigError, match=r"VectorEnv.*AECEnv.*ParallelEnv"):
        pool_of(thing)


@pytest.mark.parametrize("seed", [2**64 - 1, -5, 2**31 - 1])
def test_sub_envs_are_seeded_with_what_any_env_takes(seed: int) -> None:
    told: list[int] = []

    class Noting(Countdown):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            told.append(seed)
            return super().reset(seed=seed, options=options)

    pool_of(SyncVectorEnv([Noting] * 3), seed=seed).reset()
    assert len(set(told)) == 3
    assert all(0 <= one < 2**31 for one in told)
