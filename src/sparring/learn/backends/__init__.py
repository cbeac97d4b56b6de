"""Backends make optimizer steps: `torch` is the reference, native ones are held equal to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from sparring.learn.learner import DivergedError
from sparring.learn.minibatches import Minibatch, Shown
from sparring.learn.together import Together
from sparring.schedule import rounded

Loss = Callable[[Mapping[str, Tensor], Any], tuple[Tensor, Mapping[str, Tensor]]]
"""The loss of rows under the settings of an update, and what curves show of it."""


class Backend(Protocol):
    """Optimizer steps of one network, and the optimizer's state."""

    by_place: bool
    """Whether rows are read where they were played; else they are copied together first."""
    shown: Sequence[str]
    """What a loss shows, where other learners may have rows when this one has none."""

    def step(self, minibatch: Minibatch, hparams: Any, loss: Loss, together: Together) -> Shown:
        """One optimizer step. A loss that is not finite is never stepped on."""

    def tensors(self) -> dict[str, Tensor]:
        """Copy Adam's state of every parameter."""

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with Adam's state of another moment, of any backend."""


def diverged(loss: float, norm: float, lr: float) -> DivergedError:
    """What is raised instead of a step."""
    return DivergedError(
        f"the loss is {loss} and the gradient norm {norm} with a learning rate of {rounded(lr)}"
    )
