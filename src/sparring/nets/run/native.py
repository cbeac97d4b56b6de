"""Passes of perceptrons on a CPU, wholly native: a call for the forward, one for the backward.

`csrc/nets/layers.hpp` computes; here is which numbers of a flat array are which layer's. Tests
hold it equal to torch's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring import _native
from sparring.capabilities.refusals import why_not
from sparring.errors import ConfigError
from sparring.nets.hierarchy import HierarchyNet, true_heads
from sparring.nets.mlp import NATIVE_ACTIVATIONS, Perceptron
from sparring.nets.net import POLICY, VALUE, WDL, Heads, Net
from sparring.nets.own import OWN, OwnNet
from sparring.nets.run.packed import Packed
from sparring.nets.run.recognised import Layers, recognise

Piece = tuple[int, int, int, int, int, int, int]
"""Column, columns, numbers that are read, places of weight and bias, strides of inputs, outputs."""
Layer = tuple[int, int, list[Piece]]
"""Inputs, outputs, and where their weights are."""
Tower = tuple[int, list[Layer]]
"""Where its head lies in what is put out, and its layers."""


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


class NativeNet:
    """A perceptron whose passes are native, with its weights as they are whenever it is asked.

    It owns where the weights lie. The network must not be moved any more.
    """

    def __init__(self, net: Net, *, threads: int, arithmetic: str) -> None:
        """Take over a network that `why_no_passes` says nothing about."""
        self.net, self.packed, self.threads = net, Packed(net), threads
        own, self.width = recognise(net), sum(net.heads.values())
        activation = own.activation if isinstance(own, Layers) else net.config.activation
        self._layers = _native.Layers(
            runs=net.inputs.runs,
            numbers=len(net.inputs.features),
            sparse=net.config.sparse,
            activation=NATIVE_ACTIVATIONS.index(activation),
            head_width=self.width,
            towers=towers_of(self.packed, net),
            threads=threads,
            bf16=arithmetic == BF16,
        )
        self.work = _native.Updating(threads)
        """Does what there is to do besides passes."""
        self._weight, self._grad = self.packed.weight.numpy(), self.packed.grad.numpy()
        self._written = [*net.parameters(), self.packed.weight]
        self._seen = -1
        self._said = torch.empty(0, self.width)

    def layers(self) -> _native.Layers:
        """What makes the passes, with the weights as they are now.

        Torch counts how often every tensor was written to: whoever loads, rescales or steps is
        noticed. Native code that writes says so, see `changed`.
        """
        seen = sum(tensor._version for tensor in self._written)
        if seen != self._seen:
            self._layers.load(self._weight)
            self._seen = seen
        return self._layers

    def changed(self) -> None:
        """Native code has written other weights."""
        self._seen = -1

    def said(self, obs: Tensor, *, index: Tensor | None = None, keep: bool) -> Tensor:
        """What the heads say, side by side [rows, widths]; good until the next call.

        index: which rows of `obs`, in which order.
        keep: `learn` follows.
        """
        out = self._room(len(obs) if index is None else len(index))
        places = None if index is None else index.numpy()
        self.layers().forward(obs.numpy(), places, out.numpy(), keep)
        return out

    def _room(self, rows: int) -> Tensor:
        if len(self._said) < rows:
            self._said = torch.empty(rows, self.width)
        return self._said[:rows]

    def learn(self, head_grad: Tensor, *, add: bool = False) -> None:
        """Fill the gradient from that of what was said about the batch that was kept.

        add: to what it holds already.
        """
        self._layers.backward(head_grad.numpy(), self._grad, None, add)

    def split(self, said: Tensor) -> Heads:
        """By head, as networks say it."""
        widths = self.net.heads
        heads: Heads = dict(zip(widths, torch.split(said, list(widths.values()), -1), strict=True))
        if VALUE in heads:
            heads[VALUE] = heads[VALUE].squeeze(-1)
        return heads

    @torch.no_grad()
    def say(self, obs: Tensor) -> list[Heads]:
        """What the heads say about rows, as `Forward.lean` has it; good until the next call."""
        return [self.split(self.said(obs.contiguous(), keep=False))]

    def draw(
        self,
        obs: npt.NDArray[np.uint8],
        mask: npt.NDArray[np.uint8],
        *,
        seed: int,
        rows: npt.NDArray[np.intp],
        rollout: int,
        step: int,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Draw an action for every row, as `Sampler.draw`; with log-probabilities and values.

        Values are in units of the rewards.
        """
        count, box = len(obs), self.net.box
        said = self._room(count)
        self.layers().forward(obs, None, said.numpy(), False)
        action: npt.NDArray[Any] = np.empty((count, box) if box else count, np.float32)
        if not box:
            action = action.view(np.int32)
        log_prob, value = np.empty((2, count), np.float32)
        judged = self.net.heads[POLICY] + self.net.heads[VALUE]
        self.work.draw(
            said=np.ascontiguousarray(said.numpy()[:, :judged]),
            mask=np.ascontiguousarray(mask),
            seed=seed,
            row_id=rows.astype(np.uint32),
            episode=rollout,
            drawn=step,
            value_unit=float(self.net.value_scale),
            action=None if box else action,
            numbers=action if box else None,
            log_prob=log_prob,
            value=value,
        )
        if WDL in self.net.heads and float(self.net.wdl_blend):
            value = self.net.true_values(self.split(said)).numpy()
        return action, log_prob, value


class NativeRoles:
    """The same of a network for every role; see `HierarchyNet.forward`."""

    def __init__(self, net: HierarchyNet, parts: dict[str, NativeNet]) -> None:
        self.net, self.parts = net, parts

    @torch.no_grad()
    def say(self, obs: Tensor) -> list[Heads]:
        """What the heads say, each about the rows of its role; values in units of rewards."""

        def say(role: str, rows: Tensor | None) -> Heads:
            part = self.parts[role]
            return true_heads(part.net, part.split(part.said(obs, index=rows, keep=False)))

        return [self.net.by_role(obs, say)]


AUTO, BF16, FLOAT32, TORCH = "auto", "bf16", "float32", "torch"
BEST_WITH_AMX = BF16
"""What `auto` means on a CPU with AMX, for perceptrons. Convolutions are torch's, whose bfloat16
moves what a network says by half a percent and its gradients by more: they have to be asked for."""
KERNELS = "SPARRING_KERNELS"
"""The environment variable that names the kernels of native code, for tests."""


def resolve_cpu(wanted: str, *, perceptron: bool = True) -> str:
    """Return what `collect.cpu` means on this machine; refuse what it has not.

    perceptron: the network is one, see `BEST_WITH_AMX`.
    """
    if wanted == AUTO:
        return BEST_WITH_AMX if perceptron and _native.has_amx() else FLOAT32
    if wanted == BF16 and not _native.has_amx():
        named = os.environ.get(KERNELS, "")
        why = f"{KERNELS}={named} leaves it out" if named else "this one has none"
        raise ConfigError(
            f"collect.cpu bf16 needs a CPU with AMX, and {why}; use --collect.cpu float32, or "
            'for a run that goes on collect.cpu = "float32" in its config.toml'
        )
    return wanted


def as_can_be(wanted: str) -> str:
    """The same where nothing is learned: another machine may lack what the learner's has."""
    return AUTO if wanted == BF16 and not _native.has_amx() else wanted
