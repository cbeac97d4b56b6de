"""Small learners of values, and environments and plain programs to hold them against."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import sparring
from sparring import Lineup, Pool
from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig
from sparring.learn.collect import Collector
from sparring.learn.dqn import DQN
from sparring.learn.pqn import PQN
from sparring.nets.policy import Policy
from sparring.pools.custom import VectorEnvPool
from sparring.pools.protocol import GamePool

SMALL = NetConfig(hidden=(32, 32))
RANDOM = ((0, "random"), ("random", 0))


def tables(games: int, players: tuple[Any, ...] = ((0, 0),), seed: int = 1) -> Pool:
    """Tic-tac-toe with these players."""
    lineups = [Lineup(seats) for seats in players]
    return Pool(sparring.Rules("tic_tac_toe"), games, seed=seed, threads=1, lineups=lineups)


def make_dqn(
    pool: GamePool, *, steps: int = 8, net: NetConfig = SMALL, slots: int = 0, **settings: Any
) -> DQN:
    """settings: those of the replay are called replay_..."""
    replay = {"batch": 32, "capacity": 8192, "warmup": 64, "ratio": 4.0}
    replay |= {k[7:]: settings.pop(k) for k in list(settings) if k.startswith("replay_")}
    collect = CollectConfig(games=pool.num_games, steps=steps, cpu="float32")
    config, kept = DQNConfig(**settings), ReplayConfig(**replay)
    return DQN(pool, collect, config, kept, net, seed=1, slots=slots)


def make_pqn(pool: GamePool, *, steps: int = 16, net: NetConfig = SMALL, **settings: Any) -> PQN:
    collect = CollectConfig(games=pool.num_games, steps=steps, cpu="float32")
    return PQN(pool, collect, DQNConfig(mode="rollouts", **settings), net, seed=1)


def walks(count: int, limit: int = 5) -> VectorEnvPool:
    """Envs that pay 1 for every step and are cut after some; they show how many there were."""
    import gymnasium

    class Walk(gymnasium.Env):
        observation_space: ClassVar = gymnasium.spaces.Box(0, 100, (2,), np.float32)
        action_space: ClassVar = gymnasium.spaces.Discrete(3)

        def reset(self, **options: Any) -> Any:
            self.made = 0
            return self._obs(), {}

        def step(self, action: int) -> Any:
            self.made += 1
            return self._obs(), 1.0, False, self.made == limit, {}

        def _obs(self) -> np.ndarray:
            return np.array([self.made, 1], np.float32)

    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    env = gymnasium.vector.SyncVectorEnv([Walk] * count, autoreset_mode=mode)
    return VectorEnvPool(env, seed=1)


def score_against_random(policy: Policy, rounds: int = 60) -> float:
    """The mean score of greedy play in tic-tac-toe: 1 for a win, 0 for a loss."""
    pool = tables(64, RANDOM, seed=77)
    batch, scores = pool.reset(), []
    for _ in range(rounds):
        batch = pool.step(policy.act(batch.obs, batch.mask))
        scores += list(batch.final_score[batch.final_policy == 0])
    return float(np.mean(scores)) / 2 + 0.5


Link = tuple[float, int | None]
"""What the seat was paid until its next decision, and where that lies in the rollout."""


def links_of(collector: Collector) -> dict[int, Link]:
    """Follow the first rollout of a game with one row step by step: what came of every place."""
    rollout, found, waiting = collector.rollout, {}, {}
    first, games = collector.transitions.max_pending, collector.pool.num_games
    for step in range(collector.steps):
        for game in range(games):
            place, seat = first + step * games + game, int(rollout.seat[step, game])
            if rollout.policy[step, game] == 0:
                if (game, seat) in waiting:
                    before, paid = waiting.pop((game, seat))
                    found[before] = (paid, place)
                waiting[game, seat] = (place, 0.0)
            for owner in range(rollout.reward.shape[2]):
                if (game, owner) not in waiting:
                    continue
                before, paid = waiting.pop((game, owner))
                paid += float(rollout.reward[step, game, owner, 0])
                if rollout.terminated[step, game]:
                    found[before] = (paid, None)
                else:
                    waiting[game, owner] = (before, paid)
    return found
