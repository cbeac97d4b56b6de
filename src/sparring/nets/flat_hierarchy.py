"""The networks of all roles of all members on a GPU, behind the face of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from torch import Tensor

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.flat import Room
from sparring.nets.flat_kinds import make_flat
from sparring.nets.hierarchy import ROLES, of_role


class FlatHierarchy:
    """A `FlatNet` for every role. Tensors are named as in `nets.hierarchy.HierarchyNet`."""

    def __init__(
        self, rules: Rules, configs: Mapping[str, NetConfig], members: int, **room: Unpack[Room]
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
            net.load(member, of_role(state, role))

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the weights as the network loads them."""
        return {
            f"{ROLES}.{role}.{name}": tensor
            for role, net in self.roles.items()
            for name, tensor in net.state(member).items()
        }
