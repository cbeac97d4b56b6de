"""Additional loss terms: auxiliary heads, KL to a reference policy, hindsight examples.

A term names the columns it needs of every sample, and computes a loss from the outputs of heads.
Its gradient enters the network through the outputs, so that networks need no code for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.games.hidden import StateField
from sparring.nets.heads import POLICY
from sparring.nets.net import HeadOutputs
from sparring.schedule import Moment, Schedule

Arrays = dict[str, npt.NDArray[Any]]


class Term(Protocol):
    """An additional term of the loss."""

    name: str
    """Name of its loss in metrics."""

    def set_weight(self, moment: Moment) -> None:
        """Evaluate the schedule of its weight."""

    @property
    def weight(self) -> float:
        """Weight of its loss in this update; a term with weight 0 is skipped."""

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Return the columns it needs, with one entry per sample, by names of its choice."""

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """Return the loss of every row, 0 where it does not apply; their mean counts.

        heads: outputs of the network. rows: the term's columns, and others of the minibatch such
        as "mask", which are copied when they are read.
        """


class Weighted:
    """Base of terms: a weight that follows a schedule."""

    def __init__(self, weight: Schedule) -> None:
        self.schedule, self.weight = weight, weight.at(Moment(0, 0.0))

    def set_weight(self, moment: Moment) -> None:
        self.weight = self.schedule.at(moment)


class TermColumn(Protocol):
    """Values of all places of a rollout, computed once for all terms that need them."""

    def fill(
        self, learner: Any, samples: npt.NDArray[Any], returns: npt.NDArray[np.float32]
    ) -> None:
        """Compute the values of a linked rollout before learning. returns: of the samples."""


@runtime_checkable
class OfColumn(Protocol):
    """A term that reads a `TermColumn`, which it may share with others."""

    @property
    def column(self) -> Any:
        """A `TermColumn`, or on a GPU a `learn.fused.terms.FusedColumn`."""


@runtime_checkable
class OfTruth(Protocol):
    """A term that needs a field of the game state with every row."""

    state_field: StateField


@runtime_checkable
class ExtraRows(Protocol):
    """A term with extra rows: its loss is computed on them instead of the samples."""

    counted: str
    """Name of their number in metrics."""

    def rows(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Return all extra rows of an update that learns from these samples, "obs" included.

        Every epoch shuffles them and spreads them evenly over its minibatches.
        """


@runtime_checkable
class NativeLoss(Protocol):
    """A term with extra rows whose loss native code computes."""

    def native_loss(
        self,
        work: Any,
        outputs: npt.NDArray[np.float32],
        rows: Mapping[str, Tensor],
        grad: npt.NDArray[np.float32],
    ) -> float:
        """Write the gradient of the weighted mean loss; return the mean.

        work: `_native.PPOUpdate`. outputs: of policy and value heads.
        """


@runtime_checkable
class Measures(Protocol):
    """A term with further metrics besides its loss."""

    measured: Sequence[str]
    """Names of the metrics."""

    def measure(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the metrics by name, a number per row; their mean is reported."""


def measure(term: Term, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the further metrics of a term on a minibatch."""
    if not isinstance(term, Measures):
        return {}
    with torch.no_grad():
        return {name: each.mean() for name, each in term.measure(heads, rows).items()}


def metric_names(terms: Iterable[Term]) -> list[str]:
    """Names of all metrics of terms."""
    named = ((one.name, *(one.measured if isinstance(one, Measures) else ())) for one in terms)
    return [name for names in named for name in names]


def columns_of(terms: Iterable[Any]) -> list[Any]:
    """The columns that terms need, without duplicates."""
    columns = (term.column for term in terms if isinstance(term, OfColumn))
    return list({id(column): column for column in columns}.values())


def truth_of(terms: Iterable[Any]) -> StateField | None:
    """The field of the game state that terms need; None if there is none."""
    return next((term.state_field for term in terms if isinstance(term, OfTruth)), None)


def extra_rows(term: Term, minibatch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The extra rows of a term in a minibatch."""
    prefix = f"{term.name}/"
    return {name[len(prefix) :]: minibatch[name] for name in minibatch if name.startswith(prefix)}


def losses_of(
    term: Term, run: Callable[[Tensor], HeadOutputs], heads: HeadOutputs, rows: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the loss and the metrics of a term on a minibatch. run: the network."""
    if isinstance(term, ExtraRows):
        rows = extra_rows(term, rows)
        if not len(rows["obs"]):
            return dict.fromkeys(metric_names([term]), heads[POLICY].new_zeros(()))
        heads = run(rows["obs"])
    return {term.name: term.each(heads, rows).mean(), **measure(term, heads, rows)}


def gradients(
    terms: Sequence[Term], heads: HeadOutputs, rows: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the metrics of terms, and the gradient of their weighted sum by head.

    For native backward passes, which start from gradients of outputs.
    """
    with torch.enable_grad():
        leaves = {
            name: outputs.detach().float().requires_grad_() for name, outputs in heads.items()
        }
        losses = {term.name: term.each(leaves, rows).mean() for term in terms}
        total = torch.stack([term.weight * losses[term.name] for term in terms]).sum()
    grads = torch.autograd.grad(
        total, list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    metrics = {name: loss.detach() for name, loss in losses.items()}
    for term in terms:
        metrics |= measure(term, leaves, rows)
    return metrics, dict(zip(leaves, grads, strict=True))
