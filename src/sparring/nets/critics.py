"""Critics: what an action is worth, asked of two networks at once.

All weights of a critic lie in one row of one tensor, so that an optimizer step, a target that
follows and a norm are one call each. The two critics, and those of all members of a population,
are one batched product per layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from sparring.nets.inputs import Inputs
from sparring.nets.layers import Normalizer

CRITICS = 2
"""The smaller of their estimates is believed."""
ALIGNED = 64
"""Every critic's weights begin at a multiple of so many numbers."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "silu": nn.functional.silu,
}


@dataclass(frozen=True)
class Piece:
    """A matrix or a vector among the weights of a critic."""

    name: str
    rows: int
    columns: int

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return self.rows * self.columns


class Widen(nn.Module):
    """Byte rows as numbers, in the order in which their bytes lie."""

    divisor: Tensor

    def __init__(self, inputs: Inputs, normalizer: Normalizer | None = None) -> None:
        """normalizer: the actor's, if there is one; it stays the actor's."""
        super().__init__()
        self.normalize = normalizer.forward if normalizer is not None else None
        self.parts, _, divisors = inputs.byte_ranges()
        self.width = len(divisors)
        self.divides = any(divisor != 1 for divisor in divisors)
        self.register_buffer("divisor", torch.tensor(divisors), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Return [..., numbers] for byte rows [..., row_bytes]."""
        parts = [self._read(rows[..., a:b], dtype) for dtype, a, b in self.parts]
        numbers = torch.cat(parts, -1) if len(parts) > 1 else parts[0]
        numbers = numbers / self.divisor if self.divides else numbers
        return self.normalize(numbers) if self.normalize else numbers

    def _read(self, part: Tensor, dtype: torch.dtype) -> Tensor:
        return (part if dtype == torch.uint8 else part.contiguous().view(dtype)).float()


class Critics(nn.Module):
    """Two critics for every member. Each reads a row, and an action where actions are numbers."""

    target: Tensor

    def __init__(
        self,
        inputs: Inputs,
        hidden: Sequence[int],
        *,
        activation: str = "relu",
        norm: bool = False,
        members: int = 1,
        normalizer: Normalizer | None = None,
    ) -> None:
        """Make fresh critics; their targets are copies.

        norm: layer norm in front of every activation.
        normalizer: what the actor's observations are normalized by.
        """
        super().__init__()
        rules = inputs.rules
        self.box, self.actions, self.norm, self.members = rules.box, rules.actions, norm, members
        self.widen = Widen(inputs, normalizer)
        self.kind, self.activation = activation, ACTIVATIONS[activation]
        self.widths = (self.widen.width + self.box, *hidden, self.actions or 1)
        self.pieces = pieces_of(self.widths, norm=norm)
        used = sum(piece.size for piece in self.pieces)
        self._sizes = [*(piece.size for piece in self.pieces), -used % ALIGNED]
        self.flat = nn.Parameter(torch.zeros(members, CRITICS, sum(self._sizes)))
        self.register_buffer("target", self.flat.detach().clone())
        self.begin()

    @torch.no_grad()
    def begin(self) -> None:
        """Draw weights as torch's linear layers begin, biases included: no two critics are alike.

        The targets are copies.
        """
        self.flat.zero_()
        for piece, weights in zip(self.pieces, self.split(self.flat), strict=True):
            layer, kind = piece.name.split(".")
            bound = 1 / math.sqrt(self.widths[int(layer)])
            if kind in ("weight", "bias"):
                weights.uniform_(-bound, bound)
            elif kind == "gain":
                weights.fill_(1.0)
        self.target.copy_(self.flat)

    def split(self, flat: Tensor) -> list[Tensor]:
        """The pieces of all critics, [members * 2, rows, columns] each."""
        parts = torch.split_with_sizes(flat.flatten(0, 1), self._sizes, -1)
        return [
            part.view(-1, piece.rows, piece.columns)
            for piece, part in zip(self.pieces, parts, strict=False)  # the last one is empty space
        ]

    def named_pieces(self, flat: Tensor | None = None) -> dict[str, Tensor]:
        """Views of all weights by name, [members, 2, rows, columns]; or of the targets' `flat`."""
        split = self.split(self.flat.detach() if flat is None else flat)
        shape = (self.members, CRITICS)
        return {
            piece.name: part.view(*shape, *part.shape[1:])
            for piece, part in zip(self.pieces, split, strict=True)
        }

    def forward(
        self, numbers: Tensor, action: Tensor | None = None, *, weights: Tensor | None = None
    ) -> Tensor:
        """Return what both critics say of rows that were widened.

        numbers: [batch, numbers], or [members, batch, numbers]; action likewise.
        weights: others than the critics' own: `target`, or `flat.detach()` to learn nothing.
        Returns [2, batch] of actions that are numbers, else [2, batch, actions]; with members in
        front if `numbers` has them.
        """
        x = numbers if action is None else torch.cat((numbers, action), -1)
        lead = x.shape[:-2]
        x = x.unsqueeze(-3).expand(*lead, CRITICS, -1, -1)
        x = x.flatten(0, 1) if lead else x
        split = iter(self.split(self.flat if weights is None else weights))
        for _ in self.widths[1:-1]:
            weight, bias = next(split), next(split)
            x = torch.baddbmm(bias, x, weight)
            if self.norm:
                gain, shift = next(split), next(split)
                x = torch.addcmul(shift, nn.functional.layer_norm(x, x.shape[-1:]), gain)
            x = self.activation(x)
        weight, bias = next(split), next(split)
        x = torch.baddbmm(bias, x, weight)
        x = x.view(*lead, CRITICS, *x.shape[1:]) if lead else x
        return x if self.actions else x.squeeze(-1)

    @torch.no_grad()
    def target_q(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """What the target critics say."""
        said: Tensor = self(numbers, action, weights=self.target)
        return said

    def frozen(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """What the critics say, whose own weights learn nothing from it."""
        said: Tensor = self(numbers, action, weights=self.flat.detach())
        return said

    @torch.no_grad()
    def follow(self, tau: float | Tensor) -> None:
        """Move the targets toward the critics by a share of the way."""
        self.target.lerp_(self.flat, tau)


def pieces_of(widths: Sequence[int], *, norm: bool) -> list[Piece]:
    """What a critic is made of, in the order in which a pass needs it."""
    pieces = []
    for layer, (width, following) in enumerate(pairwise(widths)):
        pieces += [
            Piece(f"{layer}.weight", width, following),
            Piece(f"{layer}.bias", 1, following),
        ]
        if norm and layer < len(widths) - 2:
            pieces += [Piece(f"{layer}.gain", 1, following), Piece(f"{layer}.shift", 1, following)]
    return pieces
