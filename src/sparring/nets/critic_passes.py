"""Forward and backward of critics with few calls: small batches are bound by what each costs.

Critics of the usual kind on a CPU have passes that are written out, into arrays that stay where
they are; others have those of autograd. A test holds both equal.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from sparring.nets.critics import CRITICS, Critics


class CriticPasses(Protocol):
    """What critics say, and what they learn from it. The gradient lies in `critics.flat.grad`."""

    def ahead(self, numbers: Tensor, action: Tensor | None) -> Tensor:
        """What the targets say; see `Critics.forward`."""

    def forward(self, numbers: Tensor, action: Tensor | None, *, learn: bool) -> Tensor:
        """What the critics say. learn: `backward` follows; else perhaps `action_grad`."""

    def backward(self, grad: Tensor) -> None:
        """Write the gradient of the weights, from that of what was said in the last forward."""

    def action_grad(self, grad: Tensor) -> Tensor:
        """The gradient of the actions, from that of what was said in the last forward."""


class AutogradCritics:
    """Those of any critics, as torch finds them."""

    def __init__(self, critics: Critics) -> None:
        self.critics = critics
        self.said, self.action = torch.zeros(0), torch.zeros(0)

    @torch.no_grad()
    def ahead(self, numbers: Tensor, action: Tensor | None) -> Tensor:
        """Ask the targets."""
        said: Tensor = self.critics(numbers, action, weights=self.critics.target)
        return said

    def forward(self, numbers: Tensor, action: Tensor | None, *, learn: bool) -> Tensor:
        """Ask the critics, and remember how they came to it."""
        weights = None if learn else self.critics.flat.detach()
        if action is not None:
            action = self.action = action.detach().requires_grad_(not learn)
        with torch.enable_grad():  # whatever the caller does not want to be recorded
            self.said = self.critics(numbers, action, weights=weights)
        return self.said.detach()

    def backward(self, grad: Tensor) -> None:
        """Let autograd add to the gradient, which begins at 0."""
        flat = self.critics.flat
        assert flat.grad is not None
        flat.grad.zero_()
        torch.autograd.backward([self.said], [grad.to(self.said.dtype)], inputs=[flat])

    def action_grad(self, grad: Tensor) -> Tensor:
        """Follow the estimates back to the actions."""
        return torch.autograd.grad(self.said, self.action, grad)[0]


class LeanCritics:
    """Those of critics with relu and without norms on a CPU, written out; for one member."""

    def __init__(self, critics: Critics) -> None:
        """Take over critics whose weights, targets and gradients stay where they are."""
        assert critics.flat.grad is not None
        self.critics, self.box = critics, critics.box
        self.layers, self.targets, self.grads = (
            [(split[at], split[at + 1]) for at in range(0, len(split), 2)]
            for split in map(
                critics.split, (critics.flat.detach(), critics.target, critics.flat.grad)
            )
        )
        self.read, self.hidden = torch.zeros(0), list[Tensor]()
        self._buffers: dict[int, tuple[list[Tensor], list[Tensor]]] = {}

    def _room(self, rows: int) -> tuple[list[Tensor], list[Tensor]]:
        """What hidden layers put out and its gradient, kept for the next batch of this size."""
        if rows not in self._buffers:
            widths = self.critics.widths[1:-1]
            out, grad = ([torch.empty(CRITICS, rows, w) for w in widths] for _ in range(2))
            self._buffers[rows] = out, grad
        return self._buffers[rows]

    @torch.no_grad()
    def _pass(
        self, numbers: Tensor, action: Tensor | None, layers: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """From numbers to estimates."""
        x = numbers if action is None else torch.cat((numbers, action), -1)
        self.read = x = x.expand(CRITICS, -1, -1)
        self.hidden, _ = self._room(x.shape[1])
        for (weight, bias), out in zip(layers, self.hidden, strict=False):
            x = torch.baddbmm(bias, x, weight, out=out).relu_()
        weight, bias = layers[-1]
        said = torch.baddbmm(bias, x, weight)
        return said.squeeze(-1) if self.box else said

    def ahead(self, numbers: Tensor, action: Tensor | None) -> Tensor:
        """Ask the targets."""
        return self._pass(numbers, action, self.targets)

    def forward(self, numbers: Tensor, action: Tensor | None, *, learn: bool) -> Tensor:
        """Ask the critics."""
        return self._pass(numbers, action, self.layers)

    @torch.no_grad()
    def backward(self, grad: Tensor) -> None:
        """From estimates down to numbers; every gradient is written once."""
        grad = grad.unsqueeze(-1) if self.box else grad
        for at in range(len(self.layers) - 1, -1, -1):
            below = self.hidden[at - 1] if at else self.read
            weight_grad, bias_grad = self.grads[at]
            torch.bmm(below.transpose(1, 2), grad, out=weight_grad)
            torch.sum(grad, 1, keepdim=True, out=bias_grad)
            if at:
                grad = self._below(at, grad)

    @torch.no_grad()
    def action_grad(self, grad: Tensor) -> Tensor:
        """From estimates down to the actions, past the weights."""
        grad = grad.unsqueeze(-1)
        for at in range(len(self.layers) - 1, 0, -1):
            grad = self._below(at, grad)
        weight = self.layers[0][0][:, -self.box :]
        return torch.bmm(grad, weight.transpose(1, 2)).sum(0)

    def _below(self, at: int, grad: Tensor) -> Tensor:
        """The gradient in front of a layer and its relu."""
        _, grads = self._room(grad.shape[1])
        out = torch.bmm(grad, self.layers[at][0].transpose(1, 2), out=grads[at - 1])
        through: Any = torch.ops.aten.threshold_backward.grad_input
        through(out, self.hidden[at - 1], 0, grad_input=out)
        return out


def critic_passes(critics: Critics) -> CriticPasses:
    """The leanest passes that critics have. Their gradient has to have its place already."""
    plain = critics.activation is torch.relu and not critics.norm and critics.members == 1
    lean = plain and critics.flat.device.type == "cpu"
    return LeanCritics(critics) if lean else AutogradCritics(critics)
