"""Base classes of networks on a GPU: weights as flat arrays, and passes over batches.

Every array has a leading dimension for the members of a population. Perceptrons and residual nets
have hand-written passes (`fused_mlp.py`, `fused_residual.py`); any other network uses autograd
(`captured.py`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NotRequired, TypedDict, Unpack

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.kernels import KernelModule, build
from sparring.nets.heads import head_width
from sparring.nets.inputs import Inputs, fit_memory_bytes

SOURCE = '#include "cuda/net.cuh"\n'
KINDS = {"": 0, "relu": 1, "tanh": 2, "silu": 3}
"""Numbers of the activations in the kernels."""
ALL_MEMBERS = slice(None)
VALUE_WIDTH = 8
"""Columns of the value head. One is used; products need sizes that are multiples of 8."""


class FlatOptions(TypedDict):
    """Constructor arguments of networks on a GPU besides rules and configuration."""

    bf16: bool
    """Whether products are in bfloat16."""
    device: torch.device
    memory: NotRequired[int]
    """Bytes of memory in every row."""
    has_policy: NotRequired[bool]
    """False: critics, which have a value head alone."""


@dataclass(frozen=True)
class FlatTensor:
    """Layout of one tensor in the flat arrays, with permuted and padded axes."""

    name: str
    """Name in the network."""
    offset: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    """Permutation of the network's axes, without trailing axes of size 1."""
    net_shape: tuple[int, ...]
    """Shape in the network."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def write(self, flat: Tensor, tensor: Tensor) -> None:
        """Write the network's tensor into a flat array."""
        permuted = tensor.reshape(tensor.shape[: len(self.axes)]).permute(self.axes)
        view = flat[self.offset : self.offset + self.size].view(self.shape)
        view[tuple(slice(0, n) for n in permuted.shape)] = permuted

    def read(self, flat: Tensor) -> Tensor:
        """Return the network's tensor from a flat array."""
        view = flat[self.offset : self.offset + self.size].view(self.shape)
        sizes = [self.net_shape[axis] for axis in self.axes]
        permuted = view[tuple(slice(0, n) for n in sizes)]
        inverse = [self.axes.index(axis) for axis in range(len(self.axes))]
        return permuted.permute(inverse).reshape(self.net_shape).contiguous().clone()


