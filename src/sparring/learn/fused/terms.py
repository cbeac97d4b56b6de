"""The loss on a GPU: PPO's, and further terms (`learn.terms`).

Columns of terms are arrays by place of the rollout, at fixed addresses; minibatches index them.
Weights are on the device, so that captured graphs follow schedules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from sparring.games.rules import Rules
from sparring.kernels import KernelModule
from sparring.kernels.views import KernelView
from sparring.learn.fused.examples import Examples
from sparring.learn.fused.kernels import heads_view
from sparring.learn.fused.minibatches import FusedMinibatch, FusedSamples, Images
from sparring.learn.fused.rollout import FusedRollout, mask_of
from sparring.learn.terms import Measures, Term, columns_of, metric_names
from sparring.nets.heads import POLICY, VALUE, head_width
from sparring.nets.net import HeadOutputs
from sparring.nets.run.flat import FlatNet, Pass
from sparring.schedule import Moment


class PolicyLoss:
    """Launches `loss` of csrc/cuda/ppo.cuh; the formulas are those of `learn.ppo.ppo_loss`."""

    def __init__(
        self,
        kernels: KernelModule,
        at: Pass,
        samples: FusedSamples,
        *,
        hparams: Tensor,
        statistics: Tensor,
        diverged: Tensor,
    ) -> None:
        """Allocate the metrics of all minibatches.

        at: pass that gets the gradients. diverged: is set for members whose loss is not finite.
        """
        self.kernels, self.at, self.heads = kernels, at, heads_view(kernels, at.flat, at)
        self.hparams, self.statistics, self.diverged = hparams, statistics, diverged
        minibatches, members, self.stride = samples.picked.shape
        self.room, rules, names = samples.room, at.flat.rules, kernels.names("Losses")
        self.block_rows = 256 if rules.box else 8  # a thread or a warp per row
        self.grid = -(-self.room // self.block_rows), members
        self.moved = slice(names.index("approx_kl"), names.index("clipfrac") + 1)
        """Columns of approx_kl and clipfrac."""
        with torch.device(diverged.device):
            self.arrived = torch.zeros(members, dtype=torch.int32)
            self.partials = torch.zeros(members, self.grid[0], len(names))
            self.means = torch.zeros(minibatches, members, len(names))

    def write(
        self,
        number: int,
        minibatch: FusedMinibatch,
        images: Sequence[Images],
        counts: Tensor,
        dealt: Mapping[str, int],
    ) -> None:
        """Write gradients and metrics of a minibatch.

        counts, dealt: samples of every member, and index and number of minibatches.
        """

        def means_of(places: Tensor) -> Tensor:
            self._launch(number, minibatch.rows, places, counts, dealt)
            return self.means[number]

        # approx_kl and clipfrac are of unmirrored rows.
        moved = [image.unmirrored_means(number, minibatch.places, means_of) for image in images]
        means = means_of(minibatch.places)
        for found in moved:
            means[:, self.moved].copy_(found[:, self.moved])

    def _launch(
        self,
        number: int,
        rows: Mapping[str, Tensor],
        places: Tensor,
        counts: Tensor,
        dealt: Mapping[str, int],
    ) -> None:
        views = self.views(number, rows, places, counts, dealt)
        self.kernels.loss(self.grid, 256, self.heads, *views)

    def views(
        self,
        number: int,
        rows: Mapping[str, Tensor],
        places: Tensor,
        counts: Tensor,
        dealt: Mapping[str, int],
    ) -> tuple[KernelView, KernelView]:
        """`MinibatchView` and `LossView` of a minibatch."""
        minibatch = self.kernels.view(
            "MinibatchView",
            picked=places,
            **{name: array for name, array in rows.items() if name != "obs"},
            counts=counts,
            **dealt,
            room=self.room,
            stride=self.stride,
        )
        loss = self.kernels.view(
            "LossView",
            hparams=self.hparams,
            statistics=self.statistics,
            rows_per_block=self.block_rows,
            policy_grad=self.at.logits_grad,
            value_grad=self.at.value_grad,
            partials=self.partials,
            arrived=self.arrived,
            means=self.means[number],
            diverged=self.diverged,
        )
        return minibatch, loss


class FusedTerm(Protocol):
    """A loss term on a GPU."""

    @property
    def term(self) -> Term:
        """Name, schedule and formula; its `columns` are not used."""

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        """Its columns by place of the rollout [places, ...], at fixed addresses."""

    def fill(self) -> None:
        """Compute `by_place` after a rollout, before learning.

        Part of a graph: no synchronization, fixed shapes.
        """


@runtime_checkable
class WeightsByMember(Protocol):
    """A term whose members may have different schedules."""

    def weights(self, moments: Sequence[Moment]) -> list[float]:
        """Return the weight of every member. moments: one per member."""


def weights_of(one: FusedTerm, moments: Sequence[Moment]) -> list[float]:
    """Return the weight of a term for every member."""
    if isinstance(one, WeightsByMember):
        return one.weights(moments)
    found = []
    for moment in moments:
        one.term.set_weight(moment)
        found.append(one.term.weight)
    return found


class FusedColumn(Protocol):
    """A value per place that terms share, computed once; see `learn.terms.TermColumn`."""

    def fill(self) -> None:
        """Compute the values of a linked rollout. Part of a graph."""

    def add_truncated(self, number: int, at: Pass) -> None:
        """Store the outputs of a pass over layer `number` of truncations."""


@dataclass(frozen=True)
class PlacedRows(Mapping[str, Tensor]):
    """Rows at places of a rollout; each array is copied when it is read."""

    rules: Rules
    by_place: Mapping[str, Tensor]
    place: Tensor
    legal: Tensor
    """Legal actions of every row, mirrored or not."""
    known: Mapping[str, Tensor]
    """Columns of transforms."""

    def __getitem__(self, name: str) -> Tensor:
        if name == "mask":
            return mask_of(self.legal, self.rules)
        return self.known[name] if name in self.known else self.by_place[name][self.place]

    def __iter__(self) -> Iterator[str]:
        return iter(("mask", *self.known, *self.by_place))

    def __len__(self) -> int:
        return len(self.by_place) + len(self.known) + 1


class FusedTerms:
    """All loss terms of a learner, for all members."""

    def __init__(self, net: FlatNet, rollout: FusedRollout, stopped: Tensor) -> None:
        """Start without terms. stopped: by member, whether its update stopped early."""
        self.net, self.rollout, self.stopped = net, rollout, stopped
        self.columns: list[FusedColumn] = []
        """Columns of the terms, without duplicates."""
        self.extra: list[Examples] = []
        """Terms with extra rows, which follow the places; kernels compute their loss."""
        self.list: list[FusedTerm] = []
        """Terms of samples."""
        self.weights = torch.zeros(0, net.members, device=net.device)
        """[terms, members]"""
        self.sums: dict[str, Tensor] = {}
        """Sums of metrics over the optimizer steps of an update, by member."""

    def put(self, terms: Sequence[FusedTerm]) -> None:
        """Replace the terms of samples; captured graphs become invalid."""
        self.list, self.columns = list(terms), columns_of(terms)
        members, device = self.net.members, self.net.device
        self.weights = torch.zeros(len(terms), members, device=device)
        names = [*metric_names(one.term for one in terms), *(one.name for one in self.extra)]
        self.sums = {name: torch.zeros(members, device=device) for name in names}

    def set_hparams(self, moments: Sequence[Moment]) -> None:
        """Copy the weights to the device."""
        for extra in self.extra:
            extra.set_hparams(moments)
        if not self.list:
            return
        self.weights.copy_(torch.tensor([weights_of(one, moments) for one in self.list]))

    def add_truncated(self, number: int, at: Pass) -> None:
        """Store the outputs of a pass over layer `number` of truncations."""
        for column in self.columns:
            column.add_truncated(number, at)

    def fill(self) -> None:
        """Compute all columns."""
        for column in self.columns:
            column.fill()
        for one in self.list:
            one.fill()

    def make_rows(self) -> None:
        """Make the extra rows and reset the metrics, before the epochs of an update."""
        for one in self.extra:
            one.make()
        for total in self.sums.values():
            total.zero_()

    def learn_extra(
        self, heads: KernelView, at: Pass, picked: Tensor, dealt: Mapping[str, int]
    ) -> None:
        """Write the gradients of extra rows."""
        for one in self.extra:
            self._add_metric(one.name, one.add_gradient(heads, at, picked, dealt))

    def add_gradients(self, at: Pass, picked: Tensor, minibatch: FusedMinibatch) -> None:
        """Add the gradients of the terms to those of a pass's outputs.

        picked: places of samples [members, room]. minibatch: their rows, mirrored or not.
        """
        if not self.list:
            return
        members, room = picked.shape
        is_sample = picked >= 0
        share = is_sample / is_sample.sum(1, keepdim=True).clamp(min=1)
        # Padding reads the first sample of the member, so that no formula gets an empty mask.
        order = torch.arange(room, device=picked.device)
        row = torch.where(is_sample, order, is_sample.int().argmax(1, keepdim=True))
        place = picked.gather(1, row).clamp(min=0).long().view(-1)
        row_at = minibatch.places[:, :room].gather(1, row).clamp(min=0).long().view(-1)
        legal = minibatch.rows["legal"][row_at]
        known = {
            name: one[:, :room].gather(1, row).view(-1) for name, one in minibatch.known.items()
        }
        with torch.enable_grad():
            leaves = {
                name: outputs.requires_grad_() for name, outputs in self._heads(at, room).items()
            }
            total = torch.zeros(members, device=self.net.device)
            for one, weight in zip(self.list, self.weights, strict=True):
                rows = PlacedRows(self.rollout.rules, one.by_place, place, legal, known)
                each = one.term.each(leaves, rows).view(members, room)
                loss = (torch.where(is_sample, each, 0.0) * share).sum(1)
                self._add_metric(one.term.name, loss.detach())
                total = total + weight * loss
                if isinstance(one.term, Measures):
                    with torch.no_grad():
                        for name, found in one.term.measure(leaves, rows).items():
                            kept = torch.where(is_sample, found.view(members, room), 0.0)
                            self._add_metric(name, (kept * share).sum(1))
        grads = torch.autograd.grad(
            total.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
        )
        width = head_width(self.rollout.rules)
        policy, value, *others = grads
        at.logits_grad[:, :room, :width].add_(policy.view(members, room, width))
        at.value_grad[:, :room, 0].add_(value.view(members, room))
        for into, grad in zip(at.extra_grads.values(), others, strict=True):
            into[:, :room].copy_(grad.view(members, room, -1))

    def _add_metric(self, name: str, mean: Tensor) -> None:
        """Add a metric of a minibatch, except for members that stopped."""
        self.sums[name].add_(torch.where(self.stopped.bool(), 0.0, mean.float()))

    def _heads(self, at: Pass, room: int) -> HeadOutputs:
        """Outputs of heads for the first rows of every member, flattened over members."""
        net, width = self.net, head_width(self.rollout.rules)
        logit_bias = net.policy_bias.reshape(-1, 1, net.policy_bias.shape[-1])
        value_bias = net.value_bias.reshape(-1, 1, net.value_bias.shape[-1])
        logits = at.logits[:, :room, :width] + logit_bias[..., :width]
        heads = {
            POLICY: logits.reshape(-1, width),
            VALUE: (at.value[:, :room, 0] + value_bias[..., 0]).reshape(-1),
        }
        return heads | {
            name: outputs[:, :room].reshape(-1, outputs.shape[2]).detach().clone()
            for name, outputs in at.extra_outputs.items()
        }

    def measure(self) -> dict[str, Tensor]:
        """Metrics by name, one number per member."""
        sums = {metric_key(name): total for name, total in self.sums.items()}
        return sums | {one.counted: one.counts for one in self.extra}

    def stats(self, found: Mapping[str, float], steps: float) -> dict[str, float]:
        """Stats of a report. found: metrics of one member. steps: optimizer steps."""
        stats = {f"losses/{name}": found[metric_key(name)] / max(steps, 1.0) for name in self.sums}
        return stats | {f"learning/{one.counted}": found[one.counted] for one in self.extra}


def metric_key(name: str) -> str:
    """What figures call the sum of something that a term shows."""
    return f"term {name}"
