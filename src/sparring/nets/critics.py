"""Q networks of SAC, REDQ and TD3 with their target networks.

All weights of a critic lie in one row of one tensor, so that an optimizer step, a Polyak update and
a norm are one call each. The critics of all members of a population share one batched product per
layer.
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
"""Usual number: targets use the smaller of their estimates."""
ALIGNED = 64
"""Every critic's weights start at a multiple of this many numbers."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "silu": nn.functional.silu,
}


@dataclass(frozen=True)
class CriticTensor:
    """Name and shape of one tensor among the weights of a critic."""

    name: str
    rows: int
    columns: int

    @property
    def size(self) -> int:
        return self.rows * self.columns


class Widen(nn.Module):
    """Converts byte rows to float32 features, in the order of their bytes."""

    divisor: Tensor

    def __init__(self, inputs: Inputs, normalizer: Normalizer | None = None) -> None:
        super().__init__()
        # The method, not the module: the normalizer stays a module of the actor alone.
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
    """Critics for every member. Each reads a row, and the action if actions are continuous."""

    target: Tensor

    def __init__(
        self,
        inputs: Inputs,
        hidden: Sequence[int],
        *,
        activation: str = "relu",
        norm: bool = False,
        members: int = 1,
        count: int = CRITICS,
        normalizer: Normalizer | None = None,
    ) -> None:
        """Initialize critics and targets.

        norm: layer norm before every activation.
        count: of the critics of a member.
        normalizer: the actor's, used by the critics as well.
        """
        super().__init__()
        rules = inputs.rules
        self.box, self.actions, self.norm = rules.box, rules.actions, norm
        self.members, self.count = members, count
        self.widen = Widen(inputs, normalizer)
        self.kind, self.activation = activation, ACTIVATIONS[activation]
        self.widths = (self.widen.width + self.box, *hidden, self.actions or 1)
        self.layout = tensor_layout(self.widths, norm=norm)
        used = sum(tensor.size for tensor in self.layout)
        self._sizes = [*(tensor.size for tensor in self.layout), -used % ALIGNED]
        self.flat = nn.Parameter(torch.zeros(members, count, sum(self._sizes)))
        self.register_buffer("target", self.flat.detach().clone())
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialize weights and biases like `nn.Linear`, and copy them to the targets."""
        self.flat.zero_()
        for tensor, weights in zip(self.layout, self.split(self.flat), strict=True):
            layer, kind = tensor.name.split(".")
            bound = 1 / math.sqrt(self.widths[int(layer)])
            if kind in ("weight", "bias"):
                weights.uniform_(-bound, bound)
            elif kind == "gain":
                weights.fill_(1.0)
        self.target.copy_(self.flat)

    def split(self, flat: Tensor) -> list[Tensor]:
        """Return views of the tensors of all critics, [members * critics, rows, columns] each."""
        parts = torch.split_with_sizes(flat.flatten(0, 1), self._sizes, -1)
        return [
            part.view(-1, tensor.rows, tensor.columns)
            for tensor, part in zip(self.layout, parts, strict=False)  # the last part is padding
        ]

    def named_tensors(self, flat: Tensor | None = None) -> dict[str, Tensor]:
        """Return views of `flat`, or of the weights, by name [members, critics, rows, columns]."""
        split = self.split(self.flat.detach() if flat is None else flat)
        shape = (self.members, self.count)
        return {
            tensor.name: part.view(*shape, *part.shape[1:])
            for tensor, part in zip(self.layout, split, strict=True)
        }

    def forward(
        self, numbers: Tensor, action: Tensor | None = None, *, weights: Tensor | None = None
    ) -> Tensor:
        """Return the Q values of all critics.

        numbers: output of `widen` [batch, features], or [members, batch, features]; action alike.
        weights: `target`, or `flat.detach()` for no gradient; left out, the critics' weights.
        Returns [critics, batch] for continuous actions, else [critics, batch, actions]; with a
        leading members dimension if `numbers` has one.
        """
        x = numbers if action is None else torch.cat((numbers, action), -1)
        lead = x.shape[:-2]
        x = x.unsqueeze(-3).expand(*lead, self.count, -1, -1)
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
        x = x.view(*lead, self.count, *x.shape[1:]) if lead else x
        return x if self.actions else x.squeeze(-1)

    @torch.no_grad()
    def target_q(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """Return the Q values of the target networks."""
        q: Tensor = self(numbers, action, weights=self.target)
        return q

    def forward_frozen(self, numbers: Tensor, action: Tensor | None = None) -> Tensor:
        """Return the Q values without a gradient for the critics' weights."""
        q: Tensor = self(numbers, action, weights=self.flat.detach())
        return q

    @torch.no_grad()
    def update_targets(self, tau: float | Tensor) -> None:
        """Move the target networks toward the critics (Polyak averaging)."""
        self.target.lerp_(self.flat, tau)


def tensor_layout(widths: Sequence[int], *, norm: bool) -> list[CriticTensor]:
    """Return the tensors of a critic in the order of a forward pass."""
    layout = []
    for layer, (width, next_width) in enumerate(pairwise(widths)):
        layout += [
            CriticTensor(f"{layer}.weight", width, next_width),
            CriticTensor(f"{layer}.bias", 1, next_width),
        ]
        if norm and layer < len(widths) - 2:
            layout += [CriticTensor(f"{layer}.{name}", 1, next_width) for name in ("gain", "shift")]
    return layout
