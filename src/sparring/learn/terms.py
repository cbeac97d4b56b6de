"""Terms of the loss beside the algorithm's own: other heads, an anchor that holds the policy back.

A term says what it needs to know of every sample and how large its loss is, as a function of what
heads say. Its gradient goes back through the heads like that of the algorithm's own loss, so that
networks and their passes know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.games.hidden import StateField
from sparring.nets.net import POLICY, HeadOutputs
from sparring.schedule import Moment, Schedule

Arrays = dict[str, npt.NDArray[Any]]


class Term(Protocol):
    """A part of the loss."""

    name: str
    """What curves call its loss."""

    def turn(self, moment: Moment) -> None:
        """Read the schedule of its weight."""

    @property
    def weight(self) -> float:
        """Of its loss, in this update. With 0 nobody asks for more."""

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """What it has to know of every sample, one entry for each; names are the term's own."""

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """The loss of every row, which counts by their mean; 0 where there is nothing to learn.

        heads: what the network says about them. rows: `columns` of these, and what else is known
        of them, such as "mask"; whatever is not looked at is not copied.
        """


class Weighted:
    """The weight of a term, which follows a schedule."""

    def __init__(self, weight: Schedule) -> None:
        self.schedule, self.weight = weight, weight.at(Moment(0, 0.0))

    def turn(self, moment: Moment) -> None:
        """Read the schedule."""
        self.weight = self.schedule.at(moment)


class Column(Protocol):
    """What is known of every place of a rollout, found once for all terms that want it."""

    def fill(
        self, learner: Any, samples: npt.NDArray[Any], returns: npt.NDArray[np.float32]
    ) -> None:
        """Find it out for a rollout that is linked, before anything is learned from it.

        samples: places that are learned from. returns: theirs.
        """


@runtime_checkable
class OfColumn(Protocol):
    """A term that reads a column, perhaps with others."""

    @property
    def column(self) -> Any:
        """A `Column`; on a GPU a `learn.fused.terms.FusedColumn`."""


@runtime_checkable
class OfTruth(Protocol):
    """A term that has bytes of the games' states kept with every row."""

    state_field: StateField
    """Which."""


@runtime_checkable
class OwnRows(Protocol):
    """A term about rows of its own: `each` is asked about them instead of the samples."""

    counted: str
    """What curves call their number."""

    def rows(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """All of them for an update that learns from these samples, "obs" among them.

        Every epoch shuffles them, and every minibatch gets as many; the mean of its own counts.
        """


@runtime_checkable
class NativeLoss(Protocol):
    """A term with rows of its own whose loss native code has."""

    def native_loss(
        self,
        work: Any,
        said: npt.NDArray[np.float32],
        rows: Mapping[str, Tensor],
        grad: npt.NDArray[np.float32],
    ) -> float:
        """Write the gradient of the weighted mean; return the mean.

        work: `_native.Updating`. said: what policy and value say about the rows.
        """


@runtime_checkable
class Measures(Protocol):
    """A term that curves show more of than its loss."""

    measured: Sequence[str]
    """Names."""

    def measure(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """By name, a number for every row, of which curves show the mean."""


def measure(term: Term, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What curves show of a term on a minibatch besides its loss."""
    if not isinstance(term, Measures):
        return {}
    with torch.no_grad():
        return {name: each.mean() for name, each in term.measure(heads, rows).items()}


def shown_of(terms: Iterable[Term]) -> list[str]:
    """All names that curves show of terms."""
    named = ((one.name, *(one.measured if isinstance(one, Measures) else ())) for one in terms)
    return [name for names in named for name in names]


def columns_of(terms: Iterable[Any]) -> list[Any]:
    """The columns that terms want, each once."""
    wanted = (term.column for term in terms if isinstance(term, OfColumn))
    return list({id(column): column for column in wanted}.values())


def truth_of(terms: Iterable[Any]) -> StateField | None:
    """What terms have kept of the games' states; None: nothing."""
    return next((term.state_field for term in terms if isinstance(term, OfTruth)), None)


def own_rows(term: Term, minibatch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The rows that a minibatch was dealt for a term."""
    first = f"{term.name}/"
    return {name[len(first) :]: minibatch[name] for name in minibatch if name.startswith(first)}


def losses_of(
    term: Term, run: Callable[[Tensor], HeadOutputs], heads: HeadOutputs, rows: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The loss of a term on a minibatch, and what else curves show of it. run: the network."""
    if isinstance(term, OwnRows):
        rows = own_rows(term, rows)
        if not len(rows["obs"]):
            return dict.fromkeys(shown_of([term]), heads[POLICY].new_zeros(()))
        heads = run(rows["obs"])
    return {term.name: term.each(heads, rows).mean(), **measure(term, heads, rows)}


def gradients(
    terms: Sequence[Term], heads: HeadOutputs, rows: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return what curves show of the terms, and the gradient of their weighted sum by head.

    For passes that go back from what heads say.
    """
    with torch.enable_grad():
        leaves = {name: said.detach().float().requires_grad_() for name, said in heads.items()}
        losses = {term.name: term.each(leaves, rows).mean() for term in terms}
        total = torch.stack([term.weight * losses[term.name] for term in terms]).sum()
    grads = torch.autograd.grad(
        total, list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    found = {name: loss.detach() for name, loss in losses.items()}
    for term in terms:
        found |= measure(term, leaves, rows)
    return found, dict(zip(leaves, grads, strict=True))
