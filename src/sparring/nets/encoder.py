"""Layers in which tokens look at each other: attention, then a perceptron for each of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.nets.layers import orthogonal_

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

    def forward(self, x: Tensor) -> Tensor:
        """Return x centred and scaled, token by token."""
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
        self.before = Norm(width)
        self.look = nn.Linear(width, 3 * width)
        """Queries, keys and values in one product."""
        self.seen = nn.Linear(width, width)
        self.between = Norm(width)
        self.up = nn.Linear(width, WIDER * width)
        self.down = nn.Linear(WIDER * width, width)

    def initialise(self) -> None:
        """What is added to tokens is 0 to begin with."""
        for own in (self.look, self.up):
            orthogonal_(own.weight)
            nn.init.zeros_(own.bias)
        for own in (self.seen, self.down):
            nn.init.zeros_(own.weight)
            nn.init.zeros_(own.bias)

    def forward(self, x: Tensor, mask: Tensor | None, asked: int) -> Tensor:
        """Return the first `asked` of the tokens [rows, tokens, width], having looked at all.

        mask: added to the attention that each of them gets [rows, 1, 1, tokens].
        """
        normed = self.before(x)
        query, key, value = self.queries(normed, asked)
        x = x[:, :asked] + self.seen(attend(query, key, value, mask).transpose(1, 2).flatten(2))
        added: Tensor = self.down(functional.relu(self.up(self.between(x))))
        return x + added

    def queries(self, x: Tensor, asked: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of the first tokens, keys and values of all [rows, heads, tokens, each]."""
        width = x.shape[2]
        if asked == x.shape[1]:
            query, key, value = self.look(x).chunk(3, dim=2)
        else:
            weight, bias = self.look.weight, self.look.bias
            query = functional.linear(x[:, :asked], weight[:width], bias[:width])
            key, value = functional.linear(x, weight[width:], bias[width:]).chunk(2, dim=2)
        return self.split(query), self.split(key), self.split(value)

    def split(self, x: Tensor) -> Tensor:
        """By head [rows, heads, tokens, each]."""
        rows, tokens, width = x.shape
        return x.view(rows, tokens, self.heads, width // self.heads).transpose(1, 2)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """What every token takes from those that it looks at [rows, heads, tokens, each]."""
    if not query.is_cuda or len(query) <= MOST_ROWS:
        return functional.scaled_dot_product_attention(query, key, value, mask)
    parts = [torch.split(one, MOST_ROWS) for one in (query, key, value)]
    masks = torch.split(mask, MOST_ROWS) if mask is not None else [None] * len(parts[0])
    return torch.cat(
        [
            functional.scaled_dot_product_attention(q, k, v, m)
            for q, k, v, m in zip(*parts, masks, strict=True)
        ]
    )
