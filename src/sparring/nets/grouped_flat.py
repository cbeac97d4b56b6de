"""Frozen perceptrons on a GPU, answered together, and which networks can be.

Hidden layers are grouped products of the library where it has them (bf16, Hopper and later), of our
own elsewhere. The head is always our own: its logits stay float32. A test holds the answers equal
to those of the networks alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparring.capabilities.ways import why_not
from sparring.config import NetConfig
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.grouped_boards import GroupedResidual
from sparring.nets.grouped_captured import GroupedCaptured
from sparring.nets.grouped_pass import GroupedFlat, GroupedPass
from sparring.nets.make import make_net
from sparring.nets.mlp import head_mask
from sparring.nets.recognised import Layers, as_perceptron, perceptron_config, recognise

FINISH_BLOCKS = 2048
"""Most blocks behind a product: enough for every GPU, each takes turns."""


def make_grouped(
    rules: Rules,
    config: NetConfig,
    members: int,
    slots: int,
    *,
    bf16: bool,
    device: torch.device,
    memory: int = 0,
) -> GroupedFlat:
    """Return room for the frozen networks of all members."""
    assert not (why := why_not("captured", config, memory=memory)), why
    if is_factory(config.kind):
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
            ours = perceptron_config(make_net(rules, config, memory=memory), config)
        if isinstance(ours, NetConfig) and not why_not("grouped", ours):
            return GroupedOwn(
                rules, config, members, slots, bf16=bf16, device=device, memory=memory, ours=ours
            )
    room: dict[str, Any] = {"bf16": bf16, "device": device, "memory": memory}
    if why_not("grouped", config, memory=memory):
        return GroupedCaptured(rules, config, members, slots, **room)
    by_kernels = GroupedResidual if config.kind == "residual" else GroupedPerceptron
    return by_kernels(rules, config, members, slots, **room)


class GroupedPerceptron(GroupedFlat):
    """The policy's tower alone."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Weights [inputs, outputs] and biases of the layers, then the head's weight."""
        widths = self.width, *self.config.hidden
        found: dict[str, tuple[int, ...]] = {}
        for layer in range(len(self.config.hidden)):
            found[f"{layer}.weight"] = (widths[layer], widths[layer + 1])
            found[f"{layer}.bias"] = (widths[layer + 1],)
        return {**found, "head": (widths[-1], self.action_width)}

    def laid_out(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Inputs in the order of the bytes, their divisors part of the first weights."""
        width = self.config.hidden[0]
        _, order, divisors = self.inputs.stretches()
        scale = 1 / torch.tensor(divisors)[:, None]
        made = {
            "0.weight": state["first.weight"][order, :width] * scale,
            "0.bias": state["first.bias"][:width],
            "head": (state["policy_head.weight"] * head_mask(self.rules, self.config)).T,
            "policy_bias": state["policy_head.bias"],
        }
        for layer in range(1, len(self.config.hidden)):
            name = f"towers.0.{2 * (layer - 1)}"
            made[f"{layer}.weight"] = state[f"{name}.weight"].T
            made[f"{layer}.bias"] = state[f"{name}.bias"]
        return made

    def passing(self, rows: int) -> PerceptronPass:
        """Return room for passes over batches of so many rows, all members together."""
        return PerceptronPass(self, rows)


class GroupedOwn(GroupedPerceptron):
    """Perceptrons of somebody's own, whose tensors are named as in their module."""

    def __init__(
        self,
        rules: Rules,
        config: NetConfig,
        members: int,
        slots: int,
        *,
        ours: NetConfig,
        bf16: bool,
        device: torch.device,
        memory: int = 0,
    ) -> None:
        """Make room. ours: the settings with which our perceptron is the same."""
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
            net = make_net(rules, config, memory=memory)
        layers = recognise(net)
        assert isinstance(layers, Layers)
        self.layers = layers
        super().__init__(rules, ours, members, slots, bf16=bf16, device=device, memory=memory)
        self._shapes = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}

    def laid_out(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """As our own are."""
        return super().laid_out(as_perceptron(self.layers, state))


class PerceptronPass(GroupedPass):
    """Rows whose bytes became numbers."""

    flat: GroupedPerceptron

    def __init__(self, net: GroupedPerceptron, rows: int) -> None:
        super().__init__(net, rows)
        self.x = self.make(rows, net.width)
        self.hidden = [
            self.make(0 if net.uses_library else rows, width) for width in net.config.hidden
        ]

    def read(self, obs: Tensor) -> None:
        """Widen the byte rows that were sorted."""
        threads = self.rows * self.flat.read_threads()
        self.flat.kernels.widen_sorted(-(-threads // 256), 256, obs, self.order, self.rows, self.x)

    def forward(self) -> None:
        """Compute the logits."""
        net, below = self.flat, self.x
        for layer, out in enumerate(self.hidden):
            weight, bias = net.weights[f"{layer}.weight"], net.weights[f"{layer}.bias"]
            finish = self.finish(bias, kind=net.config.activation)
            if net.uses_library:
                below = grouped_product(below, weight, self.ends)
                made = net.kernels.view(
                    "MadeView",
                    x=below,
                    group_of=self.group_of,
                    places=self.ends[-1:],
                    columns=below.shape[1],
                    finish=finish,
                )
                blocks = min(-(-below.numel() // (8 * 256)), FINISH_BLOCKS)
                net.kernels.finish_layer(blocks, 256, made)
            else:
                self.product(below, weight, out, finish)
                below = out
        head = net.weights["head"]
        self.product(below, head, None, self.finish(), used=net.action_width)


def grouped_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """The library's: stretches of rows of `x`, up to `ends`, each times its own weight."""
    public: Any = getattr(torch.nn.functional, "grouped_mm", None)
    product: Any = public or torch._grouped_mm
    out: Tensor = product(x, weight, offs=ends)
    return out
