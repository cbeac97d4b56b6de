"""Optimizer steps by autograd and torch's Adam: the reference, for every network and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sparring.learn.backends import Loss, diverged
from sparring.learn.learner import Snapshot
from sparring.learn.minibatches import Metrics, Minibatch
from sparring.learn.process_group import ProcessGroup, average
from sparring.nets.net import Net

OPTIMIZER = "optimizer"
"""Name of the optimizer state in snapshots; with several roles, ".ROLE" is appended."""


class TorchBackend:
    """Autograd and Adam of one network."""

    by_place = False

    def __init__(self, net: Net, *, eps: float, metric_names: Sequence[str] = ()) -> None:
        """Optimize a network. eps: of Adam. metric_names: see `Backend`."""
        self.net, self.metric_names = net, metric_names
        self.optimizer = torch.optim.Adam(net.parameters(), eps=eps, fused=True)

    def step(
        self, minibatch: Minibatch, hparams: Any, loss: Loss, process_group: ProcessGroup
    ) -> Metrics:
        return self.step_on(minibatch.rows(), hparams, loss, process_group)

    def step_on(
        self, rows: Mapping[str, Tensor], hparams: Any, loss_of: Loss, process_group: ProcessGroup
    ) -> Metrics:
        for group in self.optimizer.param_groups:
            group["lr"] = hparams.lr
        self.optimizer.zero_grad(set_to_none=True)
        if process_group.size == 1:
            loss, metrics = loss_of(rows, hparams)
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            loss, metrics = self._averaged(rows, hparams, loss_of, process_group)
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), hparams.max_grad_norm)
        if not torch.isfinite(norm + loss.detach()):
            raise diverged(loss.item(), float(norm), hparams.lr)
        self.optimizer.step()
        return {**{name: one.detach() for name, one in metrics.items()}, "grad_norm": norm}

    def _averaged(
        self, rows: Mapping[str, Tensor], hparams: Any, loss_of: Loss, process_group: ProcessGroup
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        parameters = list(self.net.parameters())
        losses = torch.zeros(len(self.metric_names) + 1, device=parameters[0].device)
        if len(rows["obs"]):
            loss, metrics = loss_of(rows, hparams)
            loss.backward()  # type: ignore[no-untyped-call]
            values = [loss, *(metrics[name] for name in self.metric_names)]
            losses += torch.stack([one.detach().float() for one in values])
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        average(
            [p.grad for p in parameters if p.grad is not None],
            losses,
            len(rows["obs"]),
            process_group,
        )
        return losses[0], dict(zip(self.metric_names, losses[1:], strict=True))

    def tensors(self) -> dict[str, Tensor]:
        return {
            f"{index}.{name}": value.detach().cpu().clone()
            for index, state in self.optimizer.state_dict()["state"].items()
            for name, value in state.items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state_of(tensors), "param_groups": groups})


def state_of(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Return Adam's state by index of the parameter."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def optimizer_state(snapshot: Snapshot, name: str = OPTIMIZER) -> dict[int, dict[str, Tensor]]:
    """Return Adam's state in a snapshot by index of the parameter."""
    return state_of(snapshot.tensors.get(name, {}))
