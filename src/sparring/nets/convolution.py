"""Our own convolutions on CPUs, with their gradients (csrc/nets/convolution.hpp).

torch's backward pass takes three to four times as long for boards this small. Boards are
[rows, height, width, channels] here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sparring import _native


class Stem(torch.autograd.Function):
    """relu(conv(planes) + numbers @ number_weight + bias), straight from observation bytes."""

    @staticmethod
    def forward(  # noqa: PLR0917 -- autograd takes no names
        ctx: Any,
        obs: Tensor,
        weight: Tensor,
        number_weight: Tensor,
        bias: Tensor,
        native: _native.Convolutions,
        shape: tuple[int, int],
    ) -> Tensor:
        obs = obs.contiguous()
        out = torch.empty(len(obs), *shape, weight.shape[0])
        kernel, numbers = taps_first(weight), number_weight.detach().T.contiguous()
        native.stem(
            obs.numpy(), kernel.numpy(), numbers.numpy(), bias.detach().numpy(), out.numpy()
        )
        ctx.save_for_backward(out)
        ctx.obs, ctx.native = obs, native
        ctx.shapes = kernel.shape, numbers.shape
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (out,) = ctx.saved_tensors
        kernel, numbers = (torch.empty(shape) for shape in ctx.shapes)
        bias = torch.empty(out.shape[-1])
        before = in_front_of_relu(grad, out)
        arrays = before.numpy(), kernel.numpy(), numbers.numpy(), bias.numpy()
        ctx.native.stem_gradient(ctx.obs.numpy(), *arrays)
        return None, taps_last(kernel), numbers.T, bias, None, None


class ResidualBlock(torch.autograd.Function):
    """relu(x + conv(relu(conv(x))))."""

    @staticmethod
    def forward(  # noqa: PLR0917 -- autograd takes no names
        ctx: Any,
        x: Tensor,
        first: Tensor,
        first_bias: Tensor,
        second: Tensor,
        second_bias: Tensor,
        native: _native.Convolutions,
    ) -> Tensor:
        x = x.detach().contiguous()
        inside = convolve(native, x, taps_first(first), first_bias, relu=True)
        out = convolve(native, inside, taps_first(second), second_bias, onto=x, relu=True)
        ctx.save_for_backward(x, inside, out, first, second)
        ctx.native = native
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, inside, out, first, second = ctx.saved_tensors
        native = ctx.native
        grad = in_front_of_relu(grad, out)
        second_grads = kernel_gradient(native, inside, grad, second)
        inside_grad = convolve(native, grad, turned(second), mask=inside)
        first_grads = kernel_gradient(native, x, inside_grad, first)
        x_grad = convolve(native, inside_grad, turned(first), onto=grad)
        return x_grad, *first_grads, *second_grads, None


def convolve(
    native: _native.Convolutions,
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    *,
    onto: Tensor | None = None,
    mask: Tensor | None = None,
    relu: bool = False,
) -> Tensor:
    """conv(x) + bias + onto; then 0 for what is negative (relu) or where `mask` is not above 0."""
    out = torch.empty(*x.shape[:-1], kernel.shape[-1])
    added = None if bias is None else bias.detach().numpy()
    summed, masked = (None if t is None else t.numpy() for t in (onto, mask))
    native.apply(x.numpy(), kernel.numpy(), added, summed, masked, relu, out.numpy())
    return out


def kernel_gradient(
    native: _native.Convolutions, x: Tensor, grad: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of a weight as torch keeps it, and of its bias."""
    kernel, bias = torch.empty_like(taps_first(weight)), torch.empty(len(weight))
    native.kernel_gradient(x.numpy(), grad.numpy(), kernel.numpy(), bias.numpy())
    return taps_last(kernel), bias


def taps_first(weight: Tensor) -> Tensor:
    """torch's weight [out, in, 3, 3] as [3, 3, in, out]."""
    return weight.detach().permute(2, 3, 1, 0).contiguous()


def taps_last(kernel: Tensor) -> Tensor:
    """And back."""
    return kernel.permute(3, 2, 0, 1).contiguous()


def turned(weight: Tensor) -> Tensor:
    """The kernel that takes a gradient back through a convolution [3, 3, out, in]."""
    return weight.detach().flip(2, 3).permute(2, 3, 0, 1).contiguous()


def in_front_of_relu(grad: Tensor, out: Tensor) -> Tensor:
    """The gradient in front of a relu that gave `out`."""
    before: Tensor = torch.ops.aten.threshold_backward(grad.contiguous(), out, 0)
    return before
