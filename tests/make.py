"""What many tests begin with: rows of games under way, small learners, networks of every kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from sparring import Lineup, Pool, Rules
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.ppo import PPO
from sparring.nets.make import make_net
from sparring.nets.net import Net

SMALL = NetConfig(hidden=(32, 32))
COLLECT = CollectConfig(games=16, steps=24)
NETS: dict[str, tuple[str, NetConfig]] = {
    "relu": ("skull_king", NetConfig(hidden=(64, 32))),
    "odd widths": ("skull_king", NetConfig(hidden=(50, 7, 33))),
    "one layer": ("tic_tac_toe", NetConfig(hidden=(96,))),
    "tanh, two trunks": ("skull_king", NetConfig(hidden=(64, 48), shared=False, activation="tanh")),
    "silu": ("tic_tac_toe", NetConfig(hidden=(96, 64), activation="silu")),
    "without our own first layer": ("tic_tac_toe", NetConfig(hidden=(64, 32), sparse=False)),
    "continuous": ("duel", NetConfig(hidden=(64, 32))),
    "continuous, two trunks": ("duel", NetConfig(hidden=(64,), shared=False, std="predicted")),
    "layer norm": ("skull_king", NetConfig(hidden=(64, 32), norm=True)),
    "layer norm, two trunks": (
        "skull_king",
        NetConfig(hidden=(64, 32), shared=False, norm=True, activation="tanh"),
    ),
    "residual": ("shogi", NetConfig(kind="residual", channels=8, blocks=1)),
    "residual, odd channels": ("shogi", NetConfig(kind="residual", channels=6, blocks=1)),
    "residual, dense policy": ("connect_four", NetConfig(kind="residual", channels=8, blocks=1)),
    "own": ("skull_king", NetConfig(kind="own_nets:Plain")),
    "own, blocks": ("cage2", NetConfig(kind="own_nets:Blocks")),
    "own, a table": ("tic_tac_toe", NetConfig(kind="own_nets:Bytes")),
}
"""By what is special about them: a game, and a network that plays it."""


def nets(*names: str) -> dict[str, tuple[str, NetConfig]]:
    """Some of the networks."""
    return {name: NETS[name] for name in names}


class Played(NamedTuple):
    """Rows of games that are under way."""

    rules: Rules
    obs: np.ndarray
    mask: np.ndarray

    @property
    def tensor(self) -> torch.Tensor:
        return torch.from_numpy(self.obs)


def played(
    game: str | Rules,
    rows: int,
    *,
    steps: int,
    seed: int = 3,
    flags: dict[str, Any] | None = None,
    memory: int = 0,
) -> Played:
    """The first rows of a pool after some random moves."""
    pool = Pool(game, rows, seed=seed, threads=1, config=flags, memory=memory)
    pool.reset()
    for _ in range(steps):
        pool.step(pool.sample_actions())
    batch = pool.batch()
    return Played(pool.rules, batch.obs[:rows].copy(), batch.mask[:rows].copy())


def stirred(net: Net, std: float = 0.1) -> Net:
    """Fill all weights, so that nothing hides behind those that begin at 0."""
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return net


def some_net(game: str | Rules, config: NetConfig, *, seed: int = 0, std: float = 0.1) -> Net:
    """A network whose weights are all drawn."""
    torch.manual_seed(seed)
    return stirred(make_net(Rules(game) if isinstance(game, str) else game, config), std)


def make_ppo(
    game: str = "tic_tac_toe",
    config: PPOConfig | None = None,
    net: NetConfig = SMALL,
    *,
    flags: dict[str, Any] | None = None,
    members: tuple[Any, ...] | None = None,
    collect: CollectConfig = COLLECT,
    kind: type[PPO] = PPO,
    **options: Any,
) -> PPO:
    """A learner of a few games in which it plays every seat, or those that `members` leave it."""
    rules = Rules(game, flags)
    lineups = [Lineup(members or (0,) * rules.seats)]
    pool = Pool(rules, collect.games, seed=1, threads=1, lineups=lineups)
    return kind(pool, collect, config or PPOConfig(epochs=2, minibatch=128), net, seed=1, **options)
