"""What members of a population share: settings, the rows of a minibatch; how one is put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from sparring.config import PPOConfig
from sparring.errors import ConfigError
from sparring.learn.alike import demand_shared
from sparring.learn.fused.games import Games
from sparring.nets.run.flat import rounded_up

SPARE = 1.01
"""Room in a minibatch per sample that is wanted there, where frozen opponents play."""


@dataclass(frozen=True)
class Samples:
    """The decisions that an update of PPO learns from; the arrays never move."""

    list: Tensor
    """Their places [members, most]."""
    counts: Tensor
    """How many each member has."""
    picked: Tensor
    """Places of minibatches [minibatches, members, stride], -1: nobody's."""
    room: int
    """Samples of a minibatch; behind them come rows of terms."""
    seeds: Tensor
    clock: Tensor
    """The number of the update."""


def check_configs(games: Games, configs: Sequence[PPOConfig]) -> None:
    """Refuse what cannot be trained in one set of arrays."""
    if len(configs) != len(games.seeds):
        raise ConfigError(f"{len(configs)} configurations for {len(games.seeds)} seeds")
    demand_shared("ppo", configs)
    roles = games.rules.roles
    if any(len(config.gamma_into) not in (0, len(roles)) for config in configs):
        raise ConfigError(f"gamma_into needs one discount per role: {', '.join(roles)}")


def room_of(samples: int, minibatches: int, config: PPOConfig, opponents: bool) -> int:
    """Rows of a minibatch if all samples are in some; with opponents, how many are samples varies.

    Then a few more than wanted fit in, so that a few more samples do not need one minibatch more.
    """
    room = rounded_up(-(-samples // minibatches))
    return max(room, rounded_up(round(SPARE * config.minibatch))) if opponents else room


def put_back(members: Tensor, before: Sequence[Tensor], now: Sequence[Tensor]) -> None:
    """Give the members that are marked what they had before; nothing waits for the device."""
    for old, tensor in zip(before, now, strict=True):
        marked = members.bool().view(-1, *[1] * (tensor.dim() - 1))
        tensor.copy_(torch.where(marked, old, tensor))


@contextmanager
def kept_as_they_are(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Give tensors what they had before, behind work that changes them."""
    before = [tensor.clone() for tensor in tensors]
    yield
    for tensor, old in zip(tensors, before, strict=True):
        tensor.copy_(old)
