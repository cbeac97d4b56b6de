"""Native passes of critics on a CPU: both critics in a call, their targets in another.

`csrc/nets/layers.hpp` computes; here is which numbers of the flat arrays are which layer's. Tests
hold it equal to autograd's.
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
from sparring.nets.critics import CRITICS, Critics
from sparring.nets.inputs import Inputs
from sparring.nets.mlp import NATIVE_ACTIVATIONS
from sparring.nets.run.native import Layer, Tower

Floats = npt.NDArray[np.float32]


class NativeCritics:
    """Those of critics for which `native_critics_unsupported_reason` has nothing to say.

    What critics read is a row of numbers, with the action last; what they say is [rows, 2], or
    [rows, 2 * actions].
    """

    def __init__(self, critics: Critics, *, threads: int, bf16: bool = False) -> None:
        """Take over critics whose weights, targets and gradients stay where they are.

        bf16: products in bfloat16, on a CPU with AMX.
        """
        assert critics.flat.grad is not None
        self.critics, self.each = critics, critics.actions or 1
        layout: dict[str, Any] = {
            "runs": [],
            "numbers": critics.widths[0],
            "sparse": False,
            "activation": NATIVE_ACTIVATIONS.index(critics.kind),
            "head_width": CRITICS * self.each,
            "towers": towers_of(critics),
            "threads": threads,
            "bf16": bf16,
        }
        self.layers, self.targets = (_native.Layers(**layout) for _ in range(2))
        self.weight: Floats = critics.flat.detach().numpy().reshape(-1)
        self.target: Floats = critics.target.numpy().reshape(-1)
        self.grad: Floats = critics.flat.grad.numpy().reshape(-1)
        self._seen = self._seen_target = -1

    def changed(self) -> None:
        """Native code has written other weights."""
        self._seen = -1

    def followed(self) -> None:
        """Native code has written other targets."""
        self._seen_target = -1

    def say(self, read: Floats, out: Floats) -> None:
        """What the critics say; `learn` or `input_backward` may follow."""
        seen = self.critics.flat._version
        if seen != self._seen:
            self.layers.load(self.weight)
            self._seen = seen
        self.layers.forward_numbers(read, out, True)

    def forward_targets(self, read: Floats, out: Floats) -> None:
        seen = self.critics.target._version
        if seen != self._seen_target:
            self.targets.load(self.target)
            self._seen_target = seen
        self.targets.forward_numbers(read, out, False)

    def learn(self, grad: Floats, *, add: bool = False) -> None:
        """Write the gradient of the weights, from that of what was said last, or add to it."""
        self.layers.backward(grad, self.grad, None, add)

    def input_backward(self, grad: Floats, read_grad: Floats) -> None:
        """Write the gradient of what was read, from that of what was said last."""
        self.layers.backward(grad, None, read_grad, False)

    # As `Critics`

    def __call__(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """What the critics say, to be learned from; see `Critics.forward`."""
        apply: Any = _Said.apply
        said: Tensor = apply(_joined(numbers, action), self.critics.flat, self)
        return said

    def frozen(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """What the critics say, whose own weights learn nothing from it."""
        if action is None:  # nothing else learns from it either
            return self.said(numbers.contiguous())
        apply: Any = _Said.apply
        said: Tensor = apply(_joined(numbers, action), self.critics.flat.detach(), self)
        return said

    def said(self, read: Tensor) -> Tensor:
        """What the critics say of rows of numbers."""
        out = np.empty((len(read), CRITICS * self.each), np.float32)
        self.say(read.numpy(), out)
        return self.split(out)

    @torch.no_grad()
    def target_q(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        read = _joined(numbers, action).numpy()
        out = np.empty((len(read), CRITICS * self.each), np.float32)
        self.forward_targets(read, out)
        return self.split(out)

    def split(self, out: Floats) -> Tensor:
        """What was said by critic, as `Critics.forward` returns it."""
        said = torch.from_numpy(out).view(-1, CRITICS, self.each).transpose(0, 1)
        return said if self.critics.actions else said.squeeze(-1)


class _Said(torch.autograd.Function):
    """A native pass of critics; its backward adds to the gradient of the weights itself."""

    @staticmethod
    def forward(ctx: Any, read: Tensor, flat: Tensor, passes: NativeCritics) -> Tensor:
        """flat: the weights, which learn if they ask for a gradient."""
        ctx.passes = passes
        return passes.said(read)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        """Of the batch that was asked about last."""
        passes, grad = ctx.passes, grads[0].transpose(0, 1)
        given = grad.reshape(len(grad), -1).contiguous().numpy()
        if ctx.needs_input_grad[1]:
            passes.learn(given, add=True)
        if not ctx.needs_input_grad[0]:
            return None, None, None
        read_grad = np.empty((len(given), passes.critics.widths[0]), np.float32)
        passes.input_backward(given, read_grad)
        return torch.from_numpy(read_grad), None, None


def _joined(numbers: Tensor, action: Tensor | None) -> Tensor:
    """What critics read, in one stretch of memory."""
    return (numbers if action is None else torch.cat((numbers, action), -1)).contiguous()


def native_critics_unsupported_reason(critics: Critics) -> str:
    """Say what keeps critics from being passed natively, "" if nothing does."""
    if critics.flat.device.type != "cpu":
        return "native passes are for CPUs"
    assert critics.members == 1, "a population is trained on a GPU"
    return feature_unsupported_reason("native", "sac.critic_norm") if critics.norm else ""


def towers_of(critics: Critics) -> list[Tower]:
    """Where the weights of every layer of either critic lie."""
    each = critics.flat.shape[-1]
    towers: list[Tower] = []
    for number in range(CRITICS):
        place, layers = number * each, list[Layer]()
        for weight, bias in zip(critics.pieces[::2], critics.pieces[1::2], strict=True):
            start = place + weight.size
            piece = (0, weight.columns, weight.rows, place, start, weight.columns, 1)
            layers.append((weight.rows, weight.columns, [piece]))
            place = start + bias.size
        towers.append((number * (critics.actions or 1), layers))
    return towers


def widened_runs(inputs: Inputs) -> list[tuple[int, int, int, int, float]]:
    """What `Widen` reads, as the native core takes it. What is not seen is left as it is."""
    _, order, _ = inputs.byte_ranges()
    seen = None if inputs.seen is None else {order.index(i) for i in inputs.seen}
    return runs_of([inputs.features[i] for i in order], seen)
