"""Attention over few tokens, and norms of tokens, on a GPU by kernels of our own.

What torch has is made for hundreds of tokens: of its tiles a row with fifteen uses a few percent,
and its layer norm has a block of threads for 64 numbers. `kernels_for` says where ours
(csrc/cuda/attend.cuh) can be used; elsewhere `nets.encoder` asks torch. Tests hold both equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from sparring.errors import ConfigError
from sparring.kernels import Module, build

SOURCE = '#include "cuda/attend.cuh"\n'
THREADS = 256
MOST_EACH = 32
"""Numbers of a head that a thread has room for."""
MOST_TOKENS = 64
"""Beyond, tiles of a library are well filled."""
WARP = 32
NORM_BLOCKS = 1056
"""Blocks that take turns where gradients of norms are added up: eight for each part of an H200."""
OWN = True
"""Whether ours are used at all; a test and a benchmark switch them off."""


@cache
def kernels_of(dtype: torch.dtype, each: int, width: int, device: torch.device) -> Module | None:
    """The kernels for tokens of a size, None where there is no compiler for them."""
    constants = {
        "SPARRING_BF16": int(dtype == torch.bfloat16),
        "SPARRING_EACH": each,
        "SPARRING_TOKEN": width,
    }
    try:
        return build(SOURCE, constants, exact=False, device=device, what="attention")
    except ConfigError:
        return None


def kernels_for(x: Tensor, each: int) -> Module | None:
    """The kernels for tokens [..., width] with heads of so many numbers; None: torch's serve."""
    width = x.shape[-1]
    threads = width // 8
    fits = (
        OWN
        and x.is_cuda
        and x.dtype in (torch.bfloat16, torch.float32)
        and width % 8 == 0
        and threads <= WARP
        and threads & (threads - 1) == 0
        and each % 8 == 0
        and each <= MOST_EACH
        # Many networks at once (torch.func.vmap): only torch's own know what to do.
        and not torch._C._functorch.is_batchedtensor(x)
    )
    return kernels_of(x.dtype, each, width, x.device) if fits else None


def blocks_for(threads: int) -> int:
    """Blocks of threads for so many of them."""
    return -(-threads // THREADS)


def use_device() -> None:
    """Give this thread the context of the GPU: autograd's own threads begin without one."""
    from cuda.bindings import driver

    if not int(driver.cuCtxGetCurrent()[1]):
        driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])


@dataclass(frozen=True)
class Looked:
    """Tensors of a pass over attention, as kernels take them."""

    packed: Tensor
    """Queries, keys and values side by side [rows, tokens, 3 * width], or keys and values."""
    query: Tensor | None
    """[rows, asked, width]; None where they are among the others."""
    there: Tensor | None
    out: Tensor
    log_sum: Tensor

    def parts(self, packed: Tensor, query: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of tensors of the same shapes, where they lie."""
        parts = torch.split(packed, self.out.shape[2], dim=2)
        return (parts[0] if query is None else query), parts[-2], parts[-1]

    def view(self, kernels: Module, heads: int) -> Any:
        """What all kernels read."""
        rows, asked, width = self.out.shape
        query, key, value = self.parts(self.packed, self.query)
        return kernels.view(
            "AttendView",
            query=query,
            key=key,
            value=value,
            there=self.there,
            query_stride=query.stride(1),
            key_stride=key.stride(1),
            out=self.out,
            log_sum=self.log_sum,
            rows=rows,
            asked=asked,
            tokens=self.packed.shape[1],
            heads=heads,
            scale=1 / math.sqrt(width // heads),
        )


class Attend(torch.autograd.Function):
    """What tokens take from those that they look at.

    Reads keys and values of all tokens side by side, and queries from where they lie: in front of
    the keys, or apart if only the first tokens ask.
    """

    @staticmethod
    def forward(
        ctx: Any, packed: Tensor, query: Tensor | None, there: Tensor | None, heads: int
    ) -> Tensor:
        """Return [rows, asked, width]; see `Looked`. there: bool [rows, tokens]."""
        packed = packed.contiguous()
        query = query.contiguous() if query is not None else None
        there = there.contiguous() if there is not None else None
        rows, tokens, wide = packed.shape
        width = wide // (3 if query is None else 2)
        asked = tokens if query is None else query.shape[1]
        out = packed.new_empty(rows, asked, width)
        log_sum = packed.new_empty(rows, heads, asked, dtype=torch.float32)
        kernels = kernels_of(packed.dtype, width // heads, width, packed.device)
        assert kernels is not None
        ctx.kernels, ctx.heads = kernels, heads
        ctx.save_for_backward(packed, query, there, out, log_sum)
        view = Looked(packed, query, there, out, log_sum).view(kernels, heads)
        kernels.attend(blocks_for(log_sum.numel()), THREADS, view)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        looked, kernels = Looked(*ctx.saved_tensors), ctx.kernels
        packed, query, own = looked.packed, looked.query, torch.empty_like(looked.log_sum)
        use_device()
        to_packed = torch.empty_like(packed)
        to_query = torch.empty_like(query) if query is not None else None
        queries, keys, values = looked.parts(to_packed, to_query)
        view = looked.view(kernels, ctx.heads)
        back = kernels.view(
            "AttendBackView",
            grad=grad.to(packed.dtype).contiguous(),
            own=own,
            query=queries,
            key=keys,
            value=values,
            query_stride=queries.stride(1),
            key_stride=keys.stride(1),
        )
        kernels.attend_queries_back(blocks_for(own.numel()), THREADS, view, back)
        seen = ctx.heads * packed.shape[0] * packed.shape[1]
        kernels.attend_keys_back(blocks_for(seen), THREADS, view, back)
        return to_packed, to_query, None, None


class NormTokens(torch.autograd.Function):
    """Layer norm of tokens, in their own type; gain and shift are float32."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, how: tuple[float, Module]
    ) -> Tensor:
        """Return x [..., width] centred and scaled. how: what is added to squares; kernels."""
        x, gain, shift = x.contiguous(), gain.contiguous(), shift.contiguous()
        out = torch.empty_like(x)
        ctx.save_for_backward(x, gain, shift)
        ctx.eps, ctx.kernels = how
        view = norm_view(ctx, x, gain, shift, out)
        ctx.kernels.norm_tokens(blocks_for(x.numel() // 8), THREADS, view)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, gain, shift = ctx.saved_tensors
        use_device()
        grad, to_x = grad.to(x.dtype).contiguous(), torch.empty_like(x)
        blocks = min(NORM_BLOCKS, blocks_for(x.numel() // 8))
        sums = x.new_empty(blocks, 2, x.shape[-1], dtype=torch.float32)
        view = norm_view(ctx, x, gain, shift, to_x)
        back = ctx.kernels.view("NormBackView", grad=grad, to_x=to_x, sums=sums)
        ctx.kernels.norm_tokens_back(blocks, THREADS, view, back)
        to_gain, to_shift = sums.sum(0)
        return to_x, to_gain, to_shift, None


def norm_view(ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, out: Tensor) -> Any:
    """What both kernels read."""
    return ctx.kernels.view(
        "NormView",
        x=x,
        gain=gain,
        shift=shift,
        out=out,
        count=x.numel() // x.shape[-1],
        eps=ctx.eps,
    )
