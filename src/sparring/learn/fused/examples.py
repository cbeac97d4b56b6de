"""Decisions seen in hindsight on a GPU: `learn.hindsight` for all members of a population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sparring.config import HindsightConfig
from sparring.kernels import KernelModule, build
from sparring.kernels.views import KernelView
from sparring.learn.collect import UNKNOWN
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.minibatches import FusedSamples
from sparring.learn.fused.rollout import FusedRollout, RolloutColumn, rollout_view
from sparring.learn.hindsight import ExamplesTerm
from sparring.learn.rollout import RECORD
from sparring.nets.run.flat import Pass, round_up
from sparring.pools.cuda.sizes import STAGE_BYTES, sizes_of
from sparring.schedule import Moment

SOURCE = """
#include "games/{name}.hpp"
#define SPARRING_GAME ::sparring::{name}::Game
#include "cuda/goals.cuh"
"""
SPARE, SPARE_ROWS = 1.05, 64
"""Factor and rows of spare memory for examples, whose number is random."""
ROWS_PER_BLOCK = 8
"""One per warp."""


def room_for(count: int, share: float) -> int:
    """Return the maximum of examples among so many samples."""
    return round_up(min(count, int(SPARE * share * count) + SPARE_ROWS))


class HindsightRecords:
    """Goal results of a rollout's decisions, and the kernels that relabel them."""

    def __init__(self, games: Games, rollout: FusedRollout, config: HindsightConfig) -> None:
        self.rollout, self.games, self.config = rollout, games, config
        pool: Any = games.pool  # on a GPU, the plan refuses others
        self.kernels: KernelModule = build(
            SOURCE.format(name=games.rules.name),
            sizes_of(
                games.rules, pool._hosts[0], memory=pool.memory_bytes, stage_bytes=STAGE_BYTES
            ),
            exact=True,
            device=games.device,
            what=games.rules.name,
        )
        self.settings: Tensor = pool.settings
        self.of_place = torch.zeros(rollout.places, dtype=torch.int32, device=games.device)
        rollout.columns.append(RolloutColumn(RECORD, self.of_place, int(UNKNOWN), self.find))

    def room(self, samples: int) -> int:
        """Return the maximum of examples in a minibatch of so many samples."""
        return room_for(samples, self.config.share)

    def find(self) -> None:
        """Fill the goal results of all decisions, before pending transitions are moved."""
        rollout = self.rollout
        view = rollout_view(self.kernels, rollout)
        blocks = blocks_of(rollout.games, 64)
        self.kernels.find_goal_results(blocks, 64, view, rollout.record, self.of_place)


class Examples:
    """Relabeled examples of an update; in a minibatch they follow the samples."""

    name, counted = ExamplesTerm.name, ExamplesTerm.counted

    def __init__(
        self, records: HindsightRecords, kernels: KernelModule, samples: FusedSamples
    ) -> None:
        self.records, self.kernels, self.samples = records, kernels, samples
        self.first, self.room = samples.room, records.room(samples.room)
        """First row in a minibatch, and maximum number."""
        members, places = len(samples.counts), samples.list
        self.most = records.rollout.examples // members
        self.blocks = -(-self.room // ROWS_PER_BLOCK)
        with torch.device(places.device):
            self.marks = torch.zeros(places.shape, dtype=torch.int32)
            self.ranks = torch.zeros(places.shape, dtype=torch.int32)
            self.from_place = torch.zeros(members, self.most, dtype=torch.int32)
            self.right = torch.zeros(members, self.most, dtype=torch.int32)
            self.found = torch.zeros(members, self.most, dtype=torch.int32)
            self.counts = torch.zeros(members, dtype=torch.int32)
            self.weight = torch.zeros(members)
            self.partials = torch.zeros(members, self.blocks)
        self.listed = self.kernels.view(
            "SampleListView", list=self.found, stride=self.most, counts=self.counts
        )

    def set_hparams(self, moments: Sequence[Moment]) -> None:
        """Copy the scheduled weight to the device."""
        weights = [self.records.config.weight.at(moment) for moment in moments]
        self.weight.copy_(torch.tensor(weights))

    def make(self) -> None:
        """Relabel a share of the samples; their rows follow those of the rollout."""
        kernels, rollout, members = self.records.kernels, self.records.rollout, len(self.counts)
        samples = self.samples
        view = kernels.view(
            "ExamplesView",
            settings=self.records.settings,
            list=samples.list,
            stride=samples.list.shape[1],
            counts=samples.counts,
            goal_result_of=self.records.of_place,
            obs=rollout.obs,
            legal=rollout.legal,
            action=rollout.action,
            seeds=samples.seeds,
            clock=samples.clock,
            share=self.records.config.share,
            members=members,
            pending_each=rollout.max_pending // members,
            rows_each=rollout.rows // members,
            max_examples=self.most,
            first_index=rollout.places,
            rows=rollout.obs[rollout.places :],
            source=self.from_place,
            target_action=self.right,
            example_index=self.found,
            example_counts=self.counts,
        )
        grid = (blocks_of(samples.list.shape[1], 128), members)
        kernels.mark_examples(grid, 128, view, self.marks)
        torch.cumsum(self.marks, 1, out=self.ranks)
        kernels.make_examples(grid, 128, view, self.ranks)

    def add_gradient(
        self, heads: KernelView, at: Pass, picked: Tensor, dealt: Mapping[str, int]
    ) -> Tensor:
        """Write the gradient of a minibatch's examples; return the mean loss of every member."""
        rollout = self.records.rollout
        rows = self.kernels.view(
            "ExampleRowsView",
            picked=picked,
            first=self.first,
            stride=picked.shape[1],
            rows=self.room,
            first_index=rollout.places,
            source=self.from_place,
            action=self.right,
            legal=rollout.legal,
            counts=self.counts,
            **dealt,
            weight=self.weight,
            policy_grad=at.logits_grad,
            value_grad=at.value_grad,
            partials=self.partials,
        )
        self.kernels.imitate((self.blocks, len(self.counts)), 256, heads, rows)
        return self.partials.sum(1)
