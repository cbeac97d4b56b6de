"""Terms of the loss beside the algorithm's own: other heads, an anchor that holds the policy back.

A term says what it needs to know of every sample and how large its loss is, as a function of what
heads say. Its gradient goes back through the heads like that of the algorithm's own loss, so that
networks and their passes know nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt
import torch
from torch import Tensor

from sparring.nets.net import Heads
from sparring.schedule import Moment

Arrays = dict[str, npt.NDArray[Any]]


class Term(Protocol):
    """A part of the loss."""

    name: str
    """What curves call its loss."""

    def turn(self, moment: Moment) -> None:
        """Read the schedule of its weight."""

    @property
    def weight(self) -> float:
        """Of its loss, in this update."""

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """What it has to know of every sample, one entry for each; names are the term's own."""

    def loss(self, heads: Heads, rows: Mapping[str, Tensor]) -> Tensor:
        """The mean over rows. heads: what the network says about them; rows: `columns` of these."""


def gradients(
    terms: Sequence[Term], heads: Heads, rows: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the losses by term, and the gradient of their weighted sum by head.

    For passes that go back from what heads say: natively, or as graphs on a GPU.
    """
    leaves = {name: said.detach().float().requires_grad_() for name, said in heads.items()}
    with torch.enable_grad():
        losses = {term.name: term.loss(leaves, rows) for term in terms}
        total = sum(
            (term.weight * losses[term.name] for term in terms),
            torch.zeros(()).to(next(iter(leaves.values()))),
        )
    grads = torch.autograd.grad(
        total, list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    found = {name: loss.detach() for name, loss in losses.items()}
    return found, dict(zip(leaves, grads, strict=True))
