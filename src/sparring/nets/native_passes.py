"""Passes of perceptrons on a CPU, wholly native: a call for the forward, one for the backward.

`csrc/nets/layers.hpp` computes; here is which numbers of a flat array are which layer's. Tests
hold it equal to torch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from sparring import _native
from sparring.capabilities.ways import why_not
from sparring.nets.grouped import NATIVE_ACTIVATIONS
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
        if isinstance(net, Perceptron):
            activation, towers = net.config.activation, towers_of(packed, net)
        else:
            layers = recognise(net)
            assert isinstance(layers, Layers)
            activation, towers = layers.activation, own_towers(packed, net, layers)
        self.layers = _native.Layers(
            runs=net.inputs.runs,
            numbers=len(net.inputs.features),
            sparse=net.config.sparse,
            activation=NATIVE_ACTIVATIONS.index(activation),
            head_width=sum(net.heads.values()),
            towers=towers,
            threads=threads,
            bf16=bf16,
        )
        self._weight, self._grad = packed.weight.numpy(), packed.grad.numpy()
        self._out = torch.empty(0, 1)

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


def towers_of(packed: Packed, net: Perceptron) -> list[Tower]:
    """Where the weights of every layer lie."""
    places = packed.places
    width, towers = net.config.hidden[0], len(net.towers)
    found: list[Tower] = []
    column, names = 0, list(net.heads)
    for number in range(towers):
        first = (
            len(net.inputs.features),
            width,
            [
                (
                    0,
                    width,
                    len(net.inputs.features),
                    places["first.weight"] + number * width,
                    places["first.bias"] + number * width,
                    towers * width,
                    1,
                )
            ],
        )
        layers = [first]
        for at, (below, wide) in enumerate(pairwise(net.config.hidden)):
            name = f"towers.{number}.{2 * at}"
            layers.append(
                (below, wide, [linear(places, name, column=0, columns=wide, reads=below)])
            )
        own = [name for name in names if net.tower_of[name] == number]
        heads = head_pieces(places, net, own)
        total = sum(net.heads[name] for name in own)
        found.append((column, [*layers, (net.config.hidden[-1], total, heads)]))
        column += total
    return found


def own_towers(packed: Packed, net: Net, layers: Layers) -> list[Tower]:
    """The same of somebody's own network."""
    places = {name.removeprefix("module."): at for name, at in packed.places.items()}
    found: list[Tower] = []
    column = 0
    for number, tower in enumerate(layers.towers):
        made: list[Layer] = []
        for name in tower:
            reads, wide = layers.widths[name]
            piece = linear(places, name, column=0, columns=wide, reads=reads)
            made.append((reads, wide, [piece]))
        at, pieces, below = 0, [], layers.widths[tower[-1]][1]
        for head in (name for name in net.heads if layers.tower_of(name) == number):
            width = net.heads[head]
            pieces.append(linear(places, layers.heads[head], column=at, columns=width, reads=below))
            at += width
        found.append((column, [*made, (below, at, pieces)]))
        column += at
    return found


def head_pieces(places: dict[str, int], net: Perceptron, names: Sequence[str]) -> list[Piece]:
    """The heads of a tower side by side; a spread that all rows share reads nothing."""
    below, column = net.config.hidden[-1], 0
    pieces: list[Piece] = []
    for name in names:
        width = net.heads[name]
        parts = [(0, width, below)]
        if name == POLICY and net.box and net.config.spread == "shared":
            parts = [(0, net.box, below), (net.box, width - net.box, 0)]
        for first, columns, reads in parts:
            piece = linear(places, f"{name}_head", column=column, columns=columns, reads=reads)
            weight, bias = piece[3] + first * below, piece[4] + first
            pieces.append((*piece[:3], weight, bias, 1, below))
            column += columns
    return pieces


def linear(places: dict[str, int], name: str, *, column: int, columns: int, reads: int) -> Piece:
    """A linear layer as torch keeps it: a row for every output."""
    return column, columns, reads, places[f"{name}.weight"], places[f"{name}.bias"], 1, reads
