"""A network per role of a game, combined into one network for all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.heads import ROLES, VALUE
from sparring.nets.net import HeadOutputs, Net


class RoleDetector(nn.Module):
    """Detects the roles of byte rows, like `Rules.role_of` for arrays."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        if not rules.role_bytes:
            raise ConfigError(
                f"{rules.name} has {len(rules.roles)} roles and does not declare how to detect "
                "them in a row; see role_features in docs/inside/add-a-game.md"
            )
        self.count = len(rules.roles)
        for role in range(self.count - 1):
            bytes_of_role = torch.tensor(rules.role_bytes[role])
            self.register_buffer(f"bytes_{role}", bytes_of_role, persistent=False)

    def forward(self, obs: Tensor) -> Tensor:
        """Return the role of every row [rows]."""
        roles = torch.full_like(obs[:, 0], self.count - 1, dtype=torch.long)
        for role in reversed(range(self.count - 1)):
            shown = (obs[:, self.get_buffer(f"bytes_{role}")] != 0).any(1)
            roles = torch.where(shown, role, roles)
        return roles


class HierarchyNet(Net):
    """A network per role, chosen by the row. Values are in units of the rewards.

    `roles` holds the networks by name: tensors are called roles.manager.first.weight. Each has its
    own value scale; learners run and rescale them one by one.
    """

    by_role = True

    def __init__(self, rules: Rules, nets: Mapping[str, Net]) -> None:
        """Combine networks with the same heads, one for each role of the game."""
        if tuple(nets) != rules.roles:
            raise ConfigError(
                f"a hierarchy of {rules.name} has networks for {', '.join(rules.roles)}, not for "
                f"{', '.join(nets)}"
            )
        first = next(iter(nets.values()))
        config = NetConfig(squash=first.config.squash)
        super().__init__(rules, config, heads={}, memory=first.inputs.memory)
        self.heads = first.heads
        self.role_detector = RoleDetector(rules)
        self.roles = nn.ModuleDict(nets)
        self.has_convolutions = any(net.has_convolutions for net in nets.values())

    def nets(self) -> Iterator[tuple[str, Net]]:
        """The networks by role."""
        for role, net in self.roles.items():
            assert isinstance(net, Net)
            yield role, net

    def net_of(self, role: str) -> Net:
        net = self.roles[role]
        assert isinstance(net, Net)
        return net

    def forward(self, obs: Tensor) -> HeadOutputs:
        """Return the outputs of all heads for byte rows; each network reads its role's rows."""

        def forward_role(role: str, rows: Tensor | None) -> HeadOutputs:
            net = self.net_of(role)
            return unscale_value_head(net, net(obs if rows is None else obs[rows]))

        return self.forward_by_role(obs, forward_role)

    def forward_by_role(
        self, obs: Tensor, forward: Callable[[str, Tensor | None], HeadOutputs]
    ) -> HeadOutputs:
        """Run `forward` for each role on the indices of its rows, and merge the outputs.

        The indices are None if all rows are of one role.
        """
        roles, outputs = self.role_detector(obs), HeadOutputs()
        for number, role in enumerate(self.roles):
            rows = (roles == number).nonzero().squeeze(1)
            if len(rows) == len(obs):
                return forward(role, None)
            if not len(rows):
                continue
            for name, output in forward(role, rows).items():
                if name not in outputs:
                    outputs[name] = output.new_empty(len(obs), *output.shape[1:])
                outputs[name][rows] = output
        return outputs

    def unscaled_values(self, outputs: HeadOutputs) -> Tensor:
        """Return the values, which are in units of the rewards already."""
        return outputs[VALUE].float()

    def rescale_value_head(self, scale: float) -> None:
        """Raise: every role has its own value scale."""
        raise ConfigError("a hierarchy has a value scale for every role; rescale one of them")

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            ROLES: {role: asdict(net.config) for role, net in self.nets()},
        }

    def cpu_copy(self) -> HierarchyNet:
        return HierarchyNet(self.inputs.rules, {role: net.cpu_copy() for role, net in self.nets()})


def nets_by_role(net: Net) -> list[tuple[str, Net]]:
    """Return the networks of a hierarchy by role; none for any other network."""
    return list(net.nets()) if isinstance(net, HierarchyNet) else []


def unscale_value_head(net: Net, outputs: HeadOutputs) -> HeadOutputs:
    """Return a network's outputs with values in units of the rewards."""
    return {**outputs, VALUE: net.unscaled_values(outputs)} if VALUE in outputs else outputs


def is_hierarchy(state: Mapping[str, Tensor]) -> bool:
    """Whether a state dict is that of a `HierarchyNet`."""
    return any(name.startswith(f"{ROLES}.") for name in state)
