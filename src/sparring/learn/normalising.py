"""What a network's observations are normalised by, kept up to date while it learns."""

from __future__ import annotations

import numpy as np
import torch

from sparring.learn.collect import Collector
from sparring.nets.hierarchy import nets_of
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.pools.lineups import LEARNER


def normalises(net: Net) -> bool:
    """Whether a network, or one of its roles', normalises its observations."""
    return any(each.normaliser is not None for _, each in nets_of(net) or [("", net)])


def take_in_rows(net: Net, collector: Collector) -> None:
    """Add the learner's own rows of a rollout to what its network normalises by.

    Of several networks, each sees the rows of its role.
    """
    own = nets_of(net) or [("", net)]
    if all(each.normaliser is None for _, each in own):
        return
    rollout = collector.rollout
    obs, role = rollout.obs[collector.transitions.carried :], rollout.role.reshape(-1)
    mine = rollout.policy.reshape(-1) == LEARNER
    for number, (name, each) in enumerate(own):
        rows = mine & (role == number) if name else mine
        each.take_in(torch.from_numpy(obs[np.flatnonzero(rows)]))


def share_normaliser(net: Net, other: Net) -> None:
    """Have another network of the same kind, such as a target, normalise by the same numbers."""
    if isinstance(net, Perceptron) and isinstance(other, Perceptron):
        other.first.normaliser = net.first.normaliser
