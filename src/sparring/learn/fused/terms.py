"""The loss on a GPU: PPO's own, and terms beside it as `learn.terms` has them.

What a term has to know lies by place of the rollout, in arrays that never move; minibatches pick
from it. Weights are on the device, so that graphs see schedules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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
from sparring.nets.net import POLICY, VALUE, HeadOutputs, head_width
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
        """Make room for the losses of all minibatches.

        at: the pass that goes back from them. diverged: is told who has a loss that is not finite.
        """
        self.kernels, self.at, self.heads = kernels, at, heads_view(kernels, at.flat, at)
        self.hparams, self.statistics, self.diverged = hparams, statistics, diverged
        minibatches, members, self.stride = samples.picked.shape
        self.room, rules, names = samples.room, at.flat.rules, kernels.names("Losses")
        self.block_rows = 256 if rules.box else 8  # a thread has a row, or a warp has it
        self.grid = -(-self.room // self.block_rows), members
        self.moved = slice(names.index("approx_kl"), names.index("clipfrac") + 1)
        """Means that say how far the policy has moved."""
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
        """Write gradients and means of a minibatch.

        counts, dealt: samples of every member, and which part of them this is.
        """

        def means_of(places: Tensor) -> Tensor:
            self._launch(number, minibatch.rows, places, counts, dealt)
            return self.means[number]

        # How far the policy has moved is measured on rows as they were played.
        moved = [image.plainly(number, minibatch.places, means_of) for image in images]
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
        self.kernels.loss(self.grid, 256, self.heads, minibatch, loss)


class FusedTerm(Protocol):
    """A part of the loss of a learner on a GPU."""

    @property
    def term(self) -> Term:
        """Its formula, name and schedule; `columns` of it is not asked."""

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        """What it knows of every place of the rollout [places, ...]; the arrays never move."""

    def fill(self) -> None:
        """Write `by_place` for the rollout that was played, before anything is learned from it.

        Part of a graph: nothing may wait for the device, and shapes do not change.
        """


class FusedColumn(Protocol):
    """A value per place that terms share, computed once; see `learn.terms.TermColumn`."""

    def fill(self) -> None:
        """Find it out for a rollout that is linked. Part of a graph."""

    def take_cuts(self, number: int, at: Pass) -> None:
        """Keep what is expected where games were cut for the `number`th time."""


@dataclass(frozen=True)
class PlacedRows(Mapping[str, Tensor]):
    """Rows at places of a rollout, each array copied when somebody looks at it."""

    rules: Rules
    by_place: Mapping[str, Tensor]
    place: Tensor
    legal: Tensor
    """Of every row, wherever it is learned from."""
    known: Mapping[str, Tensor]
    """What transforms know of every row."""

    def __getitem__(self, name: str) -> Tensor:
        if name == "mask":
            return mask_of(self.legal, self.rules)
        return self.known[name] if name in self.known else self.by_place[name][self.place]

    def __iter__(self) -> Iterator[str]:
        return iter(("mask", *self.known, *self.by_place))

    def __len__(self) -> int:
        return len(self.by_place) + len(self.known) + 1


class FusedTerms:
    """All of a learner's, for all members."""

    def __init__(self, net: FlatNet, rollout: FusedRollout, stopped: Tensor) -> None:
        """Begin without any. stopped: by member, whether its update is over early."""
        self.net, self.rollout, self.stopped = net, rollout, stopped
        self.columns: list[FusedColumn] = []
        """What terms read, each once."""
        self.own: list[Examples] = []
        """About rows of their own, behind the places of the rollout; kernels have their loss."""
        self.list: list[FusedTerm] = []
        """About samples."""
        self.weights = torch.zeros(0, net.members, device=net.device)
        """[terms, members]"""
        self.sums: dict[str, Tensor] = {}
        """Of what curves show, over all optimizer steps of an update, by member."""

    def put(self, terms: Sequence[FusedTerm]) -> None:
        """Have these about samples from now on; graphs that saw others are of no use any more."""
        self.list, self.columns = list(terms), columns_of(terms)
        members, device = self.net.members, self.net.device
        self.weights = torch.zeros(len(terms), members, device=device)
        shown = [*metric_names(one.term for one in terms), *(one.name for one in self.own)]
        self.sums = {name: torch.zeros(members, device=device) for name in shown}

    def set_hparams(self, moments: Sequence[Moment]) -> None:
        """Send the weights to the device."""
        for own in self.own:
            own.set_hparams(moments)
        if not self.list:
            return
        found = []
        for one in self.list:
            for moment in moments:
                one.term.set_weight(moment)
                found.append(one.term.weight)
        self.weights.copy_(torch.tensor(found).view(self.weights.shape))

    def take_cuts(self, number: int, at: Pass) -> None:
        """See what a pass says of games that were cut for the `number`th time."""
        for column in self.columns:
            column.take_cuts(number, at)

    def fill(self) -> None:
        """Say what is to be known of the rollout's places."""
        for column in self.columns:
            column.fill()
        for one in self.list:
            one.fill()

    def make_rows(self) -> None:
        """Begin the epochs of an update: write the rows that terms bring along."""
        for one in self.own:
            one.make()
        for total in self.sums.values():
            total.zero_()

    def learn_own(
        self, heads: KernelView, at: Pass, picked: Tensor, dealt: Mapping[str, int]
    ) -> None:
        """Write the gradients of rows that terms brought along."""
        for one in self.own:
            self._show(one.name, one.add_gradient(heads, at, picked, dealt))

    def add_gradients(self, at: Pass, picked: Tensor, minibatch: FusedMinibatch) -> None:
        """Add theirs to what a pass goes back with.

        picked: places of samples [members, room]. minibatch: as they are learned from.
        """
        if not self.list:
            return
        members, room = picked.shape
        there = picked >= 0
        share = there / there.sum(1, keepdim=True).clamp(min=1)
        # Nobody's rows look at one of the member's samples, so that no formula meets an empty mask.
        order = torch.arange(room, device=picked.device)
        row = torch.where(there, order, there.int().argmax(1, keepdim=True))
        place = picked.gather(1, row).clamp(min=0).long().view(-1)
        lies = minibatch.places[:, :room].gather(1, row).clamp(min=0).long().view(-1)
        legal = minibatch.rows["legal"][lies]
        known = {
            name: one[:, :room].gather(1, row).view(-1) for name, one in minibatch.known.items()
        }
        with torch.enable_grad():
            leaves = {name: said.requires_grad_() for name, said in self._heads(at, room).items()}
            total = torch.zeros(members, device=self.net.device)
            for one, weight in zip(self.list, self.weights, strict=True):
                rows = PlacedRows(self.rollout.rules, one.by_place, place, legal, known)
                each = one.term.each(leaves, rows).view(members, room)
                loss = (torch.where(there, each, 0.0) * share).sum(1)
                self._show(one.term.name, loss.detach())
                total = total + weight * loss
                if isinstance(one.term, Measures):
                    with torch.no_grad():
                        for name, found in one.term.measure(leaves, rows).items():
                            kept = torch.where(there, found.view(members, room), 0.0)
                            self._show(name, (kept * share).sum(1))
        grads = torch.autograd.grad(
            total.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
        )
        width = head_width(self.rollout.rules)
        policy, value, *others = grads
        at.logits_grad[:, :room, :width].add_(policy.view(members, room, width))
        at.value_grad[:, :room, 0].add_(value.view(members, room))
        for into, grad in zip(at.extra_grads.values(), others, strict=True):
            into[:, :room].copy_(grad.view(members, room, -1))

    def _show(self, name: str, mean: Tensor) -> None:
        """Add what a minibatch brought, except to members that learn no more."""
        self.sums[name].add_(torch.where(self.stopped.bool(), 0.0, mean.float()))

    def _heads(self, at: Pass, room: int) -> HeadOutputs:
        """What the heads say about the first rows of every member, all rows in one list."""
        net, width = self.net, head_width(self.rollout.rules)
        logit_bias = net.policy_bias.reshape(-1, 1, net.policy_bias.shape[-1])
        value_bias = net.value_bias.reshape(-1, 1, net.value_bias.shape[-1])
        logits = at.logits[:, :room, :width] + logit_bias[..., :width]
        heads = {
            POLICY: logits.reshape(-1, width),
            VALUE: (at.value[:, :room, 0] + value_bias[..., 0]).reshape(-1),
        }
        return heads | {
            name: said[:, :room].reshape(-1, said.shape[2]).detach().clone()
            for name, said in at.extra_outputs.items()
        }

    def measure(self) -> dict[str, Tensor]:
        """What the host wants to know, one number per member."""
        sums = {shown_as(name): total for name, total in self.sums.items()}
        return sums | {one.counted: one.counts for one in self.own}

    def stats(self, found: Mapping[str, float], steps: float) -> dict[str, float]:
        """What curves show of an update of so many optimizer steps. found: its figures."""
        stats = {f"losses/{name}": found[shown_as(name)] / max(steps, 1.0) for name in self.sums}
        return stats | {f"learning/{one.counted}": found[one.counted] for one in self.own}


def shown_as(name: str) -> str:
    """What figures call the sum of something that a term shows."""
    return f"term {name}"
