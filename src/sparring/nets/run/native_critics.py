"""Native passes of critics on a CPU: all critics in one call, their targets in another.

`csrc/nets/layers.hpp` computes; this module maps layers to offsets in the flat arrays. Tests
compare it with autograd.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native
from sparring.capabilities.refusals import feature_unsupported_reason
from sparring.games.features import runs_of
from sparring.nets.critics import Critics
from sparring.nets.inputs import Inputs
from sparring.nets.mlp import NATIVE_ACTIVATIONS
from sparring.nets.run.native import Layer, Tower

Floats = npt.NDArray[np.float32]


class NativeCritics:
    """Native passes with the interface of `Critics`.

    Inputs are rows of numbers, with the action last; outputs are [rows, critics], or
    [rows, critics * actions].
    """

    def __init__(self, critics: Critics, *, threads: int, bf16: bool = False) -> None:
        """Use the memory of the critics' weights, targets and gradients.

        bf16: products in bfloat16, on a CPU with AMX.
        """
        assert critics.flat.grad is not None
        self.critics, self.each = critics, critics.actions or 1
        layout: dict[str, Any] = {
            "runs": [],
            "numbers": critics.widths[0],
            "sparse": False,
            "activation": NATIVE_ACTIVATIONS.index(critics.kind),
            "head_width": critics.count * self.each,
            "towers": towers_of(critics),
            "threads": threads,
            "bf16": bf16,
        }
        self.layers, self.targets = (_native.Layers(**layout) for _ in range(2))
        self.weight: Floats = critics.flat.detach().numpy().reshape(-1)
        self.target: Floats = critics.target.numpy().reshape(-1)
        self.grad: Floats = critics.flat.grad.numpy().reshape(-1)
        self._loaded_version = self._loaded_target_version = -1

    def mark_changed(self) -> None:
        """Reload the weights before the next pass: native code has written them."""
        self._loaded_version = -1

    def mark_targets_changed(self) -> None:
        """Reload the targets before the next pass: native code has written them."""
        self._loaded_target_version = -1

    def forward_into(self, inputs: Floats, out: Floats) -> None:
        """Write the critics' outputs and keep activations for a backward pass."""
        version = self.critics.flat._version
        if version != self._loaded_version:
            self.layers.load(self.weight)
            self._loaded_version = version
        self.layers.forward_numbers(inputs, out, True)

    def forward_targets(self, inputs: Floats, out: Floats) -> None:
        version = self.critics.target._version
        if version != self._loaded_target_version:
            self.targets.load(self.target)
            self._loaded_target_version = version
        self.targets.forward_numbers(inputs, out, False)

    def backward(self, grad: Floats, *, add: bool = False) -> None:
        """Write the gradient of the weights from that of the last outputs; add: add to it."""
        self.layers.backward(grad, self.grad, None, add)

    def input_backward(self, grad: Floats, input_grad: Floats) -> None:
        """Write the gradient of the inputs from that of the last outputs."""
        self.layers.backward(grad, None, input_grad, False)

    # The interface of `Critics`

    def __call__(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """Return Q values with a gradient, like `Critics.forward`."""
        apply: Any = _NativeCriticsFunction.apply
        q: Tensor = apply(_join(numbers, action), self.critics.flat, self)
        return q

    def forward_frozen(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """Return Q values without a gradient for the critics' weights."""
        if action is None:  # no other gradient either
            return self.forward_q(numbers.contiguous())
        apply: Any = _NativeCriticsFunction.apply
        q: Tensor = apply(_join(numbers, action), self.critics.flat.detach(), self)
        return q

    def forward_q(self, inputs: Tensor) -> Tensor:
        """Return the Q values of rows of numbers."""
        out = np.empty((len(inputs), self.critics.count * self.each), np.float32)
        self.forward_into(inputs.numpy(), out)
        return self.split(out)

    @torch.no_grad()
    def target_q(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        inputs = _join(numbers, action).numpy()
        out = np.empty((len(inputs), self.critics.count * self.each), np.float32)
        self.forward_targets(inputs, out)
        return self.split(out)

    def split(self, out: Floats) -> Tensor:
        """Return outputs by critic, in the shape of `Critics.forward`."""
        q = torch.from_numpy(out).view(-1, self.critics.count, self.each).transpose(0, 1)
        return q if self.critics.actions else q.squeeze(-1)


class _NativeCriticsFunction(torch.autograd.Function):
    """A native pass of critics; its backward adds to the gradient of the weights itself."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, flat: Tensor, passes: NativeCritics) -> Tensor:
        """flat: the weights; they get a gradient if they require one."""
        ctx.passes = passes
        return passes.forward_q(inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        """Backpropagate through the last forward pass."""
        passes, grad = ctx.passes, grads[0].transpose(0, 1)
        output_grad = grad.reshape(len(grad), -1).contiguous().numpy()
        if ctx.needs_input_grad[1]:
            passes.backward(output_grad, add=True)
        if not ctx.needs_input_grad[0]:
            return None, None, None
        input_grad = np.empty((len(output_grad), passes.critics.widths[0]), np.float32)
        passes.input_backward(output_grad, input_grad)
        return torch.from_numpy(input_grad), None, None


def _join(numbers: Tensor, action: Tensor | None) -> Tensor:
    return (numbers if action is None else torch.cat((numbers, action), -1)).contiguous()


def native_critics_unsupported_reason(critics: Critics) -> str:
    """Return why critics have no native passes, "" if they have."""
    if critics.flat.device.type != "cpu":
        return "native passes are for CPUs"
    assert critics.members == 1, "a population is trained on a GPU"
    return feature_unsupported_reason("native", "sac.critic_norm") if critics.norm else ""


def towers_of(critics: Critics) -> list[Tower]:
    """Return the offsets of all layers' weights in all critics."""
    each = critics.flat.shape[-1]
    towers: list[Tower] = []
    for number in range(critics.count):
        offset, layers = number * each, list[Layer]()
        for weight, bias in zip(critics.layout[::2], critics.layout[1::2], strict=True):
            bias_offset = offset + weight.size
            piece = (0, weight.columns, weight.rows, offset, bias_offset, weight.columns, 1)
            layers.append((weight.rows, weight.columns, [piece]))
            offset = bias_offset + bias.size
        towers.append((number * (critics.actions or 1), layers))
    return towers


def widened_runs(inputs: Inputs) -> list[tuple[int, int, int, int, float]]:
    """Return the runs of `Widen` for the native core, which skips unused features."""
    _, order, _ = inputs.byte_ranges()
    used = inputs.used_features
    indices = None if used is None else {order.index(i) for i in used}
    return runs_of([inputs.features[i] for i in order], indices)
