"""Multi-layer perceptrons with a policy and a value head."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Unpack

import torch
from torch import Tensor, nn

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.distribution import INITIAL_LOG_STD
from sparring.nets.heads import POLICY, QUANTILES, SCORE, VALUE, WDL, head_width, towers_of_heads
from sparring.nets.inputs import Inputs
from sparring.nets.layers import FirstLayer, Normalizer, Tanh, orthogonal_
from sparring.nets.net import HeadOutputs, Net, NetOptions

STDS = ("shared", "predicted")
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU}
NATIVE_ACTIVATIONS = tuple(ACTIVATIONS)
"""In the order of the enumeration in csrc/nets."""


class LinearHeads(Net):
    """A network whose heads are linear. A std shared by all rows is the policy head's bias."""

    head_mask: Tensor

    def make_heads(self, rules: Rules, *widths: int) -> None:
        """Make heads that read layers of these widths, one for each head or one for all."""
        each = widths * len(self.heads) if len(widths) == 1 else widths
        for (name, numbers), width in zip(self.heads.items(), each, strict=True):
            self.add_module(f"{name}_head", nn.Linear(width, numbers))
        self.register_buffer("head_mask", head_mask(rules, self.config), persistent=False)

    def initialize_heads(self) -> None:
        """Initialize heads: a policy that is nearly equal for all rows, and the value 0."""
        for name in self.heads:
            head = self.get_submodule(f"{name}_head")
            assert isinstance(head, nn.Linear)
            nn.init.zeros_(head.bias)
            if name == VALUE:
                nn.init.zeros_(head.weight)
            else:
                orthogonal_(head.weight, 0.01)
            if name == POLICY and self.box:
                nn.init.constant_(head.bias[self.box :], INITIAL_LOG_STD)

    def head_output(self, name: str, x: Tensor) -> Tensor:
        """Return the output of a head for the last hidden layer `x`."""
        head = getattr(self, f"{name}_head")
        if name == POLICY and self.box:
            return nn.functional.linear(x, head.weight * self.head_mask, head.bias)
        output: Tensor = head(x)
        return output.squeeze(-1) if name == VALUE else output


class LinearNet(LinearHeads):
    """A first layer, linear layers behind it, and linear heads."""

    first: FirstLayer

    @property
    def normalizer(self) -> Normalizer | None:
        return self.first.normalizer

    def update_normalizer(self, obs: Tensor) -> None:
        self.first.update_normalizer(obs)

    def make_activation(self) -> nn.Module:
        if self.config.activation == "tanh":
            return Tanh(self.first.native, fast=self.config.sparse)
        return ACTIVATIONS[self.config.activation]()

    def initialize_layers(self, inputs: Inputs, stacks: Iterable[nn.Module]) -> None:
        """Initialize the first layer, which reads `inputs`, and linear layers orthogonally."""
        gain = math.sqrt(2) if self.config.activation != "tanh" else 5 / 3
        initialize_used_rows(self.first.weight, inputs, gain)
        for module in (module for stack in stacks for module in stack.modules()):
            if isinstance(module, nn.Linear):
                orthogonal_(module.weight, gain)
                nn.init.zeros_(module.bias)


class Perceptron(LinearNet):
    """Linear layers over all features."""

    def __init__(
        self, rules: Rules, config: NetConfig, *, threads: int = 1, **options: Unpack[NetOptions]
    ) -> None:
        super().__init__(rules, config, **options)
        if config.std not in STDS:
            raise ConfigError(f"net.std {config.std!r}; there are {list(STDS)}")
        if config.activation not in ACTIVATIONS:
            raise ConfigError(
                f"net.activation {config.activation!r}; there are {list(ACTIVATIONS)}"
            )
        self.tower_of = towers_of_heads(self.heads, config)
        """Index of the tower that each head reads."""
        towers = max(self.tower_of.values()) + 1
        self.first = FirstLayer(
            self.inputs,
            config.hidden[0] * towers,
            sparse=config.sparse,
            threads=threads,
            normalize=config.normalize,
        )
        self.activation = self.make_activation()
        if config.norm:  # one for each tower: towers are independent networks
            self.first_norms = nn.ModuleList(nn.LayerNorm(config.hidden[0]) for _ in range(towers))
        self.towers = nn.ModuleList(
            tower(config.hidden, self.make_activation, norm=config.norm) for _ in range(towers)
        )
        self.head_layers: dict[str, str] = {}
        """Module of the layers between a head and its tower, for heads that have such layers."""
        for layers, widths, readers in (
            ("policy_layers", config.policy_hidden, (POLICY, QUANTILES)),
            ("value_layers", config.value_hidden, (VALUE, WDL, SCORE)),
        ):
            heads = [name for name in readers if name in self.heads]
            if widths and heads:
                stack = tower((config.hidden[-1], *widths), self.make_activation, norm=config.norm)
                self.add_module(layers, stack)
                self.head_layers |= dict.fromkeys(heads, layers)
        last = {"policy_layers": config.policy_hidden, "value_layers": config.value_hidden}
        read = [last.get(self.head_layers.get(name, ""), config.hidden)[-1] for name in self.heads]
        self.make_heads(rules, *read)
        self.initialize_layers(
            self.inputs,
            [self.towers, *map(self.get_submodule, dict.fromkeys(self.head_layers.values()))],
        )
        self.initialize_heads()

    def _first_layer(self, obs: Tensor) -> Sequence[Tensor]:
        """Return the activations of the first layer by tower."""
        out: Tensor = self.first(obs)
        if not self.config.norm:
            out = self.activation(out)
            return out.chunk(len(self.towers), dim=1) if len(self.towers) > 1 else [out]
        parts = out.chunk(len(self.towers), dim=1)
        return [
            self.activation(norm(part)) for norm, part in zip(self.first_norms, parts, strict=True)
        ]

    def forward(self, obs: Tensor) -> HeadOutputs:
        parts = self._first_layer(obs)
        hidden = [layers(part) for layers, part in zip(self.towers, parts, strict=True)]
        by_layers: dict[str, Tensor] = {}
        outputs: HeadOutputs = {}
        for name in self.heads:
            x = hidden[self.tower_of[name]]
            if layers := self.head_layers.get(name):
                if layers not in by_layers:
                    by_layers[layers] = self.get_submodule(layers)(x)
                x = by_layers[layers]
            outputs[name] = self.head_output(name, x)
        return outputs


@torch.no_grad()
def initialize_used_rows(weight: Tensor, inputs: Inputs, gain: float) -> None:
    """Initialize the rows of used features orthogonally; rows of unused features stay 0."""
    if inputs.used_features is None:
        orthogonal_(weight, gain)
        return
    rows = torch.tensor(list(inputs.used_features))
    weight.zero_()
    weight[rows] = orthogonal_(torch.empty(len(rows), weight.shape[1]), gain)


def head_mask(rules: Rules, config: NetConfig) -> Tensor:
    """Return a mask [head_width, 1] of the policy head's rows that read the hidden layer."""
    mask = torch.ones(head_width(rules), 1)
    if rules.box and config.std == "shared":
        mask[rules.box :] = 0
    return mask


def tower(
    hidden: tuple[int, ...], activation: Callable[[], nn.Module], *, norm: bool = False
) -> nn.Sequential:
    """Return the layers after the first one."""
    layers: list[nn.Module] = []
    for width, next_width in pairwise(hidden):
        layers.append(nn.Linear(width, next_width))
        layers += [nn.LayerNorm(next_width)] if norm else []
        layers.append(activation())
    return nn.Sequential(*layers)
