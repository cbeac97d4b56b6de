"""Training with few calls: small batches are bound by what every call costs, not by arithmetic.

The weights of a network lie in one array and their gradients in another, so that clipping, Adam
and a target network that follows are one call each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from sparring import _native

ALIGNED = 16
"""Matrices begin at multiples of so many numbers."""
BETAS, EPS = (0.9, 0.999), 1e-8
TIDY_EVERY, TIDY_BELOW = 128, 1e-30
"""So often Adam forgets moments that small. Of weights that get no gradient any more they shrink
without end, and numbers below 1e-38 cost a CPU tenfold; beside EPS both are nothing."""


class Packed:
    """A network whose parameters are views of one array. It must not be moved any more."""

    def __init__(self, net: nn.Module) -> None:
        """Take over a network, or anything else that learns, where it is."""
        self.net = net
        parameters = dict(net.named_parameters())
        places, size = {}, 0
        # Heads last and side by side: one product gives all of them.
        for name in sorted(parameters, key=lambda n: (n.endswith("_head.bias"), "_head." in n)):
            size = size if "_head." in name else -(-size // ALIGNED) * ALIGNED
            places[name] = (size, size + parameters[name].numel())
            size = places[name][1]
        device = next(iter(parameters.values())).device
        self.weight = torch.zeros(size, device=device)
        self.grad = torch.zeros(size, device=device)
        self._places = {name: (places[name], tuple(p.shape)) for name, p in parameters.items()}
        for name, view in self.views(self.weight).items():
            view.copy_(parameters[name].detach())
            parameters[name].data = view
        for name, view in self.views(self.grad).items():
            parameters[name].grad = view

    @property
    def places(self) -> dict[str, int]:
        """Where every parameter begins."""
        return {name: first for name, ((first, _), _) in self._places.items()}

    def views(self, array: Tensor) -> dict[str, Tensor]:
        """An array of this layout by parameter, in the network's own order."""
        return {
            name: array[first:last].view(shape)
            for name, ((first, last), shape) in self._places.items()
        }


class PackedAdam:
    """Adam over all weights in one call; saved and loaded as torch's, by parameter."""

    def __init__(
        self,
        packed: Packed,
        *,
        eps: float = EPS,
        native: _native.Updating | None = None,
        tell: Callable[[], None] | None = None,
    ) -> None:
        """native: computes it, on a CPU; else torch does. tell: called when weights changed."""
        self.packed, self.lr, self.eps, self.native, self.tell = packed, 0.0, eps, native, tell
        self.exp_avg, self.exp_avg_sq = (torch.zeros_like(packed.weight) for _ in range(2))
        self.steps = torch.zeros((), device=packed.weight.device)
        self._arrays: dict[str, npt.NDArray[np.float32]] = {}
        if native is not None:
            held = (packed.grad, packed.weight, self.exp_avg, self.exp_avg_sq)
            names = ("grad", "weight", "mean", "square")
            self._arrays = {n: x.numpy() for n, x in zip(names, held, strict=True)}
            self._steps = self.steps.numpy()

    def descend(self, most: float) -> float:
        """Follow the gradient, shortened to a norm of at most `most`; return what the norm was.

        A norm that is not finite changes nothing.
        most: 0 is any.
        """
        if self.native is not None:
            norm = self._descend_natively(most or math.inf)
        else:
            norm = float(self.clip(most) if most else torch.linalg.vector_norm(self.packed.grad))
            if math.isfinite(norm):
                self.step()
        if self.tell:
            self.tell()
        return norm

    def _descend_natively(self, most: float) -> float:
        assert self.native is not None
        norm = self.native.adam(
            **self._arrays,
            step=int(self._steps) + 1,
            lr=self.lr,
            eps=self.eps,
            max_norm=most,
        )
        self._steps += math.isfinite(norm)
        return norm

    def clip(self, most: float) -> Tensor:
        """Shorten the gradient to a norm of at most this; return what the norm was."""
        norm: Tensor = torch.linalg.vector_norm(self.packed.grad)
        self.packed.grad.mul_((most / (norm + 1e-6)).clamp_(max=1.0))
        return norm

    @torch.no_grad()
    def step(self) -> None:
        """Follow the gradient."""
        packed = self.packed
        adam(
            [packed.weight],
            [packed.grad],
            [self.exp_avg],
            [self.exp_avg_sq],
            [],
            [self.steps],
            fused=True,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=self.lr,
            weight_decay=0.0,
            eps=self.eps,
            maximize=False,
        )
        if packed.weight.device.type == "cpu" and int(self.steps) % TIDY_EVERY == 0:
            for moment in (self.exp_avg, self.exp_avg_sq):
                moment.copy_(torch.hardshrink(moment, TIDY_BELOW))

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's memory of every parameter; nothing before the first step."""
        if not self.steps:
            return {}
        found: dict[str, Tensor] = {}
        views = [self.packed.views(array).values() for array in (self.exp_avg, self.exp_avg_sq)]
        for index, (first, second) in enumerate(zip(*views, strict=True)):
            kept = {"step": self.steps, "exp_avg": first, "exp_avg_sq": second}
            found |= {f"{index}.{name}": value.cpu().clone() for name, value in kept.items()}
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with `tensors` of another moment."""
        for name, array in (("exp_avg", self.exp_avg), ("exp_avg_sq", self.exp_avg_sq)):
            array.zero_()
            for index, view in enumerate(self.packed.views(array).values()):
                if tensors:
                    view.copy_(tensors[f"{index}.{name}"])
        self.steps.fill_(float(tensors["0.step"]) if tensors else 0.0)
