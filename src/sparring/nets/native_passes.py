"""Passes of perceptrons on a CPU, wholly native: a call for the forward, one for the backward.

`csrc/nets/layers.hpp` computes; here is which numbers of a flat array are which layer's. Tests
hold it equal to torch's.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor, nn

from sparring import _native
from sparring.capabilities.ways import why_not
from sparring.nets.grouped import NATIVE_ACTIVATIONS, OWN
from sparring.nets.mlp import Perceptron
from sparring.nets.net import POLICY, VALUE, Heads, Net
from sparring.nets.own import OwnNet
from sparring.nets.packed import Packed
from sparring.nets.recognised import Layers, recognise

Piece = tuple[int, int, int, int, int, int, int]
"""Column, columns, numbers that are read, places of weight and bias, strides of inputs, outputs."""
Layer = tuple[int, int, list[Piece]]
"""Inputs, outputs, and where their weights are."""
Tower = tuple[int, list[Layer]]
"""Where its head lies in what is put out, and its layers."""


class NativePasses:
    """Those of a perceptron."""

    def __init__(self, packed: Packed, *, threads: int, bf16: bool = False) -> None:
        """Take over a network for which `why_no_passes` has nothing to say.

        bf16: products in bfloat16, on a CPU with AMX.
        """
        net = packed.net
        assert isinstance(net, Net)
        self.packed, self.heads = packed, net.heads
        own = recognise(net)
        activation = own.activation if isinstance(own, Layers) else net.config.activation
        self.layers = _native.Layers(
            runs=net.inputs.runs,
            numbers=len(net.inputs.features),
            sparse=net.config.sparse,
            activation=NATIVE_ACTIVATIONS.index(activation),
            head_width=sum(net.heads.values()),
            towers=towers_of(packed, net),
            threads=threads,
            bf16=bf16,
        )
        self._weight, self._grad = packed.weight.numpy(), packed.grad.numpy()
        self._out = torch.empty(0, sum(net.heads.values()))

    def load(self) -> None:
        """See the weights as they are now; until the next time they count as unchanged."""
        self.layers.load(self._weight)

    def said(self, obs: Tensor, *, index: Tensor | None = None, keep: bool) -> Tensor:
        """What the heads say, side by side [rows, widths]; good until the next call.

        index: which rows of `obs`, in which order.
        keep: `learn` follows.
        """
        rows = len(obs) if index is None else len(index)
        if len(self._out) < rows:
            self._out = torch.empty(rows, sum(self.heads.values()))
        out = self._out[:rows]
        places = None if index is None else index.numpy()
        self.layers.forward(obs.numpy(), places, out.numpy(), keep)
        return out

    def learn(self, head_grad: Tensor, *, add: bool = False) -> None:
        """Fill the gradient from that of what was said about the batch that was kept.

        add: to what it holds already.
        """
        self.layers.backward(head_grad.numpy(), self._grad, None, add)

    def split(self, said: Tensor) -> Heads:
        """By head, as networks say it."""
        heads: Heads = dict(
            zip(self.heads, torch.split(said, list(self.heads.values()), -1), strict=True)
        )
        if VALUE in heads:
            heads[VALUE] = heads[VALUE].squeeze(-1)
        return heads


def why_no_passes(net: nn.Module, device: torch.device) -> str:
    """Say what keeps a network from being passed natively, "" if nothing does."""
    if device.type != "cpu":
        return "native passes are for CPUs"
    if isinstance(net, OwnNet):
        layers = recognise(net)
        return layers if isinstance(layers, str) else ""
    assert isinstance(net, Net)
    return why_not("native", net.config)


def towers_of(packed: Packed, net: Net) -> list[Tower]:
    """Where the weights of every layer lie."""
    places = {name.removeprefix(OWN): at for name, at in packed.places.items()}
    own = recognise(net)
    if isinstance(own, Layers):
        hidden = [
            [linear(places, name, *own.widths[name]) for name in tower] for tower in own.towers
        ]
        heads, tower_of = own.heads, {name: own.tower_of(name) for name in own.heads}
    else:
        assert isinstance(net, Perceptron)
        hidden = hidden_layers(places, net)
        heads, tower_of = {name: f"{name}_head" for name in net.heads}, net.tower_of
    found: list[Tower] = []
    column = 0
    for number, layers in enumerate(hidden):
        read = {name: heads[name] for name in net.heads if tower_of[name] == number}
        below, total = layers[-1][1], sum(net.heads[name] for name in read)
        pieces = head_pieces(places, net, read, below)
        found.append((column, [*layers, (below, total, pieces)]))
        column += total
    return found


def hidden_layers(places: dict[str, int], net: Perceptron) -> list[list[Layer]]:
    """Those of every tower of our own perceptron, which begin side by side in the first layer."""
    numbers, width, towers = len(net.inputs.features), net.config.hidden[0], len(net.towers)
    found: list[list[Layer]] = []
    for number in range(towers):
        weight, bias = (places[f"first.{part}"] + number * width for part in ("weight", "bias"))
        layers = [(numbers, width, [(0, width, numbers, weight, bias, towers * width, 1)])]
        for at, (below, wide) in enumerate(pairwise(net.config.hidden)):
            layers.append(linear(places, f"towers.{number}.{2 * at}", below, wide))
        found.append(layers)
    return found


def head_pieces(
    places: dict[str, int], net: Net, layers: Mapping[str, str], below: int
) -> list[Piece]:
    """The heads of a tower side by side; a spread that all rows share reads nothing."""
    ours, column = isinstance(net, Perceptron), 0
    pieces: list[Piece] = []
    for name, layer in layers.items():
        width = net.heads[name]
        parts = [(0, width, below)]
        if ours and name == POLICY and net.box and net.config.spread == "shared":
            parts = [(0, net.box, below), (net.box, width - net.box, 0)]
        for first, columns, reads in parts:
            weight = places[f"{layer}.weight"] + first * below
            bias = places[f"{layer}.bias"] + first
            pieces.append((column, columns, reads, weight, bias, 1, below))
            column += columns
    return pieces


def linear(places: dict[str, int], name: str, reads: int, wide: int) -> Layer:
    """A linear layer as torch keeps it: a row for every output."""
    piece = (0, wide, reads, places[f"{name}.weight"], places[f"{name}.bias"], 1, reads)
    return reads, wide, [piece]
