"""The first layer of every network: observation bytes in, the first hidden values out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sparring import _native
from sparring.nets.inputs import Inputs
from sparring.nets.normaliser import CHUNK, Normaliser


class FirstLayer(nn.Module):
    """A linear layer over all numbers of a row, fed with the pool's bytes.

    On a CPU it multiplies only features that are not 0 (csrc/nets/first_layer.hpp), elsewhere,
    or with sparse=False, it widens all of them. Both give the same values up to rounding. Numbers
    that are normalised are hardly ever 0, and always widened.
    """

    _order: Tensor
    _divisor: Tensor

    def __init__(
        self, inputs: Inputs, width: int, *, sparse: bool, threads: int, normalise: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(len(inputs.features), width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.sparse = sparse and not normalise
        self.normaliser = Normaliser(len(inputs.rules.features)) if normalise else None
        self.native = _native.FirstLayer(inputs.runs, threads)
        self._parts, order, divisors = inputs.stretches()
        self.register_buffer("_order", torch.tensor(order), persistent=False)
        self.register_buffer("_divisor", torch.tensor(divisors), persistent=False)

    def forward(self, obs: Tensor) -> Tensor:
        """Return [rows, width] for byte rows [rows, row_bytes]."""
        if self.sparse and obs.device.type == "cpu":
            given = obs, self.weight, self.bias, self.native
            if not torch.is_grad_enabled():
                return sparse_linear(*given)
            apply: Any = SparseLinear.apply
            out: Tensor = apply(*given)
            return out
        return self.of(self.widen(obs))

    def of(self, numbers: Tensor) -> Tensor:
        """The same of rows that are widened already."""
        if self.normaliser is not None:
            numbers = self.normaliser(numbers)
        return torch.addmm(self.bias, numbers, self.weight[self._order])

    def widen(self, obs: Tensor) -> Tensor:
        """Return the numbers, in the order in which their bytes lie."""
        parts = [obs[:, a:b].contiguous().view(dtype).float() for dtype, a, b in self._parts]
        return torch.cat(parts, dim=1) / self._divisor

    def take_in(self, obs: Tensor) -> None:
        """Add byte rows to what observations are normalised by."""
        if self.normaliser is None:
            return
        for rows in torch.split(obs, CHUNK):
            self.normaliser.take_in(self.widen(rows.to(self.bias.device)))


def sparse_linear(obs: Tensor, weight: Tensor, bias: Tensor, native: _native.FirstLayer) -> Tensor:
    """The native layer."""
    out = torch.empty(len(obs), weight.shape[1])
    rows = obs.contiguous().numpy()
    native.forward(rows, weight.detach().numpy(), bias.detach().numpy(), out.numpy())
    return out


class SparseLinear(torch.autograd.Function):
    """The native layer with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, obs: Tensor, weight: Tensor, bias: Tensor, native: _native.FirstLayer
    ) -> Tensor:
        ctx.obs, ctx.native, ctx.features = obs.contiguous(), native, weight.shape[0]
        return sparse_linear(ctx.obs, weight, bias, native)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        grad = grad.contiguous()
        weight_grad = torch.zeros(ctx.features, grad.shape[1])
        bias_grad = torch.zeros(grad.shape[1])
        ctx.native.backward(ctx.obs.numpy(), grad.numpy(), weight_grad.numpy(), bias_grad.numpy())
        return None, weight_grad, bias_grad, None


class NativeTanh(torch.autograd.Function):
    """The native tangent with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, native: _native.FirstLayer) -> Tensor:
        x = x.detach().contiguous()
        out = torch.empty_like(x)
        native.tanh(x.numpy(), out.numpy())
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (out,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(grad, out), None


class Tanh(nn.Module):
    """The hyperbolic tangent; on a CPU a cheaper one than torch's, within 4e-7 of it."""

    def __init__(self, native: _native.FirstLayer, *, fast: bool) -> None:
        super().__init__()
        self.native, self.fast = native, fast

    def forward(self, x: Tensor) -> Tensor:
        if not self.fast or x.device.type != "cpu" or x.dtype != torch.float32:
            return torch.tanh(x)
        apply: Any = NativeTanh.apply
        out: Tensor = apply(x, self.native)
        return out
