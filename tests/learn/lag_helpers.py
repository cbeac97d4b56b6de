"""PPO whose games are played with weights of so many updates ago, without processes."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import torch

import sparring
from sparring import Pool
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.advantages import VTrace
from sparring.learn.collect import Collector, Sampling
from sparring.learn.forward import Forward
from sparring.learn.ppo import PPO

NET = NetConfig(hidden=(32, 32))


class Late(Collector):
    """Plays with the weights of `behind` updates ago, and says so in `lag`."""

    def __init__(self, behind: Any, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        actor = self.actors[0]
        assert isinstance(actor, Sampling)
        self.net, self.seed, self.behind = actor.forward.net, actor.sampler.seed, behind
        self.past: list[dict[str, torch.Tensor]] = []
        self.player = self.net.cpu_copy()
        self.forward = Forward(self.player, torch.device("cpu"), CollectConfig())
        self.forward.go_native(1)
        self.lag = np.zeros(self.pool.num_games, np.int32)

    def collect(self, number: int, *, reset_stats: bool = True) -> dict[str, float]:
        self.past.append(copy.deepcopy(self.net.state_dict()))
        lag = min(self.behind(number), len(self.past) - 1)
        self.lag[:] = lag
        self.player.load_state_dict(self.past[-1 - lag])
        self.actors[0] = Sampling(self.forward, self.seed)
        return super().collect(number, reset_stats=reset_stats)


def make_late(
    behind: Any,
    *,
    game: str = "tic_tac_toe",
    collect: CollectConfig,
    config: PPOConfig,
    seed: int = 1,
    net: NetConfig = NET,
    game_config: dict[str, Any] | None = None,
    told: bool = True,
    **limits: float,
) -> PPO:
    """The learner. behind: by the number of the rollout; told: whether it corrects the lag."""
    pool = Pool(sparring.Rules(game, game_config), collect.games, seed=seed, threads=1)
    correction = VTrace(**limits) if told else None
    options: dict[str, Any] = {"correction": correction, "collector": partial(Late, behind)}
    return PPO(pool, collect, config, net, seed=seed, **options)


def not_lost(ppo: PPO, rounds: int = 40) -> float:
    """The share of tic-tac-toe that its sampled play does not lose, half of it against each bot."""
    seats: list[tuple[Any, ...]] = [(0, "careful"), ("careful", 0), (0, "random"), ("random", 0)]
    lineups = [sparring.Lineup(players, shuffle=False) for players in seats]
    pool = Pool(sparring.Rules("tic_tac_toe"), 256, seed=77, threads=1, lineups=lineups)
    policy, batch, scores = ppo.policy(), pool.reset(), []
    for step in range(rounds):
        batch = pool.step(policy.act(batch.obs, batch.mask, step=step))
        scores += list(batch.final_score[batch.final_policy == 0])
    return float(np.mean(np.array(scores) >= 0))
