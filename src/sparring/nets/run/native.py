"""Networks on a CPU with few calls: small batches are bound by what every call costs.

The weights of a network lie in one array and their gradients in another, so that clipping, Adam and
a target network that follows are one call each. Passes of perceptrons are wholly native: a call for
the forward, one for the backward. `csrc/nets/layers.hpp` computes; here is which numbers of a flat
array are which layer's. Tests hold it equal to torch's.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from sparring import _native
from sparring.capabilities.refusals import unsupported_reason
from sparring.errors import ConfigError
from sparring.nets.custom import OWN, CustomNet
from sparring.nets.hierarchy import HierarchyNet, unscale_value_head
from sparring.nets.mlp import NATIVE_ACTIVATIONS, Perceptron
from sparring.nets.net import POLICY, VALUE, WDL, HeadOutputs, Net
from sparring.nets.run.trace import TracedPerceptron, trace_perceptron

ALIGNED = 16
"""Matrices begin at multiples of so many numbers."""
BETAS, EPS = (0.9, 0.999), 1e-8
TIDY_EVERY, TIDY_BELOW = 128, 1e-30
"""So often Adam forgets moments that small. Of weights that get no gradient any more they shrink
without end, and numbers below 1e-38 cost a CPU tenfold; beside EPS both are nothing."""


class PackedParameters:
    """A network whose parameters are views of one array. It must not be moved any more."""

    def __init__(self, net: nn.Module) -> None:
        """Take over a network, or anything else that learns, where it is."""
        self.net = net
        parameters = dict(net.named_parameters())
        places, size = {}, 0
        # Heads last and side by side: one product gives all of them.
        for name in sorted(parameters, key=lambda n: (n.endswith("_head.bias"), "_head." in n)):
            size = size if "_head." in name else -(-size // ALIGNED) * ALIGNED
            places[name] = (size, size + parameters[name].numel())
            size = places[name][1]
        device = next(iter(parameters.values())).device
        self.weight = torch.zeros(size, device=device)
        self.grad = torch.zeros(size, device=device)
        self._places = {name: (places[name], tuple(p.shape)) for name, p in parameters.items()}
        for name, view in self.views(self.weight).items():
            view.copy_(parameters[name].detach())
            parameters[name].data = view
        for name, view in self.views(self.grad).items():
            parameters[name].grad = view

    @property
    def places(self) -> dict[str, int]:
        """Where every parameter begins."""
        return {name: first for name, ((first, _), _) in self._places.items()}

    def views(self, array: Tensor) -> dict[str, Tensor]:
        """An array of this layout by parameter, in the network's own order."""
        return {
            name: array[first:last].view(shape)
            for name, ((first, last), shape) in self._places.items()
        }


