"""The networks of all roles of all members on a GPU, behind the face of one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.flat_kinds import make_flat


class FlatHierarchy:
    """A `FlatNet` for every role. Tensors are named as in `nets.hierarchy.HierarchyNet`."""

    def __init__(
        self,
        rules: Rules,
        configs: Mapping[str, NetConfig],
        members: int,
        *,
        bf16: bool,
        device: torch.device,
        memory: int = 0,
    ) -> None:
        self.roles = {
            role: make_flat(rules, config, members, bf16=bf16, device=device, memory=memory)
            for role, config in configs.items()
        }
        self.squash = any(net.squash for net in self.roles.values())

    @property
    def eager(self) -> str:
        """Why passes cannot be held by a graph, "" if they can."""
        return next((net.eager for net in self.roles.values() if net.eager), "")

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Take over the weights of a network."""
        for role, net in self.roles.items():
            before = f"roles.{role}."
            net.load(
                member,
                {
                    name.removeprefix(before): tensor
                    for name, tensor in state.items()
                    if name.startswith(before)
                },
            )

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the weights as the network loads them."""
        return {
            f"roles.{role}.{name}": tensor
            for role, net in self.roles.items()
            for name, tensor in net.state(member).items()
        }
