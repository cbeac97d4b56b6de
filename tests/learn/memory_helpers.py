"""Learners whose networks remember, in the game that needs it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from sparring import Lineup, Pool, Rules
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.plan import PPOHparams
from sparring.learn.ppo import PPO
from sparring.nets.inputs import memory_bytes_of
from sparring.schedule import Moment, Schedule

GRU = NetConfig(hidden=(16,), memory="gru", memory_width=8, bptt_steps=4)
STACK = NetConfig(hidden=(16,), memory="stack", frames=4)
COLLECT = CollectConfig(games=4, steps=14)
SETTINGS = PPOConfig(epochs=2, minibatch=32, lr=Schedule.constant(3e-3))
FIRST = PPOHparams.at(SETTINGS, Moment(0, 0.0))
TWO = {"seats": 2, "kinds": 3, "blanks": 2}
CUT = {**TWO, "limit": 5}
"""Games of two, cut before they end."""


def make(
    net: NetConfig,
    flags: dict[str, Any] | None = None,
    *,
    game: str = "signal",
    threads: int = 1,
    frozen: bool = False,
    collect: CollectConfig = COLLECT,
    settings: PPOConfig = SETTINGS,
) -> PPO:
    """A learner. frozen: it meets a network of its own kind."""
    rules = Rules(game, flags)
    lineups = [Lineup((0,) * rules.seats)]
    if frozen:
        lineups += [Lineup((0, 1)), Lineup((1, 0))]
    pool = Pool(
        rules,
        collect.games,
        seed=5,
        threads=threads,
        lineups=lineups,
        slots=collect.groups,
        memory=memory_bytes_of(rules, net),
    )
    ppo = PPO(pool, collect, settings, net, seed=2, threads=threads, slots=int(frozen))
    talkative(ppo.net, 1)
    if frozen:
        other = ppo.net.cpu_copy()
        talkative(other, 2)
        ppo.put(1, other.state_dict())
    return ppo


def talkative(net: nn.Module, seed: int) -> None:
    """Let heads say something else about every row from the beginning."""
    lots = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name in ("policy_head", "value_head"):
            weight = net.get_submodule(name).weight
            assert isinstance(weight, torch.Tensor)
            weight.copy_(torch.randn(weight.shape, generator=lots))


def slotted(slots: int) -> CollectConfig:
    return replace(COLLECT, groups=slots)
