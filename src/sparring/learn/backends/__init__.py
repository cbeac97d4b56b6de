"""Backends make optimizer steps: `torch` is the reference, tests compare native ones with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from sparring.learn.learner import DivergedError
from sparring.learn.minibatches import Metrics, Minibatch
from sparring.learn.process_group import ProcessGroup
from sparring.schedule import format_rounded

Loss = Callable[[Mapping[str, Tensor], Any], tuple[Tensor, Mapping[str, Tensor]]]
"""Returns the loss of a minibatch under the hyperparameters of an update, and its metrics."""


class Backend(Protocol):
    """The optimizer of one network."""

    by_place: bool
    """Whether steps read rows in place from the rollout instead of a copy."""
    metric_names: Sequence[str]
    """Metrics of the loss. Needed if a replica may get an empty minibatch."""

    def step(
        self, minibatch: Minibatch, hparams: Any, loss: Loss, process_group: ProcessGroup
    ) -> Metrics:
        """Make one optimizer step; raise if loss or gradient is not finite."""

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's state."""

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore Adam's state, saved by any backend."""


def diverged(loss: float, norm: float, lr: float) -> DivergedError:
    return DivergedError(
        f"the loss is {loss} and the gradient norm {norm} with a learning rate of "
        f"{format_rounded(lr)}"
    )
