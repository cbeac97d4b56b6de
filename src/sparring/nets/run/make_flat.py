"""Which passes a network has on a GPU: its own where they are written, autograd's otherwise."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Unpack

import torch
from torch import Tensor

from sparring.capabilities.refusals import unsupported_reason
from sparring.config import NetConfig
from sparring.errors import SparringWarning
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.hierarchy import ROLES, role_tensors
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet, capture_unsupported_reason
from sparring.nets.run.flat import FlatNet, FlatOptions
from sparring.nets.run.fused_mlp import CustomPerceptron, FusedPerceptron
from sparring.nets.run.fused_residual import FusedResidual
from sparring.nets.run.trace import perceptron_config

KERNEL_NETS: Mapping[str, type[FlatNet]] = {"mlp": FusedPerceptron, "residual": FusedResidual}
"""Networks whose passes are kernels."""


def make_flat(
    rules: Rules,
    config: NetConfig,
    members: int,
    *,
    heads: Mapping[str, int] | None = None,
    **room: Unpack[FlatOptions],
) -> FlatNet:
    """Return room for the networks of all members. Their weights are loaded afterwards.

    heads: those of a network of which more is asked than policy and value.
    """
    memory = room.get("memory", 0)
    assert not (why := unsupported_reason("captured", config, memory=memory)), why
    if not is_factory(config.kind):
        if unsupported_reason("kernels", config, heads=tuple(heads or ()), memory=memory):
            return CapturedNet(rules, config, members, heads=heads, **room)
        return KERNEL_NETS[config.kind](rules, config, members, **room)
    # Somebody's own: our kernels if it is a perceptron, else autograd.
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
        net = make_net(rules, config, heads=heads, memory=memory)
    ours = perceptron_config(net, config) if heads is None else None
    if isinstance(ours, NetConfig) and not unsupported_reason("kernels", ours):
        made = CustomPerceptron(net, ours, members, **room)
        if not (why := made.differs()):
            return made
        warnings.warn(
            SparringWarning(f"net.kind {config.kind} is run by torch: {why}"), stacklevel=3
        )
    captured = CapturedNet(rules, config, members, heads=heads, **room)
    captured.eager = capture_unsupported_reason(captured) if room["device"].type == "cuda" else ""
    return captured


class FlatHierarchy:
    """A `FlatNet` for every role. Tensors are named as in `nets.hierarchy.HierarchyNet`."""

    def __init__(
        self,
        rules: Rules,
        configs: Mapping[str, NetConfig],
        members: int,
        **room: Unpack[FlatOptions],
    ) -> None:
        self.roles = {
            role: make_flat(rules, config, members, **room) for role, config in configs.items()
        }
        self.squash = any(net.squash for net in self.roles.values())

    @property
    def eager(self) -> str:
        """Why passes cannot be held by a graph, "" if they can."""
        return next((net.eager for net in self.roles.values() if net.eager), "")

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Take over the weights of a network."""
        for role, net in self.roles.items():
            net.load(member, role_tensors(state, role))

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the weights as the network loads them."""
        return {
            f"{ROLES}.{role}.{name}": tensor
            for role, net in self.roles.items()
            for name, tensor in net.state(member).items()
        }
