"""Adam as its formula says: torch's, that over packed weights, and native code's are this one.

That of GPUs is held equal to torch's in tests/cuda/test_fused_update.py.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from sparring import _native
from sparring.nets.run.native import BETAS, EPS, PackedAdam, PackedParameters

LR, MOST, STEPS = 3e-3, 0.5, 20


class ByHand:
    """One weight after the other would do the same: there is nothing between them but the norm."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight, self.eps, self.steps = weight.double(), eps, 0
        self.mean, self.square = torch.zeros_like(self.weight), torch.zeros_like(self.weight)

    def step(self, grad: Tensor) -> None:
        grad = grad.double()
        grad = grad * min(1.0, MOST / (math.sqrt(float((grad**2).sum())) + 1e-6))
        self.steps += 1
        of_mean, of_square = BETAS
        self.mean = of_mean * self.mean + (1 - of_mean) * grad
        self.square = of_square * self.square + (1 - of_square) * grad**2
        mean = self.mean / (1 - of_mean**self.steps)
        square = self.square / (1 - of_square**self.steps)
        self.weight = self.weight - LR * mean / (square.sqrt() + self.eps)


@pytest.mark.parametrize("eps", [EPS, 1e-5])
@pytest.mark.parametrize("how", ["torch", "packed", "native"])
def test_steps_are_those_of_the_formula(how: str, eps: float) -> None:
    drawn = torch.Generator().manual_seed(1)
    layer = nn.Linear(7, 5)
    theirs = torch.optim.Adam(layer.parameters(), lr=LR, betas=BETAS, eps=eps, fused=True)
    packed = PackedParameters(layer)
    ours = PackedAdam(packed, eps=eps, native=_native.PPOUpdate(1) if how == "native" else None)
    ours.lr = LR
    wanted = ByHand(packed.weight.clone(), eps)
    for number in range(STEPS):
        grad = torch.randn(packed.grad.shape, generator=drawn) * (0.01 if number % 3 else 10)
        packed.grad.zero_()
        for view, given in zip(
            packed.views(packed.grad).values(), packed.views(grad).values(), strict=True
        ):
            view.copy_(given)
        wanted.step(packed.grad)
        if how == "torch":
            nn.utils.clip_grad_norm_(layer.parameters(), MOST)
            theirs.step()
        else:
            ours.clip_and_step(MOST)
        torch.testing.assert_close(packed.weight.double(), wanted.weight, atol=1e-6, rtol=1e-5)
