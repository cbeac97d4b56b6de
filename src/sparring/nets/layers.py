"""Layers shared by networks: the first layer, which reads bytes; normalization; initialization."""

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
    """A linear layer over all features of a row, which reads the pool's bytes.

    On a CPU it multiplies only features that are not 0 (csrc/nets/first_layer.hpp); elsewhere,
    or with sparse=False, it converts all of them to float32. Both give the same values up to
    rounding. Normalized features are hardly ever 0 and always converted.
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
            arguments = obs, self.weight, self.bias, self.native
            if not torch.is_grad_enabled():
                return sparse_linear(*arguments)
            apply: Any = SparseLinear.apply
            out: Tensor = apply(*arguments)
            return out
        return self.forward_numbers(self.widen(obs))

    def forward_numbers(self, numbers: Tensor) -> Tensor:
        """Return [rows, width] for the output of `widen`."""
        if self.normalizer is not None:
            numbers = self.normalizer(numbers)
        return torch.addmm(self.bias, numbers, self.weight[self._order])

    def widen(self, obs: Tensor) -> Tensor:
        """Return the features of byte rows as float32, in the order of their bytes."""
        parts = [obs[:, a:b].contiguous().view(dtype).float() for dtype, a, b in self._parts]
        return torch.cat(parts, dim=1) / self._divisor

    def update_normalizer(self, obs: Tensor) -> None:
        """Add byte rows to the running mean and variance."""
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
    """Autograd function of the native first layer."""

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
    """Autograd function of the native tanh."""

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
    """tanh; on a CPU a cheaper one than torch's, within 4e-7 of it."""

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
"""Normalized features are clipped to this many standard deviations."""
EPS = 1e-8
"""Added to the variance: a constant feature becomes 0 and not 0/0."""
CHUNK = 4096
"""Rows that are converted at a time."""


class Normalizer(nn.Module):
    """Running mean, variance and count of every feature of the observation, in float64.

    Memory after the observation is not normalized. Before the first update features are only
    clipped at `CLIP`.
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
        """Return features [..., features and memory], normalized."""
        mean, std = self.mean_and_std()
        normalized = ((numbers[..., : self.numbers] - mean) / std).clamp(-CLIP, CLIP)
        if numbers.shape[-1] == self.numbers:
            return normalized
        return torch.cat((normalized, numbers[..., self.numbers :]), -1)

    def mean_and_std(self) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation in float32."""
        return self.mean.float(), (self.variance + EPS).sqrt().float()

    @torch.no_grad()
    def update(self, numbers: Tensor) -> None:
        """Add rows [rows, features and memory].

        Means and squared deviations are merged (Chan et al.), which loses no digits where a mean is
        far larger than its standard deviation.
        """
        rows = numbers[:, : self.numbers].double()
        if not len(rows):
            return
        mean = rows.mean(0)
        self.merge(float(len(rows)), mean, ((rows - mean) ** 2).sum(0))

    @torch.no_grad()
    def merge(self, count: float, mean: Tensor, squares: Tensor) -> None:
        """Add rows given by their number, means and sums of squared deviations."""
        before = float(self.count)
        total = before + count
        delta = mean - self.mean
        old_squares = self.variance * before  # the initial variance 1 has weight 0
        self.variance.copy_((old_squares + squares + delta**2 * (before * count / total)) / total)
        self.mean.add_(delta * (count / total))
        self.count.fill_(total)

    @torch.no_grad()
    def clear(self) -> None:
        """Forget all rows."""
        self.mean.zero_()
        self.variance.fill_(1.0)
        self.count.zero_()

    def statistics(self) -> Tensor:
        """Return count, means and sums of squared deviations in one array."""
        return torch.cat([self.count.view(1), self.mean, self.variance * self.count])

    def merge_statistics(self, part: Tensor) -> None:
        """Add the rows behind another one's `statistics`."""
        if part[0]:
            self.merge(float(part[0]), part[1 : self.numbers + 1], part[self.numbers + 1 :])


_THREADS = Lock()
"""Two callers at once would restore each other's single thread."""


def orthogonal_(weight: Tensor, gain: float = 1.0) -> Tensor:
    """Fill a matrix like `nn.init.orthogonal_`, on one thread.

    The QR decomposition splits its sums by threads: their number would change the last bit of the
    weights, and after some updates the whole run.
    """
    if weight.is_meta:  # of a network that is only counted
        return weight
    with one_thread():
        return nn.init.orthogonal_(weight, gain)


@contextmanager
def one_thread() -> Iterator[None]:
    with _THREADS:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
