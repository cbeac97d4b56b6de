"""Makes networks on a GPU: with hand-written passes where they exist, with autograd otherwise."""

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
from sparring.nets.heads import ROLES, role_tensors
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet, capture_unsupported_reason
from sparring.nets.run.flat import FlatNet, FlatOptions
from sparring.nets.run.fused_mlp import CustomPerceptron, FusedPerceptron
from sparring.nets.run.fused_residual import FusedResidual
from sparring.nets.run.trace import perceptron_config

KERNEL_NETS: Mapping[str, type[FlatNet]] = {"mlp": FusedPerceptron, "residual": FusedResidual}
"""Networks with hand-written passes."""


def make_flat(
    rules: Rules,
    config: NetConfig,
    members: int,
    *,
    heads: Mapping[str, int] | None = None,
    **options: Unpack[FlatOptions],
) -> FlatNet:
    """Allocate the networks of all members; `load` fills them.

    heads: widths of all heads, if there are auxiliary ones.
    """
    memory = options.get("memory", 0)
    assert not (why := unsupported_reason("captured", config, memory=memory)), why
    if not is_factory(config.kind):
        if unsupported_reason("kernels", config, heads=tuple(heads or ()), memory=memory):
            return CapturedNet(rules, config, members, heads=heads, **options)
        return KERNEL_NETS[config.kind](rules, config, members, **options)
    # Custom: kernels if it is a perceptron, else autograd.
    with torch.random.fork_rng(devices=[]):  # the initial weights are not used
        net = make_net(rules, config, heads=heads, memory=memory)
    equivalent = perceptron_config(net, config) if heads is None else None
    if isinstance(equivalent, NetConfig) and not unsupported_reason("kernels", equivalent):
        perceptron = CustomPerceptron(net, equivalent, members, **options)
        if not (why := perceptron.describe_difference()):
            return perceptron
        warnings.warn(
            SparringWarning(f"net.kind {config.kind} is run by torch: {why}"), stacklevel=3
        )
    captured = CapturedNet(rules, config, members, heads=heads, **options)
    if options["device"].type == "cuda":
        captured.eager_reason = capture_unsupported_reason(captured)
    return captured


class FlatHierarchy:
    """A `FlatNet` for every role. State dicts are those of `HierarchyNet`."""

    def __init__(
        self,
        rules: Rules,
        configs: Mapping[str, NetConfig],
        members: int,
        **options: Unpack[FlatOptions],
    ) -> None:
        self.roles = {
            role: make_flat(rules, config, members, **options) for role, config in configs.items()
        }
        self.squash = any(net.squash for net in self.roles.values())

    @property
    def eager_reason(self) -> str:
        """Why a CUDA graph cannot capture the passes, "" if it can."""
        return next((net.eager_reason for net in self.roles.values() if net.eager_reason), "")

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Load the state dict of a hierarchy."""
        for role, net in self.roles.items():
            net.load(member, role_tensors(state, role))

    def average_from(self, other: FlatNet | FlatHierarchy, member: int, step: float) -> None:
        """Move a member's weights toward those of another one by a share of the distance."""
        assert isinstance(other, FlatHierarchy)
        for role, net in self.roles.items():
            net.average_from(other.roles[role], member, step)

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the state dict of a member's hierarchy."""
        return {
            f"{ROLES}.{role}.{name}": tensor
            for role, net in self.roles.items()
            for name, tensor in net.state(member).items()
        }
