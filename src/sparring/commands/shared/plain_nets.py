"""Networks as graphs that ONNX can hold: bytes in, and what is remembered as numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.attention import AttentionNet
from sparring.nets.custom import CustomNet
from sparring.nets.custom_inputs import BYTES
from sparring.nets.hierarchy import HierarchyNet, RoleDetector
from sparring.nets.inputs import Inputs
from sparring.nets.layers import FirstLayer
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import MEMORY, POLICY, VALUE, Net
from sparring.nets.policy import VALUES, Policy
from sparring.nets.recurrent import RecurrentNet


def has_values(policy: Policy) -> bool:
    """Whether the value head says what a row is worth.

    One by value is worth its best legal action, and the file knows no masks.
    """
    trained = policy.meta.get(VALUES, True) and not policy.is_value_based
    return VALUE in policy.net.heads and trained


class PlainNet(nn.Module):
    """The network as one graph: bytes in, logits and values in units of reward out."""

    def __init__(self, rules: Rules, net: Net, *, valued: bool) -> None:
        """Copy a network. valued: whether its values are to come out too."""
        super().__init__()
        self.valued = valued
        self.net = make_net(rules, replace(net.config, sparse=False), heads=net.heads)
        self.net.load_state_dict(net.state_dict())
        if isinstance(self.net, Perceptron | AttentionNet):
            first = PlainFirstLayer(self.net.inputs, self.net.first)
            self.net.first = first  # type: ignore[assignment]
        if isinstance(self.net, CustomNet) and self.net.reads != BYTES:
            self.net.reader.widen = PlainWiden(self.net.inputs)

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        """Return logits [rows, actions], and values [rows] if the network has any."""
        heads = self.net(obs)
        logits = heads[POLICY]
        return (logits, self.net.unscaled_values(heads)) if self.valued else (logits,)


class PlainHierarchy(nn.Module):
    """A network for every role as one graph: all of them answer, the row's own is taken."""

    def __init__(self, rules: Rules, net: HierarchyNet, *, valued: bool) -> None:
        super().__init__()
        self.role_detector = RoleDetector(rules)
        self.nets = nn.ModuleList(PlainNet(rules, own, valued=valued) for _, own in net.nets())

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        told = self.role_detector(obs)
        answers = [net(obs) for net in self.nets]
        chosen: tuple[Tensor, ...] = answers[-1]
        for role, said in enumerate(answers[:-1]):
            mine = told == role
            chosen = tuple(
                torch.where(mine if own.dim() == 1 else mine[:, None], own, other)
                for own, other in zip(said, chosen, strict=True)
            )
        return chosen


def plain_net(policy: Policy) -> nn.Module:
    net, valued = policy.net, has_values(policy)
    if isinstance(net, HierarchyNet):
        return PlainHierarchy(policy.rules, net, valued=valued)
    if policy.memory_bytes:
        return PlainRemembering(policy.rules, net, valued=valued)
    return PlainNet(policy.rules, net, valued=valued)


class PlainWiden(nn.Module):
    """Bytes as numbers without reading them as another type, which ONNX runtimes do not know."""

    divisor: Tensor
    powers: Tensor

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.parts, _, divisors = inputs.byte_ranges()
        self.register_buffer("divisor", torch.tensor(divisors))
        exponents = torch.arange(256, dtype=torch.float64).clamp(min=1) - 150
        self.register_buffer("powers", torch.exp2(exponents).float())

    def forward(self, obs: Tensor) -> Tensor:
        return self.widen(obs)

    def widen(self, obs: Tensor) -> Tensor:
        """Return the numbers, in the order in which their bytes lie."""
        numbers = [self.number(obs, dtype, a, b) for dtype, a, b in self.parts]
        return torch.cat(numbers, dim=1) / self.divisor

    def number(self, obs: Tensor, dtype: torch.dtype, start: int, end: int) -> Tensor:
        """Add up little-endian bytes to the numbers that they stand for."""
        size = dtype.itemsize
        byte = [obs[:, start + at : end : size].float() for at in range(size)]
        if dtype == torch.uint8:
            return byte[0]
        negative = (byte[-1] >= 128).float()
        if dtype == torch.int8:
            return byte[0] - 256 * negative
        if dtype == torch.int16:
            return byte[0] + 256 * byte[1] - 65536 * negative
        high = torch.floor(byte[2] / 128)
        exponent = 2 * (byte[3] - 128 * negative) + high
        mantissa = byte[0] + 256 * byte[1] + 65536 * (byte[2] - 128 * high)
        mantissa = mantissa + 2.0**23 * (exponent > 0).float()
        return (1 - 2 * negative) * mantissa * self.powers[exponent.long()]


