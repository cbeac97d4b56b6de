"""Decisions seen in hindsight on a GPU: `learn.hindsight` for all members of a population."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sparring.config import HindsightConfig
from sparring.kernels import Module, build
from sparring.kernels.views import View
from sparring.learn.collect import UNKNOWN
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.links import rollout_view
from sparring.learn.fused.rollout import FusedRollout
from sparring.nets.flat import Pass, rounded_up
from sparring.pools.cuda.sizes import STAGE_BYTES, sizes_of
from sparring.schedule import Moment

SOURCE = """
#include "games/{name}.hpp"
#define SPARRING_GAME ::sparring::{name}::Game
#include "cuda/goals.cuh"
"""
SPARE, SPARE_ROWS = 1.05, 64
"""Room for examples beyond their share, because lots are not even: so much more, and so many."""
EPOCHS_APART = 1 << 16
"""Examples are shuffled as if their epochs came so much later, by other numbers than samples."""
ROWS_PER_BLOCK = 8
"""A warp has one."""


def room_for(count: int, share: float) -> int:
    """Room for the examples among so many samples."""
    return rounded_up(min(count, int(SPARE * share * count) + SPARE_ROWS))


class Records:
    """What came of the goals of a rollout's decisions, and the kernels that see them anew."""

    def __init__(self, games: Games, rollout: FusedRollout) -> None:
        self.rollout, self.games = rollout, games
        pool = games.pool
        self.kernels: Module = build(
            SOURCE.format(name=games.rules.name),
            sizes_of(
                games.rules, pool._hosts[0], memory=pool.memory_bytes, stage_bytes=STAGE_BYTES
            ),
            exact=True,
            device=games.device,
            what=games.rules.name,
        )
        self.of_place = torch.zeros(rollout.places, dtype=torch.int32, device=games.device)

    def find(self) -> None:
        """Find the records of all decisions; before open ones are carried."""
        rollout = self.rollout
        view = rollout_view(self.kernels, rollout)
        blocks = blocks_of(rollout.games, 64)
        self.kernels.find_records(blocks, 64, view, rollout.record, self.of_place)

    def carry(self) -> None:
        """Keep those of decisions that are still open."""
        rows = self.rollout.open[:, 0].long()
        kept = torch.where(rows >= 0, self.of_place[rows.clamp(min=0)], 0)
        self.of_place[: len(rows)].copy_(kept)

    # Saving, in the layout of `learn.hindsight`

    def front(self, member: int) -> Tensor:
        """Copy those of a member's open decisions."""
        return self.of_place[self.rollout.carried_of(member)].cpu()

    def put_front(self, member: int, records: Tensor | None) -> None:
        """Go on with those of another moment; None: they were not kept then."""
        if records is None:
            records = torch.tensor(int(UNKNOWN), dtype=torch.int32)
        self.of_place[self.rollout.carried_of(member)] = records.to(self.of_place.device)


class Examples:
    """Examples among the samples of an update, and their share of its minibatches."""

    def __init__(
        self,
        records: Records,
        kernels: Module,
        config: HindsightConfig,
        *,
        listed: Tensor,
        counts: Tensor,
        seeds: Tensor,
        clock: Tensor,
        room: int,
    ) -> None:
        """Make everything, once and for all.

        kernels: of the learner. listed, counts: places of samples [members, most], and how many.
        room: samples of a minibatch.
        """
        self.records, self.kernels, self.config = records, kernels, config
        self.listed, self.counts, self.seeds, self.clock = listed, counts, seeds, clock
        members, self.most = len(counts), records.rollout.examples // len(counts)
        self.first, self.room = room, room_for(room, config.share)
        """Where they begin in a minibatch, and how many find room."""
        self.blocks = -(-self.room // ROWS_PER_BLOCK)
        with torch.device(listed.device):
            self.marks = torch.zeros(listed.shape, dtype=torch.int32)
            self.ranks = torch.zeros(listed.shape, dtype=torch.int32)
            self.from_place = torch.zeros(members, self.most, dtype=torch.int32)
            self.right = torch.zeros(members, self.most, dtype=torch.int32)
            self.found = torch.zeros(members, self.most, dtype=torch.int32)
            self.found_counts = torch.zeros(members, dtype=torch.int32)
            self.weight = torch.zeros(members)
            self.partials = torch.zeros(members, self.blocks)
            self.loss = torch.zeros(members)
            """Of all minibatches of an update."""
        self.list = kernels.view(
            "SampleListView", list=self.found, stride=self.most, counts=self.found_counts
        )

    def turn_knobs(self, moments: Sequence[Moment]) -> None:
        """Send the schedule to the device."""
        weights = [self.config.weight.at(moment) for moment in moments]
        self.weight.copy_(torch.tensor(weights))

    def make(self) -> None:
        """See a share of the samples in hindsight; their rows come behind those of the rollout."""
        kernels, rollout, members = self.records.kernels, self.records.rollout, len(self.counts)
        view = kernels.view(
            "ExamplesView",
            settings=self.records.games.pool.settings,
            list=self.listed,
            stride=self.listed.shape[1],
            counts=self.counts,
            of_place=self.records.of_place,
            obs=rollout.obs,
            legal=rollout.legal,
            action=rollout.action,
            seeds=self.seeds,
            clock=self.clock,
            share=self.config.share,
            members=members,
            carried_each=rollout.carried // members,
            rows_each=rollout.rows // members,
            most=self.most,
            first_place=rollout.places,
            rows=rollout.obs[rollout.places :],
            **{"from": self.from_place},
            right=self.right,
            found=self.found,
            found_counts=self.found_counts,
        )
        grid = (blocks_of(self.listed.shape[1], 128), members)
        kernels.mark_examples(grid, 128, view, self.marks)
        torch.cumsum(self.marks, 1, out=self.ranks)
        kernels.make_examples(grid, 128, view, self.ranks)
        self.loss.zero_()

    def imitate(self, heads: View, at: Pass, picked: Tensor, number: int, minibatches: int) -> None:
        """Add the gradient of a minibatch's examples to what a pass goes back with."""
        rollout = self.records.rollout
        rows = self.kernels.view(
            "ExampleRowsView",
            picked=picked,
            first=self.first,
            stride=picked.shape[1],
            rows=self.room,
            first_place=rollout.places,
            **{"from": self.from_place},
            action=self.right,
            legal=rollout.legal,
            counts=self.found_counts,
            number=number,
            minibatches=minibatches,
            weight=self.weight,
            policy_grad=at.logits_grad,
            value_grad=at.value_grad,
            partials=self.partials,
        )
        self.kernels.imitate((self.blocks, len(self.counts)), 256, heads, rows)
        self.loss.add_(self.partials.sum(1))

    def measure(self) -> dict[str, Tensor]:
        """What the host wants to know, one number per member."""
        return {"hindsight_loss": self.loss, "examples": self.found_counts}
