"""PPO whose games are played with weights of so many updates ago, without processes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

import sparring
from sparring import Pool
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.collect import Collector, Sampling
from sparring.learn.forward import Forward
from sparring.learn.vtrace import LaggedPPO

NET = NetConfig(hidden=(32, 32))


class Late(Collector):
    """Plays with the weights of `behind` updates ago and says so, unless it is to keep quiet."""

    def __init__(self, learner: LaggedPPO, behind: Any, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.learner, self.behind = learner, behind
        self.past: list[dict[str, torch.Tensor]] = []
        self.player = learner.net.twin()
        self.forward = Forward(self.player, torch.device("cpu"), CollectConfig())
        self.forward.go_native(1)
        self.lag = np.zeros(self.pool.num_games, np.int32)

    def collect(self, number: int, *, anew: bool = True) -> dict[str, float]:
        self.past.append(copy.deepcopy(self.learner.net.state_dict()))
        lag = min(self.behind(number), len(self.past) - 1)
        self.lag[:] = lag
        self.player.load_state_dict(self.past[-1 - lag])
        self.actors[0] = Sampling(self.forward, self.learner.seed)
        return super().collect(number, anew=anew)


class LatePPO(LaggedPPO):
    """The learner. behind: by the number of the rollout; told: whether it knows of the lag."""

    def __init__(self, *args: Any, behind: Any, told: bool = True, **options: Any) -> None:
        self.behind, self.told = behind, told
        super().__init__(*args, **options)

    def make_collector(self, collect: CollectConfig, **options: Any) -> Collector:
        actor = self.make_actor()
        return Late(
            self, self.behind, self.pool, collect, actor, self.columns, self.phases, **options
        )

    def lag(self) -> Any:
        lag = super().lag()
        return lag if self.told else np.zeros_like(lag)


def make_late(
    behind: Any,
    *,
    game: str = "tic_tac_toe",
    collect: CollectConfig,
    config: PPOConfig,
    seed: int = 1,
    net: NetConfig = NET,
    game_config: dict[str, Any] | None = None,
    **options: Any,
) -> LatePPO:
    pool = Pool(sparring.Rules(game, game_config), collect.games, seed=seed, threads=1)
    return LatePPO(pool, collect, config, net, seed=seed, behind=behind, **options)


def not_lost(ppo: LatePPO, rounds: int = 40) -> float:
    """The share of tic-tac-toe that its sampled play does not lose, half of it against each bot."""
    seats: list[tuple[Any, ...]] = [(0, "careful"), ("careful", 0), (0, "random"), ("random", 0)]
    lineups = [sparring.Lineup(players, shuffle=False) for players in seats]
    pool = Pool(sparring.Rules("tic_tac_toe"), 256, seed=77, threads=1, lineups=lineups)
    policy, batch, scores = ppo.policy(), pool.reset(), []
    for step in range(rounds):
        batch = pool.step(policy.act(batch.obs, batch.mask, step=step))
        scores += list(batch.final_score[batch.final_policy == 0])
    return float(np.mean(np.array(scores) >= 0))
