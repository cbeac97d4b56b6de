"""Envs with continuous actions: what a policy says within -1..1 is what the env is told."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import ClipAction, TransformAction
from pettingzoo import ParallelEnv
from pettingzoo.utils import parallel_to_aec

from sparring import IllegalActionError, Lineup, Pool, Rules
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.envs.gymnasium import SparringVectorEnv
from sparring.errors import ConfigError
from sparring.learn.ppo import PPO
from sparring.learn.transitions import NOT_A_SAMPLE, TERMINATED, TO_NEXT, TRUNCATED
from sparring.pools.custom import AECPool, CustomRules, pool_of
from sparring.schedule import Schedule

SQUARE = spaces.Box(
    np.array([[-1.0, 0.0], [2.0, -8.0]]), np.array([[3.0, 0.5], [2.0, 8.0]]), dtype=np.float64
)
"""Four numbers in a square, none of them within -1..1."""


class Told(gymnasium.Env[Any, Any]):
    """Sees (episode, time), remembers every action that it is told; cut at time 3."""

    def __init__(self, actions: spaces.Space[Any] = SQUARE) -> None:
        self.action_space, self.told = actions, []
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.episode = self.time = 0

    def look(self) -> np.ndarray:
        return np.array([self.episode, self.time], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.episode, self.time = self.episode + 1, 0
        return self.look(), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        self.time += 1
        self.told.append(action)
        return self.look(), 1.0, False, self.time >= 3, {"action_mask": "of nobody"}


def vector(count: int = 1, mode: AutoresetMode = AutoresetMode.SAME_STEP, **options: Any) -> Any:
    return SyncVectorEnv([lambda: Told(**options)] * count, autoreset_mode=mode)


def test_numbers_are_scaled_to_the_bounds_of_the_space() -> None:
    env = vector()
    pool = pool_of(env)
    assert (pool.rules.box, pool.rules.actions) == (4, 0)
    batch = pool.reset()
    assert batch.mask.shape == (1, 0)
    pool.step([[-1, -1, -1, -1]])
    pool.step([[1, 1, 1, 1]])
    pool.step(np.array([[0, -0.5, 0.3, 0.25]], np.float32))
    told = env.envs[0].told
    assert [one.tolist() for one in told] == [
        [[-1, 0], [2, -8]],
        [[3, 0.5], [2, 8]],
        [[1, 0.125], [2, 2]],
    ]
    assert {(one.dtype, one.shape) for one in told} == {(np.dtype(np.float64), (2, 2))}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-2.0, 2.0, (1,), np.float32),
        spaces.Box(np.float32(0.1), np.float32(0.7), (), np.float32),
        spaces.Box(-0.3, 0.1, (3,), np.float16),
        spaces.Box(-1e-3, 1e9, (2, 1, 2), np.float64),
    ],
)
def test_no_rounding_leads_out_of_the_space(space: Any) -> None:
    env = vector(actions=space)
    pool = pool_of(env)
    pool.reset()
    rng = np.random.default_rng(0)
    for _ in range(50):
        pool.step(rng.choice([-1, 1, rng.uniform(-1, 1)], (1, pool.rules.box)).astype(np.float32))
    assert len(env.envs[0].told) == 50  # which the env itself has checked
    ends = np.stack([-np.ones(pool.rules.box), np.ones(pool.rules.box)])
    found = pool.rules.env_actions(ends)
    assert found == pytest.approx(np.stack([space.low, space.high]), rel=1e-12)


def test_beyond_the_bounds_is_cut_off_and_what_is_not_finite_refused() -> None:
    env = vector(2)
    pool = pool_of(env)
    pool.reset()
    pool.step([[-7, 9, 1e30, 1.5], [0, 0, 0, 0]])
    assert env.envs[0].told[0].tolist() == [[-1, 0.5], [2, 8]]
    for wrong in (np.nan, np.inf):
        with pytest.raises(IllegalActionError) as refused:
            pool.step([[0, 0, 0, 0], [0, 0, 0, wrong]])
        text = f"SyncVectorEnv env 1, seat 0: action component 3 is {wrong}; give finite numbers"
        assert text == str(refused.value)
    assert len(env.envs[1].told) == 1, "a refused step moves nobody"
    for shape in ((2,), (2, 2, 2), (1, 4)):
        with pytest.raises(IllegalActionError, match=r"need \(2, 4\)"):
            pool.step(np.zeros(shape))
    with pytest.raises(IllegalActionError, match="need numbers within"):
        pool.step(np.full((2, 4), "left"))
    drawn = pool.sample_actions()
    assert (drawn.shape, drawn.dtype) == ((2, 4), np.float32)
    assert (np.abs(drawn) <= 1).all()
    pool.step(drawn)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_time_limit_is_bootstrapped_from_the_last_observation(mode: AutoresetMode) -> None:
    pool = pool_of(vector(2, mode))
    collect = CollectConfig(games=2, steps=12)
    ppo = PPO(pool, collect, PPOConfig(minibatch=24), NetConfig(hidden=(8,)))
    ppo.collector.collect(0)
    rollout = ppo.collector.rollout
    seen = np.concatenate(rollout.truncations.obs).view(np.float32)[:, :2]
    # A reset takes a step of its own in NEXT_STEP mode.
    episodes = range(1, 4 if mode is AutoresetMode.NEXT_STEP else 5)
    assert seen.tolist() == [[number, 3] for number in episodes for _ in range(2)]
    rollout.truncations.set_values(rollout, np.full(len(seen), 5.0, np.float32))
    ppo.collector.link(0.9)
    ends = ppo.collector.transitions.end[ppo.collector.transitions.max_pending :].reshape(12, 2)
    round_ = [TO_NEXT, TO_NEXT, TRUNCATED]
    if mode is AutoresetMode.NEXT_STEP:
        round_ = [*round_, NOT_A_SAMPLE]
    assert (ends == np.array(round_ * (12 // len(round_)))[:, None]).all()


def test_hockey_through_its_adapter_is_the_native_game() -> None:
    rules = Rules("laser_hockey")
    native = Pool(rules, 2, seed=3, threads=1, lineups=[Lineup((0, "random"))])
    custom = pool_of(SparringVectorEnv(rules, 2, threads=1), seed=3)
    assert custom.rules.box == rules.box
    ours, theirs = native.reset(), custom.reset()
    rng = np.random.default_rng(1)
    for _ in range(60):
        action = rng.uniform(-1.5, 1.5, (2, rules.box)).astype(np.float32)
        both = np.zeros((native.num_games * rules.rows, rules.box), np.float32)
        both[np.flatnonzero(ours.policy == 0)] = action
        ours, theirs = native.step(both), custom.step(action)
        mine = np.flatnonzero(ours.policy == 0)
        wide = rules.widen(ours.obs[mine])
        assert np.array_equal(wide, custom.rules.widen(theirs.obs))


class Fleet(ParallelEnv):  # type: ignore[misc]
    """Ship i leaves in round i + 1, and the rest is cut in round `limit`."""

    metadata = {"name": "fleet_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, limit: int = 2, other: Any = None) -> None:
        self.possible_agents = [f"ship_{i}" for i in range(3)]
        self.agents: list[str] = []
        self.limit, self.other, self.told = limit, other, {}

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def action_space(self, agent: str) -> Any:
        if self.other is not None and agent == "ship_2":
            return self.other
        return spaces.Box(np.float32([0, -4]), np.float32([2, 4]))

    def look(self) -> dict[str, Any]:
        return {a: np.array([self.round, int(a[-1])], np.float32) for a in self.agents}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.round = list(self.possible_agents), 0
        return self.look(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        assert set(actions) == set(self.agents)
        assert all(one in self.action_space(agent) for agent, one in actions.items())
        self.told, self.round = actions, self.round + 1
        over = {agent: self.round == int(agent[-1]) + 1 for agent in self.agents}
        cut = dict.fromkeys(self.agents, self.round >= self.limit)
        paid = {agent: float(one[0]) for agent, one in actions.items()}
        obs, infos = self.look(), {agent: {} for agent in self.agents}
        self.agents = [a for a in self.agents if not (over[a] or cut[a])]
        return obs, paid, over, cut, infos


def test_every_ship_is_told_its_own_action() -> None:
    env = Fleet()
    pool = pool_of(env)
    assert (pool.rules.box, pool.rules.seats, pool.rules.rows) == (2, 3, 3)
    pool.reset()
    batch = pool.step([[-1, -1], [0, 0.5], [1, 1]])
    told = {agent: one.tolist() for agent, one in env.told.items()}
    assert told == {"ship_0": [0, -4], "ship_1": [1, 2], "ship_2": [2, 4]}
    assert batch.reward[0, :, 0].tolist() == [0, 1, 2]
    assert batch.seat.tolist() == [-1, 1, 2]
    batch = pool.step([[np.nan, 0], [0, 0], [0, 0]])  # nobody decides in the first row
    assert set(env.told) == {"ship_1", "ship_2"}
    with pytest.raises(IllegalActionError, match=r"seat 1 \(ship_1\): action component 0 is nan"):
        pool.step([[0, 0], [np.nan, 0], [0, 0]])


@pytest.mark.parametrize("turns", [False, True])
def test_only_those_who_were_cut_are_bootstrapped(turns: bool) -> None:
    """In round 2 the rules end the part of ship 1, the limit that of ship 2; ship 0 had left."""
    pool = pool_of(parallel_to_aec(Fleet()) if turns else Fleet())
    assert isinstance(pool, AECPool) is turns
    steps = 10 if turns else 4
    collect = CollectConfig(games=1, steps=steps)
    ppo = PPO(pool, collect, PPOConfig(minibatch=24), NetConfig(hidden=(8,)))
    ppo.collector.collect(0)
    collector, rollout = ppo.collector, ppo.collector.rollout
    seen = np.concatenate(rollout.truncations.obs).view(np.float32)[:, :2]
    assert seen.tolist() == [[2, 2]] * 2
    rollout.truncations.set_values(rollout, np.full(len(seen), 5.0, np.float32))
    collector.link(0.9)
    transitions = collector.transitions
    ends = transitions.end[transitions.max_pending :].reshape(rollout.seat.shape)
    by_seat = {seat: ends[rollout.seat == seat].tolist() for seat in range(3)}
    assert by_seat[1][:2] == [TO_NEXT, TRUNCATED]  # the game is cut; nothing follows for ship 1
    assert by_seat[2][:2] == [TO_NEXT, TRUNCATED]
    tails = transitions.tail[transitions.max_pending :].reshape(rollout.seat.shape)
    assert {float(tail) for tail in tails[rollout.seat == 2] if tail} == {5.0}
    assert not tails[rollout.seat == 1].any()
    assert TERMINATED not in by_seat[2]


def test_spaces_that_cannot_be_scaled_are_refused() -> None:
    whole = spaces.Box(0, 5, (2,), np.int32)
    endless = spaces.Box(np.float32([0, -np.inf]), np.float32([1, np.inf]))
    most = np.finfo(np.float32).max
    for space, message in (
        (whole, "whole numbers in a Box; use a Box of floats, or Discrete"),
        (endless, r"number 1 of an action lies within -inf..inf.*TransformAction"),
        (spaces.Box(-most, most, (1,), np.float32), "number 0 of an action lies within -3.4"),
        (spaces.Box(0, 1, (0,), np.float32), "holds no numbers"),
        (spaces.MultiDiscrete([64, 65]), "4,160 combinations; 1 to 4,096 are learned"),
    ):
        with pytest.raises(ConfigError, match=message):
            pool_of(vector(actions=space))
    with pytest.raises(ConfigError, match="take ClipAction off"):
        pool_of(SyncVectorEnv([lambda: ClipAction(Told())]))
    bounded = SyncVectorEnv(
        [lambda: TransformAction(Told(endless), lambda a: a, spaces.Box(-1, 1, (2,)))]
    )
    assert pool_of(bounded).rules.box == 2
    with pytest.raises(ConfigError, match=r"actions of ship_2 are Box.*give them one action space"):
        pool_of(Fleet(other=spaces.Box(0, 1, (2,))))
    with pytest.raises(ConfigError, match="ship_2 has actions 3"):
        pool_of(Fleet(other=spaces.Discrete(3)))


def test_rules_with_bounds_survive_a_checkpoint() -> None:
    rules = pool_of(vector()).rules
    again = CustomRules(**json.loads(json.dumps(rules.plain())))
    assert (again.box, again.actions, again.bounds) == (4, 0, rules.bounds)
    drawn = np.random.default_rng(0).uniform(-1, 1, (5, 4))
    assert np.array_equal(again.env_actions(drawn), rules.env_actions(drawn))
    with pytest.raises(ConfigError, match=r"shape \(5, 1\), need \(..., 4\)"):
        rules.env_actions(drawn[:, :1])
    older = {"name": "x", "seats": 1, "rows": 1, "actions": 3, "numbers": 5, "first_action": 2}
    assert CustomRules(**older).plain() == older
    assert CustomRules(**older).env_actions([0, 2]).tolist() == [2, 4]


class Point(gymnasium.Env[Any, Any]):
    """Say where the target is, within 10..30; pays minus the distance. 8 steps."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Box(10.0, 30.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return self.look(), {}

    def look(self) -> np.ndarray:
        self.target = self.np_random.uniform(-1, 1)
        return np.array([self.target], np.float32)

    def step(self, action: Any) -> Any:
        self.time += 1
        paid = -abs(float(action[0]) - (20 + 10 * self.target)) / 10
        return self.look(), paid, False, self.time == 8, {}


def test_ppo_learns_to_point() -> None:
    torch.set_num_threads(1)
    pool = pool_of(SyncVectorEnv([Point] * 16), seed=1)
    lr, gamma = Schedule.line(1e-2, 2.5e-3), Schedule.constant(0.5)
    config = PPOConfig(epochs=4, minibatch=64, lr=lr, gamma=gamma)
    ppo = PPO(pool, CollectConfig(games=16, steps=32), config, NetConfig(hidden=(32,)), seed=1)
    scores = [ppo.iterate(update / 12)[0].stats["charts/score"] for update in range(12)]
    assert scores[0] < -4
    assert np.mean(scores[-3:]) > 0.4 * scores[0]
