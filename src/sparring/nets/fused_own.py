"""Perceptrons of somebody's own on a GPU: our kernels, with weights as their module has them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.nets.fused_mlp import FusedPerceptron
from sparring.nets.net import POLICY, VALUE, Net
from sparring.nets.recognised import (
    COMPARED,
    Layers,
    as_perceptron,
    differs,
    from_perceptron,
    recognise,
    some_rows,
)


class OwnPerceptron(FusedPerceptron):
    """A perceptron whose tensors are named and shaped as in a module of somebody's own."""

    def __init__(
        self, net: Net, config: NetConfig, members: int, *, bf16: bool, device: torch.device
    ) -> None:
        """Make room for networks like this one. config: with which ours is the same."""
        rules, memory = net.inputs.rules, net.inputs.memory
        super().__init__(rules, config, members, bf16=bf16, device=device, memory=memory)
        layers = recognise(net)
        assert isinstance(layers, Layers)
        self.like, self.names, self.made_of = net, layers, net.config

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        """Return tensors named and shaped as in the module as one flat array."""
        return super().pack(as_perceptron(self.names, named))

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        """Return a flat array as tensors named and shaped as in the module."""
        found = from_perceptron(self.names, super().unpack(flat))
        return {name: found[name] for name in self.parameter_names()}

    def parameter_names(self) -> list[str]:
        """The parameters in the order in which the module has them."""
        return [name for name, _ in self.like.named_parameters()]

    @torch.no_grad()
    def differs(self) -> str:
        """Hold the kernels against the module; what lies in the arrays of the first is lost."""
        rows = some_rows(self.inputs, COMPARED)
        self.load(0, self.like.state_dict())
        passing = self.passing(COMPARED, learn=False)
        passing.read(rows.repeat(self.members, 1).to(self.device))
        passing.forward()
        width = self.like.heads[POLICY]
        logits = passing.logits[0, :, :width] + self.policy_bias[0].flatten()[:width]
        value = passing.value[0, :, 0] + self.value_bias[0].flatten()[0]
        said = {POLICY: logits.cpu(), VALUE: value.cpu()}
        return differs(self.like, said, rows, rounded=self.bf16)
