"""One network for every role of a game, which together answer any row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.net import VALUE, HeadOutputs, Net

ROLES = "roles"
"""In front of a role's tensors, and what descriptions call the networks."""


class RoleDetector(nn.Module):
    """Tells the roles of byte rows, as `Rules.role_of` does for arrays."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        if not rules.role_bytes:
            raise ConfigError(
                f"{rules.name} has {len(rules.roles)} roles and does not declare how a row tells "
                "its own; see told_by in docs/add-a-game.md"
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
    """A network per role. Rows are told apart by what they show; values are in units of rewards.

    `roles` holds the networks by name, so that tensors are called roles.manager.first.weight; each
    has a unit of values of its own. Learners run and rescale them one by one.
    """

    def __init__(self, rules: Rules, nets: Mapping[str, Net]) -> None:
        """Put networks together, one for each role of the game, with the same heads."""
        if tuple(nets) != rules.roles:
            raise ConfigError(
                f"a hierarchy of {rules.name} has networks for {', '.join(rules.roles)}, not for "
                f"{', '.join(nets)}"
            )
        first = next(iter(nets.values()))
        config = NetConfig(squash=first.config.squash)  # how actions become those of the game
        super().__init__(rules, config, heads={}, memory=first.inputs.memory)
        self.heads = first.heads
        self.role_detector = RoleDetector(rules)
        self.roles = nn.ModuleDict(nets)
        self.convolves = any(net.convolves for net in nets.values())

    def nets(self) -> Iterator[tuple[str, Net]]:
        """The networks by role."""
        for role, net in self.roles.items():
            assert isinstance(net, Net)
            yield role, net

    def of(self, role: str) -> Net:
        net = self.roles[role]
        assert isinstance(net, Net)
        return net

    def forward(self, obs: Tensor) -> HeadOutputs:
        """Return what every head says about byte rows; each network sees the rows of its role."""

        def say(role: str, rows: Tensor | None) -> HeadOutputs:
            net = self.of(role)
            return unscale_value_head(net, net(obs if rows is None else obs[rows]))

        return self.by_role(obs, say)

    def by_role(self, obs: Tensor, say: Callable[[str, Tensor | None], HeadOutputs]) -> HeadOutputs:
        """Put together what is said about the rows of every role; None stands for all of them."""
        told, said = self.role_detector(obs), HeadOutputs()
        for number, role in enumerate(self.roles):
            rows = (told == number).nonzero().squeeze(1)
            if len(rows) == len(obs):
                return say(role, None)
            if not len(rows):
                continue
            for name, answer in say(role, rows).items():
                if name not in said:
                    said[name] = answer.new_empty(len(obs), *answer.shape[1:])
                said[name][rows] = answer
        return said

    def unscaled_values(self, heads: HeadOutputs) -> Tensor:
        """Values in units of the rewards: they already are."""
        return heads[VALUE].float()

    def rescale_value_head(self, scale: float) -> None:
        """Refuse: every role has a unit of its own."""
        raise ConfigError("a hierarchy has a unit of values for every role; rescale one of them")

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            ROLES: {role: asdict(net.config) for role, net in self.nets()},
        }

    def cpu_copy(self) -> HierarchyNet:
        return HierarchyNet(self.inputs.rules, {role: net.cpu_copy() for role, net in self.nets()})


def nets_by_role(net: Net) -> list[tuple[str, Net]]:
    """Return a network's own ones by role, none if it is one for all."""
    return list(net.nets()) if isinstance(net, HierarchyNet) else []


def unscale_value_head(net: Net, heads: HeadOutputs) -> HeadOutputs:
    """What a network says, with values in units of the rewards."""
    return {**heads, VALUE: net.unscaled_values(heads)} if VALUE in heads else heads


def role_tensors(state: Mapping[str, Tensor], role: str) -> dict[str, Tensor]:
    """Return the tensors of one role's network, by the names that they have there."""
    prefix = f"{ROLES}.{role}."
    return {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}


def is_hierarchy(state: Mapping[str, Tensor]) -> bool:
    """Whether tensors are those of a network per role."""
    return any(name.startswith(f"{ROLES}.") for name in state)
