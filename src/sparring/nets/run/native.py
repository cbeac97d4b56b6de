"""Networks on a CPU with few calls: the overhead of calls dominates small batches.

The weights of a network lie in one array and their gradients in another, so that clipping, Adam and
a Polyak update are one call each. Passes of perceptrons are native: one call for forward, one for
backward. `csrc/nets/layers.hpp` computes; this module maps layers to offsets in the flat array.
Tests compare it with torch.
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
from sparring.nets.custom import MODULE_PREFIX, CustomNet
from sparring.nets.heads import POLICY, VALUE, WDL
from sparring.nets.hierarchy import HierarchyNet, unscale_value_head
from sparring.nets.mlp import NATIVE_ACTIVATIONS, Perceptron
from sparring.nets.net import HeadOutputs, Net
from sparring.nets.run.trace import TracedPerceptron, trace_perceptron

ALIGNED = 16
"""Matrices start at multiples of this many numbers."""
BETAS, EPS = (0.9, 0.999), 1e-8
FLUSH_EVERY, FLUSH_BELOW = 128, 1e-30
"""Every so many steps Adam sets smaller moments to 0. Moments of weights without a gradient decay
to subnormal numbers, which cost a CPU tenfold; next to EPS both are nothing."""


class PackedParameters:
    """Makes a module's parameters views of one array. The module must not be moved any more."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net
        parameters = dict(net.named_parameters())
        ranges, size = {}, 0
        # Heads last and side by side: one product computes all of them.
        for name in sorted(parameters, key=lambda n: (n.endswith("_head.bias"), "_head." in n)):
            size = size if "_head." in name else -(-size // ALIGNED) * ALIGNED
            ranges[name] = (size, size + parameters[name].numel())
            size = ranges[name][1]
        device = next(iter(parameters.values())).device
        self.weight = torch.zeros(size, device=device)
        self.grad = torch.zeros(size, device=device)
        self._ranges = {name: (ranges[name], tuple(p.shape)) for name, p in parameters.items()}
        for name, view in self.views(self.weight).items():
            view.copy_(parameters[name].detach())
            parameters[name].data = view
        for name, view in self.views(self.grad).items():
            parameters[name].grad = view

    @property
    def offsets(self) -> dict[str, int]:
        """Offset of every parameter in the array."""
        return {name: first for name, ((first, _), _) in self._ranges.items()}

    def views(self, array: Tensor) -> dict[str, Tensor]:
        """Return views of an array of this layout by parameter, in the network's order."""
        return {
            name: array[first:last].view(shape)
            for name, ((first, last), shape) in self._ranges.items()
        }


class PackedAdam:
    """Adam over all weights in one call; saved and loaded like torch's, by parameter."""

    def __init__(
        self,
        packed: PackedParameters,
        *,
        eps: float = EPS,
        native: _native.PPOUpdate | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        """native: runs the step on a CPU; None: torch does. on_change: called after a step."""
        self.packed, self.lr, self.eps = packed, 0.0, eps
        self.native, self.on_change = native, on_change
        self.exp_avg, self.exp_avg_sq = (torch.zeros_like(packed.weight) for _ in range(2))
        self.steps = torch.zeros((), device=packed.weight.device)
        self._arrays: dict[str, npt.NDArray[np.float32]] = {}
        if native is not None:
            tensors = (packed.grad, packed.weight, self.exp_avg, self.exp_avg_sq)
            names = ("grad", "weight", "mean", "square")
            self._arrays = {n: x.numpy() for n, x in zip(names, tensors, strict=True)}
            self._steps = self.steps.numpy()

    def clip_and_step(self, max_norm: float) -> float:
        """Clip the gradient to a norm of `max_norm` (0: no clipping) and step; return its norm.

        A norm that is not finite changes nothing.
        """
        if self.native is not None:
            norm = self._native_step(max_norm or math.inf)
        else:
            norm = float(
                self.clip(max_norm) if max_norm else torch.linalg.vector_norm(self.packed.grad)
            )
            if math.isfinite(norm):
                self.step()
        if self.on_change:
            self.on_change()
        return norm

    def _native_step(self, max_norm: float) -> float:
        assert self.native is not None
        norm = self.native.adam(
            **self._arrays,
            step=int(self._steps) + 1,
            lr=self.lr,
            eps=self.eps,
            max_norm=max_norm,
        )
        self._steps += math.isfinite(norm)
        return norm

    def clip(self, max_norm: float) -> Tensor:
        """Clip the norm of the gradient; return what it was."""
        norm: Tensor = torch.linalg.vector_norm(self.packed.grad)
        self.packed.grad.mul_((max_norm / (norm + 1e-6)).clamp_(max=1.0))
        return norm

    @torch.no_grad()
    def step(self) -> None:
        """Take an Adam step."""
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
        if packed.weight.device.type == "cpu" and int(self.steps) % FLUSH_EVERY == 0:
            for moment in (self.exp_avg, self.exp_avg_sq):
                moment.copy_(torch.hardshrink(moment, FLUSH_BELOW))

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of Adam's state by parameter; none before the first step."""
        if not self.steps:
            return {}
        tensors: dict[str, Tensor] = {}
        views = [self.packed.views(array).values() for array in (self.exp_avg, self.exp_avg_sq)]
        for index, (first, second) in enumerate(zip(*views, strict=True)):
            state = {"step": self.steps, "exp_avg": first, "exp_avg_sq": second}
            tensors |= {f"{index}.{name}": value.cpu().clone() for name, value in state.items()}
        return tensors

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore `tensors` of an earlier time."""
        for name, array in (("exp_avg", self.exp_avg), ("exp_avg_sq", self.exp_avg_sq)):
            array.zero_()
            for index, view in enumerate(self.packed.views(array).values()):
                if tensors:
                    view.copy_(tensors[f"{index}.{name}"])
        self.steps.fill_(float(tensors["0.step"]) if tensors else 0.0)


Piece = tuple[int, int, int, int, int, int, int]
"""First column, columns, inputs, offsets of weight and bias, strides of inputs and outputs."""
Layer = tuple[int, int, list[Piece]]
"""Inputs, outputs, and the pieces of its weights."""
Tower = tuple[int, list[Layer]]
"""First column of its heads in the output, and its layers."""


def native_unsupported_reason(net: nn.Module, device: torch.device) -> str:
    """Return why a network has no native passes, "" if it has."""
    if device.type != "cpu":
        return "native passes are for CPUs"
    if isinstance(net, CustomNet):
        layers = trace_perceptron(net)
        return layers if isinstance(layers, str) else ""
    assert isinstance(net, Net)
    return unsupported_reason("native", net.config)


def towers_of(packed: PackedParameters, net: Net) -> list[Tower]:
    """Return the offsets of all layers' weights."""
    offsets = {name.removeprefix(MODULE_PREFIX): at for name, at in packed.offsets.items()}
    traced = trace_perceptron(net)
    if isinstance(traced, TracedPerceptron):
        hidden = [
            [linear(offsets, name, *traced.widths[name]) for name in tower]
            for tower in traced.towers
        ]
        heads, tower_of = traced.heads, {name: traced.tower_of(name) for name in traced.heads}
    else:
        assert isinstance(net, Perceptron)
        hidden = hidden_layers(offsets, net)
        heads, tower_of = {name: f"{name}_head" for name in net.heads}, net.tower_of
    towers: list[Tower] = []
    column = 0
    for number, layers in enumerate(hidden):
        tower_heads = {name: heads[name] for name in net.heads if tower_of[name] == number}
        inputs, outputs = layers[-1][1], sum(net.heads[name] for name in tower_heads)
        pieces = head_pieces(offsets, net, tower_heads, inputs)
        towers.append((column, [*layers, (inputs, outputs, pieces)]))
        column += outputs
    return towers


def hidden_layers(offsets: dict[str, int], net: Perceptron) -> list[list[Layer]]:
    """Return the layers of a perceptron's towers, which share the matrix of the first layer."""
    numbers, width, towers = len(net.inputs.features), net.config.hidden[0], len(net.towers)
    by_tower: list[list[Layer]] = []
    for number in range(towers):
        weight, bias = (offsets[f"first.{part}"] + number * width for part in ("weight", "bias"))
        layers = [(numbers, width, [(0, width, numbers, weight, bias, towers * width, 1)])]
        for index, (inputs, outputs) in enumerate(pairwise(net.config.hidden)):
            layers.append(linear(offsets, f"towers.{number}.{2 * index}", inputs, outputs))
        by_tower.append(layers)
    return by_tower


def head_pieces(
    offsets: dict[str, int], net: Net, layers: Mapping[str, str], inputs: int
) -> list[Piece]:
    """Return the heads of a tower side by side; a std shared by all rows has no inputs."""
    builtin, column = isinstance(net, Perceptron), 0
    pieces: list[Piece] = []
    for name, layer in layers.items():
        width = net.heads[name]
        parts = [(0, width, inputs)]
        if builtin and name == POLICY and net.box and net.config.std == "shared":
            parts = [(0, net.box, inputs), (net.box, width - net.box, 0)]
        for first, columns, reads in parts:
            weight = offsets[f"{layer}.weight"] + first * inputs
            bias = offsets[f"{layer}.bias"] + first
            pieces.append((column, columns, reads, weight, bias, 1, inputs))
            column += columns
    return pieces


def linear(offsets: dict[str, int], name: str, inputs: int, outputs: int) -> Layer:
    """Return a linear layer in torch's layout: a row for every output."""
    piece = (0, outputs, inputs, offsets[f"{name}.weight"], offsets[f"{name}.bias"], 1, inputs)
    return inputs, outputs, [piece]


class NativeNet:
    """A perceptron with native passes, which always use its current weights.

    It packs the parameters: the network must not be moved any more.
    """

    def __init__(self, net: Net, *, threads: int, arithmetic: str) -> None:
        """Take ownership of a network for which `native_unsupported_reason` is ""."""
        self.net, self.packed, self.threads = net, PackedParameters(net), threads
        traced, self.width = trace_perceptron(net), sum(net.heads.values())
        activation = net.config.activation
        if isinstance(traced, TracedPerceptron):
            activation = traced.activation
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
        self.work = _native.PPOUpdate(threads)
        """Native optimizer steps and sampling."""
        self._weight, self._grad = self.packed.weight.numpy(), self.packed.grad.numpy()
        self._tensors = [*net.parameters(), self.packed.weight]
        self._loaded_version = -1
        self._outputs = torch.empty(0, self.width)

    def layers(self) -> _native.Layers:
        """Return the native passes with the current weights.

        Torch's version counters show that tensors were loaded, rescaled or stepped; native code
        that writes weights calls `mark_changed`.
        """
        version = sum(tensor._version for tensor in self._tensors)
        if version != self._loaded_version:
            self._layers.load(self._weight)
            self._loaded_version = version
        return self._layers

    def mark_changed(self) -> None:
        """Reload the weights before the next pass: native code has written them."""
        self._loaded_version = -1

    def forward(self, obs: Tensor, *, index: Tensor | None = None, keep: bool) -> Tensor:
        """Return the outputs of all heads side by side [rows, widths]; valid until the next call.

        index: rows of `obs` to read, in this order.
        keep: keep activations for `backward`.
        """
        out = self._output_buffer(len(obs) if index is None else len(index))
        rows = None if index is None else index.numpy()
        self.layers().forward(obs.numpy(), rows, out.numpy(), keep)
        return out

    def _output_buffer(self, rows: int) -> Tensor:
        if len(self._outputs) < rows:
            self._outputs = torch.empty(rows, self.width)
        return self._outputs[:rows]

    def backward(self, head_grad: Tensor, *, add: bool = False) -> None:
        """Write the gradient of the weights from that of the kept outputs; add: add to it."""
        self._layers.backward(head_grad.numpy(), self._grad, None, add)

    def split(self, output: Tensor) -> HeadOutputs:
        """Split `forward` by head."""
        widths = self.net.heads
        parts = torch.split(output, list(widths.values()), -1)
        outputs: HeadOutputs = dict(zip(widths, parts, strict=True))
        if VALUE in outputs:
            outputs[VALUE] = outputs[VALUE].squeeze(-1)
        return outputs

    def forward_with_grad(self, obs: Tensor) -> HeadOutputs:
        """Return the outputs by head for a loss of torch, whose backward adds to `packed.grad`.

        Call backward before the next pass.
        """
        apply: Any = _NativePass.apply
        return self.split(apply(next(self.net.parameters()), obs.contiguous(), self))

    @torch.no_grad()
    def forward_heads(self, obs: Tensor) -> list[HeadOutputs]:
        """Return the outputs by head, like `Forward.lean`; valid until the next call."""
        return [self.split(self.forward(obs.contiguous(), keep=False))]

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
        """Return sampled actions, log-probabilities and values, like `ActionSampler.draw`.

        Values are in units of the rewards.
        """
        count, box = len(obs), self.net.box
        output = self._output_buffer(count)
        self.layers().forward(obs, None, output.numpy(), False)
        action: npt.NDArray[Any] = np.empty((count, box) if box else count, np.float32)
        if not box:
            action = action.view(np.int32)
        log_prob, value = np.empty((2, count), np.float32)
        used = self.net.heads[POLICY] + self.net.heads[VALUE]
        self.work.sample_actions(
            outputs=np.ascontiguousarray(output.numpy()[:, :used]),
            mask=np.ascontiguousarray(mask),
            seed=seed,
            row_id=rows.astype(np.uint32),
            episode=rollout,
            draw_count=step,
            value_scale=float(self.net.value_scale),
            action=None if box else action,
            numbers=action if box else None,
            log_prob=log_prob,
            value=value,
        )
        if WDL in self.net.heads and float(self.net.wdl_blend):
            value = self.net.unscaled_values(self.split(output)).numpy()
        return action, log_prob, value


def native_evaluator(
    net: Net, device: str, threads: int
) -> Callable[[npt.NDArray[np.uint8]], tuple[Any, Any]] | None:
    """Return a function from rows to policy head and value; None: there are no native passes."""
    if isinstance(net, CustomNet) or native_unsupported_reason(net, torch.device(device)):
        return None
    native = NativeNet(net, threads=threads, arithmetic=resolve_cpu(AUTO))

    @torch.no_grad()
    def evaluate(rows: npt.NDArray[np.uint8]) -> tuple[Any, Any]:
        outputs = native.forward_heads(torch.from_numpy(rows))[0]
        return outputs[POLICY].float().numpy(), net.unscaled_values(outputs).numpy()

    return evaluate


class _NativePass(torch.autograd.Function):
    """Native forward; backward adds to the gradients of the network's weights itself."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, obs: Tensor, native: NativeNet) -> Tensor:
        """weight: any trained weight, so that autograd calls backward."""
        ctx.native = native
        return native.forward(obs, keep=True).clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        ctx.native.backward(grads[0].contiguous(), add=True)
        return None, None, None


class NativeHierarchy:
    """Native passes of a `HierarchyNet`."""

    def __init__(self, net: HierarchyNet, parts: dict[str, NativeNet]) -> None:
        self.net, self.parts = net, parts

    @torch.no_grad()
    def forward_heads(self, obs: Tensor) -> list[HeadOutputs]:
        """Return the outputs by head, values in units of the rewards."""

        def forward_role(role: str, rows: Tensor | None) -> HeadOutputs:
            part = self.parts[role]
            outputs = part.split(part.forward(obs, index=rows, keep=False))
            return unscale_value_head(part.net, outputs)

        return [self.net.forward_by_role(obs, forward_role)]


AUTO, BF16, FLOAT32, TORCH = "auto", "bf16", "float32", "torch"
BEST_WITH_AMX = BF16
"""Meaning of `auto` on a CPU with AMX, for perceptrons. Convolutions are torch's, whose bfloat16
changes outputs by half a percent and gradients by more: there the user has to set it."""
KERNELS = "SPARRING_KERNELS"
"""Environment variable that selects the kernels of native code, for tests."""


def resolve_cpu(wanted: str, *, perceptron: bool = True) -> str:
    """Return the arithmetic of `collect.cpu` on this machine; raise if it is not available.

    perceptron: whether the network is one, see `BEST_WITH_AMX`.
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
    """Return `collect.cpu`, or auto if this machine lacks it; for machines that do not learn."""
    return AUTO if wanted == BF16 and not _native.has_amx() else wanted