class PlainFirstLayer(PlainWiden):
    """The first layer likewise."""

    weight: Tensor
    sparse = False

    def __init__(self, inputs: Inputs, first: FirstLayer) -> None:
        super().__init__(inputs)
        _, order, _ = inputs.byte_ranges()
        self.bias = first.bias
        self.normalizer = first.normalizer
        self.register_buffer("weight", first.weight.detach()[torch.tensor(order)])

    def forward(self, obs: Tensor) -> Tensor:
        return self.forward_numbers(self.widen(obs))

    def forward_numbers(self, numbers: Tensor) -> Tensor:
        """The same of rows that are widened already."""
        if self.normalizer is not None:
            numbers = self.normalizer(numbers)
        return torch.addmm(self.bias, numbers, self.weight)


class PlainRemembering(nn.Module):
    """Bytes and what is remembered in; logits, values and what is remembered out."""

    places: Tensor

    def __init__(self, rules: Rules, net: Net, *, valued: bool) -> None:
        super().__init__()
        self.valued, self.numbers = valued, net.inputs.memory // 4
        room: dict[str, Any] = {"heads": net.heads, "memory": net.inputs.memory}
        self.net = make_net(rules, replace(net.config, sparse=False), **room)
        self.net.load_state_dict(net.state_dict())
        if not net.config.memory or not isinstance(self.net, Perceptron | RecurrentNet):
            raise ConfigError(
                f"a {type(net).__name__} with {net.inputs.memory} bytes of memory that it does not "
                "write itself cannot be exported; net.memory gru and stack can"
            )
        first = self.net.first
        seen = Inputs(rules, 0, net.config.inputs)
        order = seen.byte_ranges()[1]
        self.register_buffer("places", torch.from_numpy(np.argsort(order)), persistent=False)
        self.bytes = PlainWiden(seen)
        self.normalizer = first.normalizer
        self.net.first = WidenedLayer(first)  # type: ignore[assignment]

    def forward(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Return logits [rows, actions], values [rows] if there are any, and memory."""
        numbers = self.bytes.widen(obs)
        if self.normalizer is not None:
            numbers = self.normalizer(numbers)
        numbers = numbers[:, self.places]
        if isinstance(self.net, RecurrentNet):
            heads = self.net.step(numbers, memory[:, : self.net.config.memory_width])
            after = heads[MEMORY]
        else:
            heads = self.net(torch.cat((numbers, memory), 1))
            frames, features = self.net.config.frames, numbers.shape[1]
            after = torch.cat((numbers, memory[:, : (frames - 2) * features]), 1)
            after = functional.pad(after, (0, self.numbers - after.shape[1]))
        values = (self.net.unscaled_values(heads),) if self.valued else ()
        return (heads[POLICY], *values, after)


class WidenedLayer(nn.Module):
    """A first layer whose rows are numbers already, normalized, in the order of the features."""

    def __init__(self, first: FirstLayer) -> None:
        super().__init__()
        self.weight, self.bias = first.weight, first.bias

    def forward(self, numbers: Tensor) -> Tensor:
        """Return [rows, width] for [rows, features]."""
        return torch.addmm(self.bias, numbers, self.weight)
