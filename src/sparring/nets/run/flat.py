"""What the learner on a GPU asks of its networks: flat arrays, and passes over batches.

Every array has a leading dimension for the members of a population. Perceptrons and residual nets
have passes of their own (`fused_mlp.py`, `fused_residual.py`); any other network is run by autograd
(`captured.py`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NotRequired, TypedDict, Unpack

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.kernels import KernelModule, build
from sparring.nets.inputs import Inputs, fit_memory_bytes
from sparring.nets.net import head_width

SOURCE = '#include "cuda/net.cuh"\n'
KINDS = {"": 0, "relu": 1, "tanh": 2, "silu": 3}
"""Activations, as the kernels count them."""
VALUE_WIDTH = 8
"""Columns of the value head. One is used; products want their sizes in multiples of 8."""


class FlatOptions(TypedDict):
    """What networks on a GPU are made with besides their game and settings."""

    bf16: bool
    """Whether products are in bfloat16."""
    device: torch.device
    memory: NotRequired[int]
    """Bytes behind the observation in every row."""


@dataclass(frozen=True)
class FlatTensor:
    """One tensor in the flat arrays, its axes in another order and some of them longer."""

    name: str
    """Its name in the network."""
    offset: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    """The axes of the network's tensor, those of size 1 at its end left out."""
    theirs: tuple[int, ...]
    """Its shape in the network."""

    @property
    def size(self) -> int:
        """How many numbers it has here."""
        return math.prod(self.shape)

    def fill(self, flat: Tensor, given: Tensor) -> None:
        """Write the network's tensor to its place in a flat array."""
        turned = given.reshape(given.shape[: len(self.axes)]).permute(self.axes)
        at = flat[self.offset : self.offset + self.size].view(self.shape)
        at[tuple(slice(0, n) for n in turned.shape)] = turned

    def read(self, flat: Tensor) -> Tensor:
        """Return the network's tensor."""
        at = flat[self.offset : self.offset + self.size].view(self.shape)
        sizes = [self.theirs[axis] for axis in self.axes]
        turned = at[tuple(slice(0, n) for n in sizes)]
        back = [self.axes.index(axis) for axis in range(len(self.axes))]
        return turned.permute(back).reshape(self.theirs).contiguous().clone()