class PackedAdam:
    """Adam over all weights in one call; saved and loaded as torch's, by parameter."""

    def __init__(
        self,
        packed: PackedParameters,
        *,
        eps: float = EPS,
        native: _native.Updating | None = None,
        tell: Callable[[], None] | None = None,
    ) -> None:
        """native: computes it, on a CPU; else torch does. tell: called when weights changed."""
        self.packed, self.lr, self.eps, self.native, self.tell = packed, 0.0, eps, native, tell
        self.exp_avg, self.exp_avg_sq = (torch.zeros_like(packed.weight) for _ in range(2))
        self.steps = torch.zeros((), device=packed.weight.device)
        self._arrays: dict[str, npt.NDArray[np.float32]] = {}
        if native is not None:
            held = (packed.grad, packed.weight, self.exp_avg, self.exp_avg_sq)
            names = ("grad", "weight", "mean", "square")
            self._arrays = {n: x.numpy() for n, x in zip(names, held, strict=True)}
            self._steps = self.steps.numpy()

    def descend(self, most: float) -> float:
        """Follow the gradient, shortened to a norm of at most `most`; return what the norm was.

        A norm that is not finite changes nothing.
        most: 0 is any.
        """
        if self.native is not None:
            norm = self._descend_natively(most or math.inf)
        else:
            norm = float(self.clip(most) if most else torch.linalg.vector_norm(self.packed.grad))
            if math.isfinite(norm):
                self.step()
        if self.tell:
            self.tell()
        return norm

    def _descend_natively(self, most: float) -> float:
        assert self.native is not None
        norm = self.native.adam(
            **self._arrays,
            step=int(self._steps) + 1,
            lr=self.lr,
            eps=self.eps,
            max_norm=most,
        )
        self._steps += math.isfinite(norm)
        return norm

    def clip(self, most: float) -> Tensor:
        """Shorten the gradient to a norm of at most this; return what the norm was."""
        norm: Tensor = torch.linalg.vector_norm(self.packed.grad)
        self.packed.grad.mul_((most / (norm + 1e-6)).clamp_(max=1.0))
        return norm

    @torch.no_grad()
    def step(self) -> None:
        """Follow the gradient."""
        packed = self.packed
        adam(
            [packed.weight],
            [packed.grad],
            [self.exp_avg],
            [self.exp_avg_sq],
            [],
            [self.steps],
            fused=True,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=self.lr,
            weight_decay=0.0,
            eps=self.eps,
            maximize=False,
        )
        if packed.weight.device.type == "cpu" and int(self.steps) % TIDY_EVERY == 0:
            for moment in (self.exp_avg, self.exp_avg_sq):
                moment.copy_(torch.hardshrink(moment, TIDY_BELOW))

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's memory of every parameter; nothing before the first step."""
        if not self.steps:
            return {}
        found: dict[str, Tensor] = {}
        views = [self.packed.views(array).values() for array in (self.exp_avg, self.exp_avg_sq)]
        for index, (first, second) in enumerate(zip(*views, strict=True)):
            kept = {"step": self.steps, "exp_avg": first, "exp_avg_sq": second}
            found |= {f"{index}.{name}": value.cpu().clone() for name, value in kept.items()}
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with `tensors` of another moment."""
        for name, array in (("exp_avg", self.exp_avg), ("exp_avg_sq", self.exp_avg_sq)):
            array.zero_()
            for index, view in enumerate(self.packed.views(array).values()):
                if tensors:
                    view.copy_(tensors[f"{index}.{name}"])
        self.steps.fill_(float(tensors["0.step"]) if tensors else 0.0)


Piece = tuple[int, int, int, int, int, int, int]
"""Column, columns, numbers that are read, places of weight and bias, strides of inputs, outputs."""
Layer = tuple[int, int, list[Piece]]
"""Inputs, outputs, and where their weights are."""
Tower = tuple[int, list[Layer]]
"""Where its head lies in what is put out, and its layers."""


def native_unsupported_reason(net: nn.Module, device: torch.device) -> str:
    """Say what keeps a network from being passed natively, "" if nothing does."""
    if device.type != "cpu":
        return "native passes are for CPUs"
    if isinstance(net, CustomNet):
        layers = trace_perceptron(net)
        return layers if isinstance(layers, str) else ""
    assert isinstance(net, Net)
    return unsupported_reason("native", net.config)


def towers_of(packed: PackedParameters, net: Net) -> list[Tower]:
    """Where the weights of every layer lie."""
    places = {name.removeprefix(OWN): at for name, at in packed.places.items()}
    own = trace_perceptron(net)
    if isinstance(own, TracedPerceptron):
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
        if ours and name == POLICY and net.box and net.config.std == "shared":
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
        """Take over a network that `native_unsupported_reason` says nothing about."""
        self.net, self.packed, self.threads = net, PackedParameters(net), threads
        own, self.width = trace_perceptron(net), sum(net.heads.values())
        activation = own.activation if isinstance(own, TracedPerceptron) else net.config.activation
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

    def split(self, said: Tensor) -> HeadOutputs:
        """By head, as networks say it."""
        widths = self.net.heads
        heads: HeadOutputs = dict(
            zip(widths, torch.split(said, list(widths.values()), -1), strict=True)
        )
        if VALUE in heads:
            heads[VALUE] = heads[VALUE].squeeze(-1)
        return heads

    @torch.no_grad()
    def say(self, obs: Tensor) -> list[HeadOutputs]:
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
            value = self.net.unscaled_values(self.split(said)).numpy()
        return action, log_prob, value


class NativeHierarchy:
    """The same of a network for every role; see `HierarchyNet.forward`."""

    def __init__(self, net: HierarchyNet, parts: dict[str, NativeNet]) -> None:
        self.net, self.parts = net, parts

    @torch.no_grad()
    def say(self, obs: Tensor) -> list[HeadOutputs]:
        """What the heads say, each about the rows of its role; values in units of rewards."""

        def say(role: str, rows: Tensor | None) -> HeadOutputs:
            part = self.parts[role]
            return unscale_value_head(part.net, part.split(part.said(obs, index=rows, keep=False)))

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


def resolve_cpu_or_auto(wanted: str) -> str:
    """The same where nothing is learned: another machine may lack what the learner's has."""
    return AUTO if wanted == BF16 and not _native.has_amx() else wanted
