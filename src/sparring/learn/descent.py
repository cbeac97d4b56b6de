"""How one network is improved: its optimiser, and passes over samples in shuffled minibatches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sparring.config import DQNConfig, PPOConfig
from sparring.learn.hindsight import Examples
from sparring.learn.learner import DivergedError
from sparring.learn.together import ALONE, Together
from sparring.nets.net import Net
from sparring.schedule import Moment


class Rates(Protocol):
    """What all knobs have."""

    @property
    def lr(self) -> float: ...
    @property
    def max_grad_norm(self) -> float: ...


K = TypeVar("K", bound=Rates)
"""The knobs of a kind: the numbers that schedules may change, as they are in one update."""
Shown = dict[str, Tensor]
"""What curves show of a minibatch."""


class Descent:
    """Owns a network's optimiser."""

    together: Together = ALONE
    """With whom every step is made."""
    shown: Sequence[str] = ()
    """What a loss shows, where others may have rows when this learner has none."""

    def __init__(self, net: Net, config: PPOConfig | DQNConfig, *, eps: float) -> None:
        """Make it. eps: Adam's."""
        self.net, self.epochs, self.minibatch = net, config.epochs, config.minibatch
        lr = config.lr.at(Moment(0, 0.0))
        self.optimiser = torch.optim.Adam(net.parameters(), lr=lr, eps=eps, fused=True)

    def passes(
        self,
        data: Mapping[str, Tensor],
        knobs: K,
        order: np.random.Generator,
        *,
        loss: Callable[[Mapping[str, Tensor], K], tuple[Tensor, Shown]],
        far_enough: Callable[[Sequence[Shown], K], bool],
        before: Callable[[int, int], Mapping[str, Tensor]] | None = None,
        examples: Examples | None = None,
    ) -> list[Shown]:
        """Go over the samples; return what curves show of every minibatch.

        loss: what is descended on, and what curves show of it.
        far_enough: whether to stop after an epoch.
        before: what else an epoch knows of every sample, by their count and its number.
        examples: what minibatches have besides.
        """
        for group in self.optimiser.param_groups:
            group["lr"] = knobs.lr
        logged: list[Shown] = []
        samples = len(data["obs"])
        for number in range(self.epochs):
            seen = {**data, **before(samples, number)} if before else data
            shuffled = torch.from_numpy(order.permutation(samples)).to(data["obs"].device)
            split = self._split(shuffled)
            dealt = examples.deal(len(split)) if examples is not None else [{} for _ in split]
            epoch: list[Shown] = []
            for picked, part in zip(split, dealt, strict=True):
                minibatch = {name: tensor[picked] for name, tensor in seen.items()}
                epoch.append(self.step(minibatch | part, knobs, loss))
            logged += epoch
            if far_enough(epoch, knobs):
                break
        return logged

    def _split(self, shuffled: Tensor) -> Sequence[Tensor]:
        """Equal minibatches, as near to the configured size as the samples allow.

        Of several learners each has a share of every minibatch.
        """
        samples = len(shuffled)
        if self.together.size == 1:
            return torch.split(shuffled, -(-samples // max(1, round(samples / self.minibatch))))
        counts = self.together.counts(samples)
        parts = min(round(sum(counts) / self.minibatch), max(counts))
        return torch.tensor_split(shuffled, max(1, parts))

    def step(
        self,
        minibatch: Mapping[str, Tensor],
        knobs: K,
        loss_of: Callable[[Mapping[str, Tensor], K], tuple[Tensor, Shown]],
    ) -> Shown:
        """One optimiser step. A loss that is not finite is never stepped on."""
        self.optimiser.zero_grad(set_to_none=True)
        if self.together.size == 1:
            loss, shown = loss_of(minibatch, knobs)
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            loss, shown = self._summed(minibatch, knobs, loss_of)
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), knobs.max_grad_norm)
        if not torch.isfinite(norm + loss.detach()):
            raise DivergedError(
                f"the loss is {loss.item()} and the gradient norm {float(norm)} with a learning "
                f"rate of {knobs.lr:g}"
            )
        self.optimiser.step()
        return {**shown, "grad_norm": norm}

    def _summed(
        self,
        minibatch: Mapping[str, Tensor],
        knobs: K,
        loss_of: Callable[[Mapping[str, Tensor], K], tuple[Tensor, Shown]],
    ) -> tuple[Tensor, Shown]:
        """Loss and gradient of everybody's rows: means that count as much as they have rows.

        All of it goes as one flat tensor, so that a step waits for the others once.
        """
        rows, parameters = len(minibatch["obs"]), list(self.net.parameters())
        told = torch.zeros(len(self.shown) + 2, device=parameters[0].device)
        if rows:
            loss, shown = loss_of(minibatch, knobs)
            loss.backward()  # type: ignore[no-untyped-call]
            found = [loss, *(shown[name] for name in self.shown), torch.ones_like(loss)]
            told += torch.stack([one.detach().float() for one in found])
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([*(grad.reshape(-1) for grad in grads), told]) * rows
        self.together.sum_(flat)
        flat /= flat[-1].clone()
        sizes = [p.numel() for p in parameters]
        *parts, told = torch.split(flat, [*sizes, len(told)])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        return told[0], dict(zip(self.shown, told[1:-1], strict=True))

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


def state_of(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Adam's memory of every parameter, in the order of the parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def shuffling(seed: int, update: int, network: int = 0) -> np.random.Generator:
    """Return what shuffles the samples of an update, for each of several networks another."""
    key = np.array([seed % 2**64, update], np.uint64)  # a list loses digits
    stream = np.random.Philox(key=key)
    return np.random.Generator(stream.jumped(network) if network else stream)


def mean_losses(logged: Sequence[Shown]) -> dict[str, float]:
    """The means over all minibatches, by name."""
    return {
        name: float(torch.stack([x[name].detach() for x in logged]).mean()) for name in logged[0]
    }