class Pass(ABC):
    """A batch on its way through a network. Made once, so that graphs can replay it."""

    memory: Tensor | None = None
    """What a network that writes its memory made of the rows [members, rows, numbers]."""

    def __init__(self, net: FlatNet, rows: int, *, learn: bool) -> None:
        self.rows, self.flat = rows, net
        self.logits = self.make(net.action_width, torch.float32)
        """Without the bias that the kernels add."""
        self.value = self.make(VALUE_WIDTH, torch.float32)
        """In units of the value scale, without the bias that the kernels add; one column counts."""
        self.others = {name: self.make(w, torch.float32) for name, w in net.others.items()}
        """What further heads say, biases included."""
        if learn:
            self.logits_grad, self.value_grad = self.make(net.action_width), self.make(VALUE_WIDTH)
            self.extra_grads = {name: torch.zeros_like(said) for name, said in self.others.items()}

    def make(self, columns: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return zeros for every row of every member."""
        net = self.flat
        shape = net.members, self.rows, columns
        return torch.zeros(shape, dtype=dtype or net.dtype, device=net.device)

    @abstractmethod
    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Take byte rows, or those at `places` [members, rows]; where it is -1, nobody looks."""

    @abstractmethod
    def forward(self) -> None:
        """Compute logits and values."""

    @abstractmethod
    def backward(self) -> None:
        """Fill the network's `grad` from the gradients of logits and values."""


class FlatNet(ABC):
    """Weights and gradients of all members."""

    pieces: Mapping[str, FlatTensor]
    """The value head is the last, weight and bias together."""
    units: Mapping[str, Tensor] = MappingProxyType({})
    """What else is kept of every member's heads [members], by the names of the network's buffers:
    the unit of scores, the share of win, draw and loss in values, and what a win is worth."""
    others: Mapping[str, int] = MappingProxyType({})
    """Widths of heads beside policy and value, by name."""
    eager = ""
    """Why its passes cannot be held by a graph, "" if they can."""
    size: int
    value_from: int
    """Where the last layer of the value begins, which ends the arrays; `size` if there is none."""
    policy_bias: Tensor
    """What the kernels add to the logits, for each member [members, columns]."""
    value_bias: Tensor
    """What the kernels add to the values, likewise."""
    bias_stride: int
    """Numbers from one member's biases to the next's."""

    def __init__(
        self, rules: Rules, config: NetConfig, members: int, **room: Unpack[FlatOptions]
    ) -> None:
        self.rules, self.config, self.members = rules, config, members
        self.bf16, self.device = room["bf16"], room["device"]
        self.net_config = config
        """What `make_net` makes the networks of."""
        self.dtype = torch.bfloat16 if self.bf16 else torch.float32
        self.squash = config.squash and rules.box > 0
        memory = fit_memory_bytes(rules, config, room.get("memory", 0))
        self.inputs = Inputs(rules, memory, config.inputs)
        self.action_width = rounded_up(head_width(rules))

    def make_arrays(self) -> None:
        """Make the flat arrays, once the pieces are laid out."""
        with torch.device(self.device):
            self.weight = torch.zeros(self.members, self.size)
            self.compute = torch.zeros(self.members, self.size, dtype=self.dtype)
            self.grad = torch.zeros(self.members, self.size)
            self.scale = torch.ones(self.size)
            """What divides the input is part of the first weights. One of scale 0 is not used."""
            self.value_scale = torch.ones(self.members)

    def view(self, flat: Tensor, name: str) -> Tensor:
        """Return a tensor of all members [members, ...]."""
        spot = self.pieces[name]
        return flat[:, spot.offset : spot.offset + spot.size].view(len(flat), *spot.shape)

    @abstractmethod
    def make_pass(self, rows: int, *, learn: bool) -> Pass:
        """Return room for passes over batches of so many rows."""

    # Exchange with the networks of nets.make

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        """Return tensors named and shaped as in the network as one flat array."""
        flat = torch.zeros(self.size)
        for name, spot in self.pieces.items():
            given = named[name].detach().float().cpu()
            if tuple(given.shape) != spot.theirs:
                raise RuntimeError(f"{name} has shape {tuple(given.shape)}, need {spot.theirs}")
            spot.fill(flat, given)
        return flat

    def unpack(self, flat: Tensor) -> dict[str, Tensor]:
        """Return a flat array as tensors named and shaped as in the network."""
        flat = flat.detach().float().cpu()
        return {name: spot.read(flat) for name, spot in self.pieces.items()}

    def parameter_names(self) -> list[str]:
        """The parameters in the order in which the network has them."""
        return list(self.pieces)

    def kept(self) -> list[Tensor]:
        """What learning changes."""
        return [self.weight, self.compute, self.value_scale, *self.units.values()]

    def load(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Take over the weights of a network."""
        self.weight[member] = self.pack(state).to(self.device)
        self.value_scale[member] = float(state["value_scale"])
        self.compute[member] = (self.weight[member] * self.scale).to(self.dtype)

    def copy_from(self, other: FlatNet) -> None:
        """Take over the networks of all members; the units of their values stay."""
        self.weight.copy_(other.weight)
        self.compute.copy_(other.compute)

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the weights as the network loads them."""
        named = self.unpack(self.weight[member])
        return {**named, "value_scale": self.value_scale[member].cpu().clone()}


class WidenedPass(Pass):
    """A pass over rows whose bytes became numbers."""

    flat: WidenedNet

    def __init__(self, net: WidenedNet, rows: int, *, learn: bool) -> None:
        super().__init__(net, rows, learn=learn)
        self.x = self.make(net.width)
        """The numbers of every row, not yet divided."""

    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Widen byte rows, or those at `places`; where it is -1, the numbers are 0."""
        net, rows = self.flat, self.flat.members * self.rows
        threads = rows * widening_threads(net.constants)
        net.kernels.widen(-(-threads // 256), 256, obs, places, rows, self.x)


class WidenedNet(FlatNet):
    """A network with passes of its own: kernels widen its rows and add the biases of its heads."""

    policy_bias_name = "policy_head.bias"

    def __init__(
        self, rules: Rules, config: NetConfig, members: int, **room: Unpack[FlatOptions]
    ) -> None:
        super().__init__(rules, config, members, **room)
        self.width = widened_width(self.inputs)
        self.constants = row_constants(self.inputs, bf16=self.bf16)
        self.kernels: KernelModule = build(
            SOURCE, self.constants, exact=False, device=self.device, what=rules.name
        )

    def make_arrays(self) -> None:
        super().make_arrays()
        self.policy_bias = self.view(self.weight, self.policy_bias_name)
        self.value_bias = self.view(self.weight, "value_head.bias")
        self.value_from, self.bias_stride = self.pieces["value_head.weight"].offset, self.size


def rounded_up(count: int, to: int = 8) -> int:
    """The next multiple."""
    return -(-count // to) * to


def widened_width(inputs: Inputs) -> int:
    """Columns of a widened row: the features, and zeros up to what products like."""
    return rounded_up(len(inputs.features), 32)


def widening_threads(constants: Mapping[str, int]) -> int:
    """Threads that widen a row: one for every eight bytes, one for every other number."""
    eights = constants["SPARRING_U8S"] // 8
    return eights + constants["SPARRING_WIDTH"] - 8 * eights


def row_constants(inputs: Inputs, *, bf16: bool) -> dict[str, int]:
    """The layout of a row, which the kernels are compiled for."""
    found = {
        "SPARRING_BF16": int(bf16),
        "SPARRING_ROW_BYTES": inputs.row_bytes,
        "SPARRING_WIDTH": widened_width(inputs),
    }
    names = {torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.float32: "F32"}
    found |= {f"SPARRING_{name}{what}": 0 for name in names.values() for what in ("S", "_AT")}
    found |= {"SPARRING_MEMORY_F32S": 0, "SPARRING_MEMORY_AT": 0}
    for dtype, first, end in inputs.byte_ranges()[0]:
        if first < inputs.rules.obs_bytes:
            found[f"SPARRING_{names[dtype]}S"] = (end - first) // dtype.itemsize
            found[f"SPARRING_{names[dtype]}_AT"] = first
        else:
            found["SPARRING_MEMORY_F32S"] = (end - first) // dtype.itemsize
            found["SPARRING_MEMORY_AT"] = first
    return found
