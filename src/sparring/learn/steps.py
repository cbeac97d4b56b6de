"""What makes an optimiser step: here by torch, the readable way, for every network and device.

`learn.native_steps` is the same for perceptrons on a CPU in native code, held equal by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, SupportsFloat

import torch
from torch import Tensor, nn

from sparring.learn.learner import DivergedError
from sparring.learn.together import Together
from sparring.learn.transforms import RowTransform
from sparring.nets.net import Net
from sparring.schedule import rounded

PLACE = "place"
"""Of every sample: where its "obs" and "mask" lie, if they were left where they were played."""
Shown = Mapping[str, SupportsFloat]
"""What curves show of a minibatch."""
Loss = Callable[[Mapping[str, Tensor], Any], tuple[Tensor, Mapping[str, Tensor]]]
"""What is descended on, and what curves show of it, of rows and knobs."""


@dataclass(frozen=True)
class Picked(Mapping[str, Tensor]):
    """Rows of some samples, each array copied when somebody looks at it."""

    data: Mapping[str, Tensor]
    """What is known of every sample."""
    picked: Tensor
    """Which of them."""

    def __getitem__(self, name: str) -> Tensor:
        """What is called so, of these samples."""
        by_place = PLACE in self.data and name in ("obs", "mask")
        return self.data[name][self.data[PLACE][self.picked] if by_place else self.picked]

    def __iter__(self) -> Iterator[str]:
        """Names."""
        return (name for name in self.data if name != PLACE)

    def __len__(self) -> int:
        """How many names there are."""
        return len(self.data) - (PLACE in self.data)


@dataclass(frozen=True)
class Minibatch:
    """Some of the samples of an update."""

    data: Mapping[str, Tensor]
    """What is known of every sample."""
    picked: Tensor
    """Which of them."""
    own: Mapping[str, Tensor]
    """Rows of terms that bring their own, see `learn.terms.Dealt`."""
    turning: Sequence[RowTransform] = ()
    """What is done to its rows."""

    def __len__(self) -> int:
        """How many."""
        return len(self.picked)

    def rows(self) -> dict[str, Tensor]:
        """Copy what is known of them."""
        rows = dict(Picked(self.data, self.picked))
        for transform in self.turning:
            transform.turn(rows)
        return {**rows, **self.own}


class Steps(Protocol):
    """Steps of one network, and what its optimiser remembers."""

    by_place: bool
    """Whether rows are read where they were played; else they are copied together first."""
    shown: Sequence[str]
    """What a loss shows, where others may have rows when this learner has none."""

    def take(self, minibatch: Minibatch, knobs: Any, loss: Loss, together: Together) -> Shown:
        """One optimiser step. A loss that is not finite is never stepped on."""

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's memory of every parameter."""

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with Adam's memory of another moment."""


class TorchSteps:
    """Autograd and torch's Adam."""

    by_place = False

    def __init__(self, net: Net, *, eps: float, shown: Sequence[str] = ()) -> None:
        """Improve a network. eps: Adam's. shown: what a loss shows, see `Descent.shown`."""
        self.net, self.shown = net, shown
        self.optimiser = torch.optim.Adam(net.parameters(), eps=eps, fused=True)

    def take(self, minibatch: Minibatch, knobs: Any, loss: Loss, together: Together) -> Shown:
        """One optimiser step."""
        return self.step(minibatch.rows(), knobs, loss, together)

    def step(
        self, rows: Mapping[str, Tensor], knobs: Any, loss_of: Loss, together: Together
    ) -> Shown:
        """One optimiser step on rows."""
        for group in self.optimiser.param_groups:
            group["lr"] = knobs.lr
        self.optimiser.zero_grad(set_to_none=True)
        shown: Mapping[str, Tensor]
        if together.size == 1:
            loss, shown = loss_of(rows, knobs)
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            loss, shown = self._summed(rows, knobs, loss_of, together)
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), knobs.max_grad_norm)
        if not torch.isfinite(norm + loss.detach()):
            raise diverged(loss.item(), float(norm), knobs.lr)
        self.optimiser.step()
        return {**{name: one.detach() for name, one in shown.items()}, "grad_norm": norm}

    def _summed(
        self, rows: Mapping[str, Tensor], knobs: Any, loss_of: Loss, together: Together
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Loss and gradient of everybody's rows."""
        count, parameters = len(rows["obs"]), list(self.net.parameters())
        told = torch.zeros(len(self.shown) + 1, device=parameters[0].device)
        if count:
            loss, shown = loss_of(rows, knobs)
            loss.backward()  # type: ignore[no-untyped-call]
            found = [loss, *(shown[name] for name in self.shown)]
            told += torch.stack([one.detach().float() for one in found])
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        grads, told = mean_of_all(grads, told, count, together)
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad
        return told[0], dict(zip(self.shown, told[1:], strict=True))

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's memory of every parameter."""
        return {
            f"{index}.{name}": value.detach().cpu().clone()
            for index, kept in self.optimiser.state_dict()["state"].items()
            for name, value in kept.items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with Adam's memory of another moment."""
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state_of(tensors), "param_groups": groups})


def mean_of_all(
    grads: Sequence[Tensor], told: Tensor, rows: int, together: Together
) -> tuple[list[Tensor], Tensor]:
    """Gradients and losses over everybody's rows: means that count as much as they have rows.

    All of it goes as one flat tensor, so that a step waits for the others once.
    """
    flat = torch.cat([*(grad.reshape(-1) for grad in grads), told, told.new_ones(1)]) * rows
    together.sum_(flat)
    flat /= flat[-1].clone()
    sizes = [grad.numel() for grad in grads]
    *parts, told, _ = torch.split(flat, [*sizes, len(told), 1])
    return [part.view_as(grad) for part, grad in zip(parts, grads, strict=True)], told


def diverged(loss: float, norm: float, lr: float) -> DivergedError:
    """What is said instead of a step."""
    return DivergedError(
        f"the loss is {loss} and the gradient norm {norm} with a learning rate of {rounded(lr)}"
    )


def state_of(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Adam's memory of every parameter, in the order of the parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state
