"""How one network is improved: passes over samples in shuffled minibatches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from sparring.config import DQNConfig, PPOConfig
from sparring.learn.sequences import STEP, shuffled_segments
from sparring.learn.steps import Loss, Minibatch, Shown, Steps, TorchSteps
from sparring.learn.terms import Dealt, deal_all
from sparring.learn.together import ALONE, Together
from sparring.learn.transforms import RowTransform
from sparring.nets.net import Net


class Rates(Protocol):
    """What all knobs have."""

    @property
    def lr(self) -> float: ...
    @property
    def max_grad_norm(self) -> float: ...


K = TypeVar("K", bound=Rates)
"""The knobs of a kind: the numbers that schedules may change, as they are in one update."""


class Descent:
    """Goes over the samples of an update; `steps` makes the optimiser's."""

    together: Together = ALONE
    """With whom every step is made."""
    shown: Sequence[str] = ()
    """What a loss shows, where others may have rows when this learner has none."""

    def __init__(
        self,
        net: Net,
        config: PPOConfig | DQNConfig,
        *,
        eps: float,
        steps: Steps | None = None,
    ) -> None:
        """Improve a network. eps: Adam's. steps: who makes them, if it is not torch."""
        self.net, self.epochs, self.minibatch = net, config.epochs, config.minibatch
        self.steps: Steps = steps or TorchSteps(net, eps=eps, shown=self.shown)

    def passes(
        self,
        data: Mapping[str, Tensor],
        knobs: K,
        order: np.random.Generator,
        *,
        loss: Loss,
        far_enough: Callable[[Sequence[Shown], K], bool],
        update: int = 0,
        turning: Sequence[RowTransform] = (),
        own: Sequence[Dealt] = (),
    ) -> list[Shown]:
        """Go over the samples; return what curves show of every minibatch.

        loss: what is descended on, and what curves show of it.
        far_enough: whether to stop after an epoch.
        update: its number. turning: what is done to rows before they are learned from.
        own: rows of terms that bring their own.
        """
        logged: list[Shown] = []
        samples = len(data["action"])
        for number in range(self.epochs):
            seen = data
            for transform in turning:
                seen = {**seen, **transform.epoch(update, number, samples)}
            split = self._split(data, order)
            epoch = [
                self.steps.take(Minibatch(seen, picked, part, turning), knobs, loss, self.together)
                for picked, part in zip(split, deal_all(own, len(split)), strict=True)
            ]
            logged += epoch
            if far_enough(epoch, knobs):
                break
        return logged

    def _split(self, data: Mapping[str, Tensor], order: np.random.Generator) -> Sequence[Tensor]:
        """Equal minibatches, as near to the configured size as the samples allow.

        Decisions in a row stay together. Of several learners each has a share of every minibatch.
        """
        device, samples = data["action"].device, len(data["action"])
        if STEP in data:
            several = [self.together.counts(n) for n in (samples, int((data[STEP] == 0).sum()))]
            parts = min(round(sum(several[0]) / self.minibatch), max(several[1]))
            dealt = shuffled_segments(data[STEP], max(1, parts), order)
            return [torch.from_numpy(picked).to(device) for picked in dealt]
        shuffled = torch.from_numpy(order.permutation(samples)).to(device)
        if self.together.size == 1:
            return torch.split(shuffled, -(-samples // max(1, round(samples / self.minibatch))))
        counts = self.together.counts(samples)
        parts = min(round(sum(counts) / self.minibatch), max(counts))
        return torch.tensor_split(shuffled, max(1, parts))

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's memory of every parameter."""
        return self.steps.tensors()

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with Adam's memory of another moment."""
        self.steps.load(tensors)


def shuffling(seed: int, update: int, network: int = 0) -> np.random.Generator:
    """Return what shuffles the samples of an update, for each of several networks another."""
    key = np.array([seed % 2**64, update], np.uint64)  # a list loses digits
    stream = np.random.Philox(key=key)
    return np.random.Generator(stream.jumped(network) if network else stream)


def mean_losses(logged: Sequence[Shown]) -> dict[str, float]:
    """The means over all minibatches, by name."""
    return {name: float(np.mean([float(x[name]) for x in logged])) for name in logged[0]}
