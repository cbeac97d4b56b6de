"""Training with few calls: small batches are bound by what every call costs, not by arithmetic.

The weights of a network lie in one array and their gradients in another, so that clipping, Adam
and a target network that follows are one call each. Perceptrons on a CPU have passes that are
written out (`LeanPasses`), other networks those of autograd. A test holds both equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from sparring import _native
from sparring.nets.mlp import Perceptron
from sparring.nets.net import POLICY, VALUE, Heads, head_width

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

    def joined(self, array: Tensor, names: list[str]) -> Tensor:
        """Parameters that lie side by side as one stretch."""
        first, last = self._places[names[0]][0][0], self._places[names[-1]][0][1]
        return array[first:last]


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


class Passes(Protocol):
    """Forward and backward of one network."""

    def forward(self, *obs: Tensor) -> list[Heads]:
        """What the heads say about several batches of rows; good until the next call."""

    def backward(self, policy_grad: Tensor, value_grad: Tensor) -> None:
        """Fill the gradient from that of the heads of the first batch of the last forward."""


class AutogradPasses:
    """Those of any network, as torch finds them."""

    def __init__(self, packed: Packed, run: Callable[[Tensor], Heads]) -> None:
        """run: the network, perhaps in other numbers or compiled."""
        self.packed, self.run, self.heads = packed, run, Heads()

    def forward(self, *obs: Tensor) -> list[Heads]:
        """One forward for each batch; only the first is learned from."""
        with torch.enable_grad():  # whatever the caller does not want to be recorded
            self.heads = self.run(obs[0])
        with torch.no_grad():
            said = [{name: head.detach() for name, head in self.heads.items()}]
            return said + [self.run(rows) for rows in obs[1:]]

    def backward(self, policy_grad: Tensor, value_grad: Tensor) -> None:
        """Let autograd add to the gradient, which begins at 0."""
        self.packed.grad.zero_()
        heads = [self.heads[POLICY], self.heads[VALUE]]
        grads = [policy_grad.to(heads[0].dtype), value_grad.to(heads[1].dtype)]
        torch.autograd.backward(heads, grads)
        self.heads = {}


class LeanPasses:
    """Those of a perceptron on a CPU, written out: the same sums, a third of the calls."""

    def __init__(self, packed: Packed) -> None:
        net = packed.net
        assert isinstance(net, Perceptron)
        self.net, self.hidden = net, net.config.hidden
        self.policy_width = head_width(net.inputs.rules)
        self.layers, self.grads = (self._lay_out(packed, x) for x in (packed.weight, packed.grad))
        self.out: list[Tensor] = []
        self.obs: tuple[Tensor, ...] = ()
        self._buffers = [torch.empty(0, 1)]

    def _lay_out(self, packed: Packed, array: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of every layer; those of the heads are one."""
        views = packed.views(array)
        names = ["first", *(f"towers.0.{2 * at}" for at, _ in enumerate(pairwise(self.hidden)))]
        heads = [f"{POLICY}_head", f"{VALUE}_head"]
        weight, bias = (
            packed.joined(array, [f"{name}.{part}" for name in heads])
            for part in ("weight", "bias")
        )
        layers = [(views[f"{name}.weight"], views[f"{name}.bias"]) for name in names]
        return [*layers, (weight.view(-1, self.hidden[-1]), bias)]

    def _room(self, rows: int) -> list[Tensor]:
        """What layers put out, kept for the next batch that is not larger."""
        if rows > len(self._buffers[-1]):
            widths = (*self.hidden, self.policy_width + 1)
            self._buffers = [torch.empty(rows, width) for width in widths]
        return [buffer[:rows] for buffer in self._buffers]

    @torch.no_grad()
    def forward(self, *obs: Tensor) -> list[Heads]:
        """All batches in one pass."""
        sizes = [len(rows) for rows in obs]
        self.obs, self.out = obs, self._room(sum(sizes))
        weight, bias = (part.numpy() for part in self.layers[0])
        for rows, out in zip(obs, torch.split(self.out[0], sizes), strict=True):
            self.net.first.native.forward(rows.numpy(), weight, bias, out.numpy())
        hidden = torch.relu_(self.out[0])
        for (matrix, shift), out in zip(self.layers[1:-1], self.out[1:-1], strict=True):
            hidden = torch.relu_(torch.addmm(shift, hidden, matrix.t(), out=out))
        matrix, shift = self.layers[-1]
        torch.addmm(shift, hidden, matrix.t(), out=self.out[-1])
        return [
            {POLICY: said[:, :-1], VALUE: said[:, -1]} for said in torch.split(self.out[-1], sizes)
        ]

    @torch.no_grad()
    def backward(self, policy_grad: Tensor, value_grad: Tensor) -> None:
        """From the heads down to the bytes; every gradient is written once."""
        rows = len(policy_grad)
        grad = torch.cat([policy_grad, value_grad.unsqueeze(-1)], dim=-1)
        for at in range(len(self.layers) - 1, 0, -1):
            below = self.out[at - 1][:rows]
            weight_grad, bias_grad = self.grads[at]
            torch.mm(grad.t(), below, out=weight_grad)
            torch.sum(grad, 0, out=bias_grad)
            grad = grad @ self.layers[at][0]
            backward: Any = torch.ops.aten.threshold_backward.grad_input
            backward(grad, below, 0, grad_input=grad)
        weight_grad, bias_grad = self.grads[0]
        weight_grad.zero_()
        bias_grad.zero_()
        self.net.first.native.backward(
            self.obs[0].numpy(), grad.numpy(), weight_grad.numpy(), bias_grad.numpy()
        )


def is_lean(packed: Packed) -> bool:
    """Whether a network has passes that are written out."""
    net = packed.net
    if not isinstance(net, Perceptron) or packed.weight.device.type != "cpu":
        return False
    config, one_spread = net.config, net.box and net.config.spread == "shared"
    usual = config.shared and config.sparse and config.activation == "relu"
    return bool(
        usual
        and not (config.norm or config.normalise or one_spread or net.own_layers)
        and list(net.heads) == [POLICY, VALUE]
    )


def passes_of(packed: Packed, run: Callable[[Tensor], Heads]) -> Passes:
    """The leanest passes that a network has."""
    return LeanPasses(packed) if is_lean(packed) else AutogradPasses(packed, run)
