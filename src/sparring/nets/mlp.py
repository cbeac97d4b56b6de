"""Multi-layer perceptrons with a policy and a value head."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.distribution import FIRST_LOG_SPREAD
from sparring.nets.first_layer import FirstLayer, Tanh
from sparring.nets.net import Net, head_width

SPREADS = ("shared", "predicted")
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU}


class Perceptron(Net):
    """Linear layers over all features. A spread that all rows share is the head's bias alone."""

    head_mask: Tensor

    def __init__(self, rules: Rules, config: NetConfig, *, threads: int = 1) -> None:
        super().__init__(rules, config)
        if config.spread not in SPREADS:
            raise ConfigError(f"spread {config.spread!r}; there are {list(SPREADS)}")
        if config.activation not in ACTIVATIONS:
            raise ConfigError(f"activation {config.activation!r}; there are {list(ACTIVATIONS)}")
        towers = 1 if config.shared else 2
        self.first = FirstLayer(
            rules, config.hidden[0] * towers, sparse=config.sparse, threads=threads
        )
        self.activation = self._make_activation()
        self.towers = nn.ModuleList(
            tower(config.hidden, self._make_activation) for _ in range(towers)
        )
        self.policy_head = nn.Linear(config.hidden[-1], head_width(rules))
        self.value_head = nn.Linear(config.hidden[-1], 1)
        self.register_buffer("head_mask", head_mask(rules, config), persistent=False)
        self._initialise(config)

    def _make_activation(self) -> nn.Module:
        if self.config.activation == "tanh":
            return Tanh(self.first.native, fast=self.config.sparse)
        return ACTIVATIONS[self.config.activation]()

    def _initialise(self, config: NetConfig) -> None:
        """Orthogonal weights; a policy almost alike for all rows and the value 0 to begin with."""
        gain = math.sqrt(2) if config.activation != "tanh" else 5 / 3
        nn.init.orthogonal_(self.first.weight, gain)
        for module in self.towers.modules():
            if isinstance(module, nn.Linear):
                nn.init.orthogonal_(module.weight, gain)
                nn.init.zeros_(module.bias)
        nn.init.orthogonal_(self.policy_head.weight, 0.01)
        nn.init.zeros_(self.policy_head.bias)
        if self.box:
            nn.init.constant_(self.policy_head.bias[self.box :], FIRST_LOG_SPREAD)
        nn.init.zeros_(self.value_head.weight)
        nn.init.zeros_(self.value_head.bias)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the head [rows, head_width] and values in units of `value_scale` [rows]."""
        hidden = self.activation(self.first(obs))
        parts = hidden.chunk(len(self.towers), dim=1)
        ends = [layers(part) for layers, part in zip(self.towers, parts, strict=True)]
        weight = self.policy_head.weight * self.head_mask if self.box else self.policy_head.weight
        head = nn.functional.linear(ends[0], weight, self.policy_head.bias)
        return head, self.value_head(ends[-1]).squeeze(-1)


def head_mask(rules: Rules, config: NetConfig) -> Tensor:
    """1 for the rows of the policy head's weight that are used [head_width, 1]."""
    mask = torch.ones(head_width(rules), 1)
    if rules.box and config.spread == "shared":
        mask[rules.box :] = 0
    return mask


def tower(hidden: tuple[int, ...], activation: Callable[[], nn.Module]) -> nn.Sequential:
    """The layers behind the first one."""
    layers: list[nn.Module] = []
    for width, following in pairwise(hidden):
        layers += [nn.Linear(width, following), activation()]
    return nn.Sequential(*layers)
