"""Layers in which tokens look at each other: attention, then a perceptron for each of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.nets.attend import MOST_TOKENS, Attend, NormTokens, kernels_for

WIDER = 2
"""Numbers of a token's hidden layer, in widths of a token."""
MOST_ROWS = 32768
"""Rows of one call on a GPU: its kernels number rows by a block index that ends at 65,535."""


def is_rounded(x: Tensor) -> bool:
    """Whether autocast rounds what products of x read."""
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def computed_in(x: Tensor) -> torch.dtype:
    """The type of products of x."""
    return torch.get_autocast_dtype(x.device.type) if is_rounded(x) else x.dtype


class Norm(nn.LayerNorm):
    """Layer norm that keeps the type of its input: autocast would widen all tokens to float32."""

    def __init__(self, width: int, each: int) -> None:
        """each: numbers of a head, with whose kernels those of norms are compiled."""
        super().__init__(width)
        self.each = each

    def forward(self, x: Tensor) -> Tensor:
        """Return x centred and scaled, token by token."""
        kernels = kernels_for(x, self.each)
        if kernels is not None:
            apply: Any = NormTokens.apply
            ours: Tensor = apply(x, self.weight, self.bias, (self.eps, kernels))
            return ours
        if not is_rounded(x):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
            return functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class Layer(nn.Module):
    """A layer of an encoder that normalises what it reads, not what it adds to."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = Norm(width, width // heads)
        self.look = nn.Linear(width, 3 * width)
        """Queries, keys and values in one product."""
        self.seen = nn.Linear(width, width)
        self.between = Norm(width, width // heads)
        self.up = nn.Linear(width, WIDER * width)
        self.down = nn.Linear(WIDER * width, width)

    def initialise(self) -> None:
        """What is added to tokens is 0 to begin with."""
        for own in (self.look, self.up):
            nn.init.orthogonal_(own.weight)
            nn.init.zeros_(own.bias)
        for own in (self.seen, self.down):
            nn.init.zeros_(own.weight)
            nn.init.zeros_(own.bias)

    def forward(self, x: Tensor, there: Tensor | None, asked: int) -> Tensor:
        """Return the first `asked` of the tokens [rows, tokens, width], having looked at all.

        there: bool [rows, tokens], those that are looked at; None: all of them.
        """
        x = x[:, :asked] + self.seen(self.looked(self.before(x), there, asked))
        added: Tensor = self.down(functional.relu(self.up(self.between(x))))
        return x + added

    def looked(self, x: Tensor, there: Tensor | None, asked: int) -> Tensor:
        """What the first tokens take from those that they look at [rows, asked, width]."""
        width, weight, bias = x.shape[2], self.look.weight, self.look.bias
        if asked == x.shape[1]:
            packed, query = self.look(x), None
        else:
            query = functional.linear(x[:, :asked], weight[:width], bias[:width])
            packed = functional.linear(x, weight[width:], bias[width:])
        if x.shape[1] <= MOST_TOKENS and kernels_for(packed[..., :width], width // self.heads):
            apply: Any = Attend.apply
            ours: Tensor = apply(packed, query, there, self.heads)
            return ours
        parts = torch.split(packed, width, dim=2)
        asks = parts[0] if query is None else query
        return attend(asks, parts[-2], parts[-1], there, heads=self.heads)


def attend(
    query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, *, heads: int
) -> Tensor:
    """What every token takes from those that it looks at [rows, asked, width], by torch."""
    if query.is_cuda and len(query) > MOST_ROWS:
        parts = [torch.split(one, MOST_ROWS) for one in (query, key, value)]
        masks = torch.split(there, MOST_ROWS) if there is not None else [None] * len(parts[0])
        pieces = zip(*parts, masks, strict=True)
        return torch.cat([attend(q, k, v, mask, heads=heads) for q, k, v, mask in pieces])
    mask = there[:, None, None] if there is not None else None
    q, k, v = (by_head(one, heads) for one in (query, key, value))
    return functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)


def by_head(x: Tensor, heads: int) -> Tensor:
    """Tokens [rows, tokens, width] as [rows, heads, tokens, each]."""
    rows, tokens, width = x.shape
    return x.view(rows, tokens, heads, width // heads).transpose(1, 2)
