"""Layers that networks share: the first one, which reads bytes; normalization; first weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from sparring import _native
from sparring.nets.inputs import Inputs


class FirstLayer(nn.Module):
    """A linear layer over all numbers of a row, fed with the pool's bytes.

    On a CPU it multiplies only features that are not 0 (csrc/nets/first_layer.hpp), elsewhere,
    or with sparse=False, it widens all of them. Both give the same values up to rounding. Numbers
    that are normalized are hardly ever 0, and always widened.
    """

    _order: Tensor
    _divisor: Tensor

    def __init__(
        self, inputs: Inputs, width: int, *, sparse: bool, threads: int, normalize: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(len(inputs.features), width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.sparse = sparse and not normalize
        self.normalizer = Normalizer(len(inputs.rules.features)) if normalize else None
        self.native = _native.FirstLayer(inputs.runs, threads)
        self._parts, order, divisors = inputs.byte_ranges()
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
        if self.normalizer is not None:
            numbers = self.normalizer(numbers)
        return torch.addmm(self.bias, numbers, self.weight[self._order])

    def widen(self, obs: Tensor) -> Tensor:
        """Return the numbers, in the order in which their bytes lie."""
        parts = [obs[:, a:b].contiguous().view(dtype).float() for dtype, a, b in self._parts]
        return torch.cat(parts, dim=1) / self._divisor

    def update_normalizer(self, obs: Tensor) -> None:
        """Add byte rows to what observations are normalized by."""
        if self.normalizer is None:
            return
        for rows in torch.split(obs, CHUNK):
            self.normalizer.update(self.widen(rows.to(self.bias.device)))


def sparse_linear(obs: Tensor, weight: Tensor, bias: Tensor, native: _native.FirstLayer) -> Tensor:
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


CLIP = 10.0
"""No number lies farther from the mean than so many spreads."""
EPS = 1e-8
"""Beside the variance: a number that never changed is 0 and not 0/0."""
CHUNK = 4096
"""Rows that are widened at a time."""


class Normalizer(nn.Module):
    """Mean, variance and count of every number of the observation, in float64.

    Numbers behind them, those of a memory, pass as they are. Before anything was seen everything
    passes, cut off at `CLIP`.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.numbers = numbers
        self.register_buffer("mean", torch.zeros(numbers, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(numbers, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the same numbers [..., numbers and memory], normalized."""
        shift, spread = self.shift_and_std()
        seen = ((numbers[..., : self.numbers] - shift) / spread).clamp(-CLIP, CLIP)
        if numbers.shape[-1] == self.numbers:
            return seen
        return torch.cat((seen, numbers[..., self.numbers :]), -1)

    def shift_and_std(self) -> tuple[Tensor, Tensor]:
        """What is taken off and divided by, in float32."""
        return self.mean.float(), (self.variance + EPS).sqrt().float()

    @torch.no_grad()
    def update(self, numbers: Tensor) -> None:
        """Add rows [rows, numbers and memory] to what was seen.

        Two sets are merged by their means and squares (Chan et al.), which loses no digits where a
        mean is far larger than its spread.
        """
        rows = numbers[:, : self.numbers].double()
        if not len(rows):
            return
        mean = rows.mean(0)
        self.merge(float(len(rows)), mean, ((rows - mean) ** 2).sum(0))

    @torch.no_grad()
    def merge(self, count: float, mean: Tensor, squares: Tensor) -> None:
        """Add rows of which only their number, means and squared deviations are known."""
        before = float(self.count)
        total = before + count
        off = mean - self.mean
        kept = self.variance * before  # the variance of nothing is 1, and weighs nothing
        self.variance.copy_((kept + squares + off**2 * (before * count / total)) / total)
        self.mean.add_(off * (count / total))
        self.count.fill_(total)


_THREADS = Lock()
"""Two at once would take each other's single thread for the number to restore."""


def orthogonal_(weight: Tensor, gain: float = 1.0) -> Tensor:
    """Fill a matrix as `nn.init.orthogonal_` does on one thread.

    The QR decomposition splits its sums by threads, so that their number would show in the last
    bit of the weights, and after some updates in everything.
    """
    with one_thread():
        return nn.init.orthogonal_(weight, gain)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on a single thread."""
    with _THREADS:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