class Pass(ABC):
    """Buffers of a batch in a network. Allocated once, so that graphs can replay it."""

    memory: Tensor | None = None
    """Next memory of the rows [members, rows, numbers]; None: the network writes none."""

    def __init__(self, net: FlatNet, rows: int, *, learn: bool) -> None:
        self.rows, self.flat = rows, net
        self.logits = self.make(net.action_width, torch.float32)
        """Without the bias that the kernels add."""
        self.value = self.make(VALUE_WIDTH, torch.float32)
        """In units of the value scale, without the bias that the kernels add; column 0 is used."""
        heads = net.extra_heads.items()
        self.extra_outputs = {name: self.make(width, torch.float32) for name, width in heads}
        """Outputs of auxiliary heads, biases included."""
        if learn:
            self.logits_grad, self.value_grad = self.make(net.action_width), self.make(VALUE_WIDTH)
            self.extra_grads = {n: torch.zeros_like(out) for n, out in self.extra_outputs.items()}

    def make(self, columns: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return a buffer for every row of every member."""
        net = self.flat
        shape = net.members, self.rows, columns
        return torch.zeros(shape, dtype=dtype or net.dtype, device=net.device)

    @abstractmethod
    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Read byte rows, or those at the indices `places` [members, rows]; -1: undefined."""

    @abstractmethod
    def forward(self) -> None:
        """Compute logits and values."""

    @abstractmethod
    def backward(self) -> None:
        """Fill the network's `grad` from the gradients of logits and values."""


class FlatNet(ABC):
    """Weights and gradients of all members as flat arrays."""

    layout: Mapping[str, FlatTensor]
    """Tensors by name; weight and bias of the value head are the last."""
    head_buffers: Mapping[str, Tensor] = MappingProxyType({})
    """Buffers of every member's heads [members], by their names in the network: score scale,
    weight of win/draw/loss in values, reward of a win."""
    extra_heads: Mapping[str, int] = MappingProxyType({})
    """Widths of auxiliary heads by name."""
    eager_reason = ""
    """Why a CUDA graph cannot capture its passes, "" if it can."""
    size: int
    value_from: int
    """Offset of the last value layer, which ends the arrays; `size` if there is none."""
    policy_bias: Tensor
    """Bias that the kernels add to the logits [members, columns]."""
    value_bias: Tensor
    """Bias that the kernels add to the values [members, columns]."""
    bias_stride: int
    """Numbers from one member's biases to the next's."""

    def __init__(
        self, rules: Rules, config: NetConfig, members: int, **options: Unpack[FlatOptions]
    ) -> None:
        self.rules, self.config, self.members = rules, config, members
        self.bf16, self.device = options["bf16"], options["device"]
        self.net_config = config
        """Configuration of the network in `make_net`."""
        self.dtype = torch.bfloat16 if self.bf16 else torch.float32
        self.squash = config.squash and rules.box > 0
        memory = fit_memory_bytes(rules, config, options.get("memory", 0))
        self.inputs = Inputs(rules, memory, config.inputs)
        self.has_policy = options.get("has_policy", True)
        self.action_width = round_up(head_width(rules)) if self.has_policy else 0

    def make_arrays(self) -> None:
        """Allocate the flat arrays of the layout."""
        with torch.device(self.device):
            self.weight = torch.zeros(self.members, self.size)
            self.compute = torch.zeros(self.members, self.size, dtype=self.dtype)
            self.grad = torch.zeros(self.members, self.size)
            self.scale = torch.ones(self.size)
            """Factor from `weight` to `compute`: input divisors, 0 for unused weights."""
            self.value_scale = torch.ones(self.members)

    def view(self, flat: Tensor, name: str) -> Tensor:
        """Return a view of one tensor of all members [members, ...]."""
        at = self.layout[name]
        return flat[:, at.offset : at.offset + at.size].view(len(flat), *at.shape)

    @abstractmethod
    def make_pass(self, rows: int, *, learn: bool) -> Pass:
        """Allocate a pass over batches of this many rows per member."""

    # State dicts of the networks of nets.make

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        """Pack tensors named and shaped as in the network into one flat array."""
        flat = torch.zeros(self.size)
        for name, at in self.layout.items():
            tensor = named[name].detach().float().cpu()
            if tuple(tensor.shape) != at.net_shape:
                raise RuntimeError(f"{name} has shape {tuple(tensor.shape)}, need {at.net_shape}")
            at.write(flat, tensor)
        return flat

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the tensors of a flat array, named and shaped as in the network."""
        flat = flat.detach().float().cpu()
        return {name: at.read(flat) for name, at in self.layout.items()}

    def parameter_names(self) -> list[str]:
        """Return the parameters in the order of the network."""
        return list(self.layout)

    def learned_tensors(self) -> list[Tensor]:
        """Return all tensors that an update changes."""
        return [self.weight, self.compute, self.value_scale, *self.head_buffers.values()]

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Load the state dict of a network."""
        self.weight[member] = self.pack(state).to(self.device)
        self.value_scale[member] = float(state["value_scale"])
        self.compute[member] = (self.weight[member] * self.scale).to(self.dtype)

    def copy_from(self, other: FlatNet, members: slice = ALL_MEMBERS) -> None:
        """Copy the weights of members; value scales stay."""
        self.weight[members].copy_(other.weight[members])
        self.compute[members].copy_(other.compute[members])

    def average_from(self, other: Any, member: int, step: float) -> None:
        """Move a member's weights toward those of a like network by a share of the distance."""
        for mine, theirs in zip(self.averaged_tensors(), other.averaged_tensors(), strict=True):
            if mine.is_floating_point():
                mine[member].lerp_(theirs[member], step)
            else:
                mine[member].copy_(theirs[member])

    def averaged_tensors(self) -> list[Tensor]:
        """Return what the state dicts of all members consist of."""
        return [self.weight, self.value_scale]

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the state dict of a member's network."""
        named = self.unpack(self.weight[member])
        return {**named, "value_scale": self.value_scale[member].cpu().clone()}


class WidenedPass(Pass):
    """A pass over rows converted to numbers by a kernel."""

    flat: WidenedNet

    def __init__(self, net: WidenedNet, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.x = self.make(net.width)
        """Features of every row, before divisors."""

    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Convert byte rows, or those at the indices `places`; -1 gives zeros."""
        net, rows = self.flat, self.flat.members * self.rows
        threads = rows * widening_threads(net.constants)
        net.kernels.widen(-(-threads // 256), 256, obs, places, rows, self.x)


class WidenedNet(FlatNet):
    """A network with hand-written passes: kernels convert rows and add the biases of heads."""

    policy_bias_name = "policy_head.bias"

    def __init__(
        self, rules: Rules, config: NetConfig, members: int, **options: Unpack[FlatOptions]
    ) -> None:
        super().__init__(rules, config, members, **options)
        self.width = widened_width(self.inputs)
        self.constants = row_constants(self.inputs, bf16=self.bf16)
        self.kernels: KernelModule = build(
            SOURCE, self.constants, exact=False, device=self.device, what=rules.name
        )

    def make_arrays(self) -> None:
        super().make_arrays()
        if self.has_policy:
            self.policy_bias = self.view(self.weight, self.policy_bias_name)
        self.value_bias = self.view(self.weight, "value_head.bias")
        self.value_from, self.bias_stride = self.layout["value_head.weight"].offset, self.size


def round_up(count: int, to: int = 8) -> int:
    """Return the next multiple of `to`."""
    return -(-count // to) * to


def widened_width(inputs: Inputs) -> int:
    """Return the columns of a converted row: the features, padded for fast products."""
    return round_up(len(inputs.features), 32)


def widening_threads(constants: Mapping[str, int]) -> int:
    """Return the threads that convert a row: one for every eight bytes, or other number."""
    eights = constants["SPARRING_U8S"] // 8
    return eights + constants["SPARRING_WIDTH"] - 8 * eights


def row_constants(inputs: Inputs, *, bf16: bool) -> dict[str, int]:
    """Return the layout of a row as constants that the kernels are compiled with."""
    constants = {
        "SPARRING_BF16": int(bf16),
        "SPARRING_ROW_BYTES": inputs.row_bytes,
        "SPARRING_WIDTH": widened_width(inputs),
    }
    names = {torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.float32: "F32"}
    constants |= {f"SPARRING_{name}{what}": 0 for name in names.values() for what in ("S", "_AT")}
    constants |= {"SPARRING_MEMORY_F32S": 0, "SPARRING_MEMORY_AT": 0}
    for dtype, first, end in inputs.byte_ranges()[0]:
        if first < inputs.rules.obs_bytes:
            constants[f"SPARRING_{names[dtype]}S"] = (end - first) // dtype.itemsize
            constants[f"SPARRING_{names[dtype]}_AT"] = first
        else:
            constants["SPARRING_MEMORY_F32S"] = (end - first) // dtype.itemsize
            constants["SPARRING_MEMORY_AT"] = first
    return constants
