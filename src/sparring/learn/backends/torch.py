"""Optimizer steps by autograd and torch's Adam: the reference, for every network and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sparring.learn.backends import Loss, diverged
from sparring.learn.learner import Snapshot
from sparring.learn.minibatches import Minibatch, Shown
from sparring.learn.together import Together, average
from sparring.nets.net import Net

OPTIMIZER = "optimizer"
"""What snapshots call the state of an optimizer; of several, with a role behind it."""


class TorchBackend:
    """Steps of one network."""

    by_place = False

    def __init__(self, net: Net, *, eps: float, shown: Sequence[str] = ()) -> None:
        """Improve a network. eps: Adam's. shown: what a loss shows, see `Backend.shown`."""
        self.net, self.shown = net, shown
        self.optimizer = torch.optim.Adam(net.parameters(), eps=eps, fused=True)

    def step(self, minibatch: Minibatch, hparams: Any, loss: Loss, together: Together) -> Shown:
        return self.step_on(minibatch.rows(), hparams, loss, together)

    def step_on(
        self, rows: Mapping[str, Tensor], hparams: Any, loss_of: Loss, together: Together
    ) -> Shown:
        for group in self.optimizer.param_groups:
            group["lr"] = hparams.lr
        self.optimizer.zero_grad(set_to_none=True)
        if together.size == 1:
            loss, shown = loss_of(rows, hparams)
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            loss, shown = self._averaged(rows, hparams, loss_of, together)
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), hparams.max_grad_norm)
        if not torch.isfinite(norm + loss.detach()):
            raise diverged(loss.item(), float(norm), hparams.lr)
        self.optimizer.step()
        return {**{name: one.detach() for name, one in shown.items()}, "grad_norm": norm}

    def _averaged(
        self, rows: Mapping[str, Tensor], hparams: Any, loss_of: Loss, together: Together
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        parameters = list(self.net.parameters())
        losses = torch.zeros(len(self.shown) + 1, device=parameters[0].device)
        if len(rows["obs"]):
            loss, shown = loss_of(rows, hparams)
            loss.backward()  # type: ignore[no-untyped-call]
            found = [loss, *(shown[name] for name in self.shown)]
            losses += torch.stack([one.detach().float() for one in found])
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        average(
            [p.grad for p in parameters if p.grad is not None], losses, len(rows["obs"]), together
        )
        return losses[0], dict(zip(self.shown, losses[1:], strict=True))

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's state of every parameter."""
        return {
            f"{index}.{name}": value.detach().cpu().clone()
            for index, kept in self.optimizer.state_dict()["state"].items()
            for name, value in kept.items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with Adam's state of another moment."""
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state_of(tensors), "param_groups": groups})


def state_of(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Adam's state of every parameter, in the order of the parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def optimizer_state(snapshot: Snapshot, name: str = OPTIMIZER) -> dict[int, dict[str, Tensor]]:
    """Adam's state of every parameter, as a snapshot has it."""
    return state_of(snapshot.tensors.get(name, {}))
