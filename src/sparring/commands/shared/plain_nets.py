"""Networks as modules that ONNX can export: bytes in, memory as float32."""

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
from sparring.nets.heads import MEMORY, POLICY, VALUE
from sparring.nets.hierarchy import HierarchyNet, RoleDetector
from sparring.nets.inputs import Inputs
from sparring.nets.layers import FirstLayer
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.pixels import PIXEL_NETS, PixelNet
from sparring.nets.policy import VALUES, Policy
from sparring.nets.recurrent import RecurrentNet


def has_values(policy: Policy) -> bool:
    """Whether the export has values: a value head that PPO or alike has trained.

    The value of a Q network is its best legal action, and the file knows no masks.
    """
    trained = policy.meta.get(VALUES, True) and not policy.is_value_based
    return VALUE in policy.net.heads and trained


class PlainNet(nn.Module):
    """A network as one graph: bytes in, logits and unscaled values out."""

    def __init__(self, rules: Rules, net: Net, *, valued: bool) -> None:
        """Copy a network. valued: whether values are an output."""
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
    """A hierarchy as one graph: all networks answer, and each row takes that of its role."""

    def __init__(self, rules: Rules, net: HierarchyNet, *, valued: bool) -> None:
        super().__init__()
        self.role_detector = RoleDetector(rules)
        self.nets = nn.ModuleList(PlainNet(rules, one, valued=valued) for _, one in net.nets())

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        roles = self.role_detector(obs)
        all_outputs = [net(obs) for net in self.nets]
        chosen: tuple[Tensor, ...] = all_outputs[-1]
        for role, outputs in enumerate(all_outputs[:-1]):
            is_role = roles == role
            chosen = tuple(
                torch.where(is_role if new.dim() == 1 else is_role[:, None], new, old)
                for new, old in zip(outputs, chosen, strict=True)
            )
        return chosen


def plain_net(policy: Policy) -> nn.Module:
    net, valued = policy.net, has_values(policy)
    if isinstance(net, HierarchyNet):
        return PlainHierarchy(policy.rules, net, valued=valued)
    if isinstance(net, PixelNet) and policy.memory_bytes:
        return PlainFrames(policy.rules, net, valued=valued)
    if policy.memory_bytes:
        return PlainStateful(policy.rules, net, valued=valued)
    return PlainNet(policy.rules, net, valued=valued)


class PlainWiden(nn.Module):
    """Decodes bytes to floats by arithmetic, as ONNX has no reinterpreting cast."""

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
        """Return the floats, in the order of their bytes."""
        numbers = [self.number(obs, dtype, a, b) for dtype, a, b in self.parts]
        return torch.cat(numbers, dim=1) / self.divisor

    def number(self, obs: Tensor, dtype: torch.dtype, start: int, end: int) -> Tensor:
        """Decode little-endian bytes of one dtype."""
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
    """The first layer, on bytes decoded likewise."""

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
        """Apply the layer to decoded rows."""
        if self.normalizer is not None:
            numbers = self.normalizer(numbers)
        return torch.addmm(self.bias, numbers, self.weight)


class PlainStateful(nn.Module):
    """A network with memory: bytes and memory in; logits, values and memory out."""

    places: Tensor

    def __init__(self, rules: Rules, net: Net, *, valued: bool) -> None:
        super().__init__()
        self.valued, self.numbers = valued, net.inputs.memory // 4
        room: dict[str, Any] = {"heads": net.heads, "memory": net.inputs.memory}
        self.net = make_net(rules, replace(net.config, sparse=False), **room)
        self.net.load_state_dict(net.state_dict())
        if not net.config.memory or not isinstance(self.net, Perceptron | RecurrentNet):
            raise ConfigError(
                f"a {type(net).__name__} with {net.inputs.memory} bytes of memory written by the "
                "game cannot be exported; net.memory gru and stack can"
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


class PlainFrames(nn.Module):
    """A network of stacked frames: bytes and the bytes of older frames in; the same out."""

    def __init__(self, rules: Rules, net: PixelNet, *, valued: bool) -> None:
        super().__init__()
        self.valued = valued
        self.net = PIXEL_NETS[net.config.kind](
            rules, net.config, heads=net.heads, memory=net.inputs.memory
        )
        self.net.load_state_dict(net.state_dict())

    def forward(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Return logits [rows, actions], values [rows] if there are any, and memory."""
        rows = torch.cat((obs, memory), 1)
        heads = self.net(rows)
        values = (self.net.unscaled_values(heads),) if self.valued else ()
        return (heads[POLICY], *values, self.net.next_frames(rows))


class WidenedLayer(nn.Module):
    """A first layer of decoded, normalized rows in the order of the features."""

    def __init__(self, first: FirstLayer) -> None:
        super().__init__()
        self.weight, self.bias = first.weight, first.bias

    def forward(self, numbers: Tensor) -> Tensor:
        """Return [rows, width] for [rows, features]."""
        return torch.addmm(self.bias, numbers, self.weight)
