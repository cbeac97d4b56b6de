"""Frozen opponents on a GPU: the rows of all slots of all members, inside the rollout's graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.kernels import KernelModule
from sparring.kernels.views import KernelView
from sparring.learn.acting import check_slot
from sparring.learn.fused.games import Games
from sparring.nets.frozen.tiles import make_grouped


class FrozenOpponents:
    """Room for `slots` networks of every member, and their answers."""

    def __init__(
        self, games: Games, kernels: KernelModule, net: NetConfig, slots: int, *, bf16: bool
    ) -> None:
        members = len(games.seeds)
        self.kernels, self.slots = kernels, slots
        self.nets = make_grouped(
            games.rules,
            net,
            members,
            slots,
            bf16=bf16,
            device=games.device,
            memory=games.pool.memory_bytes,
        )
        self.passing = self.nets.make_pass(games.at_once * members)
        self.greedy = torch.zeros(members * slots, dtype=torch.uint8, device=games.device)
        # Small products do not fill the GPU: both passes at once take less time than in turn.
        self._stream = torch.cuda.Stream(games.device)  # type: ignore[no-untyped-call]
        self.filled = [[False] * (slots + 1) for _ in range(members)]
        self._heads = kernels.view(
            "HeadsView",
            policy=self.passing.logits,
            value=self.passing.logits,  # not used
            value_stride=0,
            policy_bias=self.nets.policy_bias,
            value_bias=self.nets.policy_bias,
            bias_stride=self.nets.bias_stride,
        )

    def put(self, member: int, slot: int, weights: Mapping[str, Tensor], *, greedy: bool) -> None:
        """Load a network into a slot; captured graphs use it."""
        check_slot(slot, self.slots)
        self.nets.load(member, slot, weights)
        self.greedy[member * self.slots + slot - 1] = int(greedy)
        self.filled[member][slot] = True

    def look(self, obs: Tensor, policy: Tensor, rows_each: int) -> None:
        """Start a grouped forward pass for the opponents' rows on a second stream."""
        passing = self.passing
        self._stream.wait_stream(torch.cuda.current_stream(obs.device))
        with torch.cuda.stream(self._stream):
            passing.sort(policy, rows_each)
            passing.read(obs)
            passing.forward()

    def remember(self, to: Tensor) -> None:
        """Write the new memory of those rows' seats, after `act`. to: [rows, numbers]."""
        made, position = self.passing.memory, self.passing.position
        if made is not None:
            theirs = made.index_select(0, position.clamp(min=0))
            to.copy_(torch.where(position[:, None] >= 0, theirs, to))

    def act(self, asked: dict[str, Any], answers: KernelView, blocks: int) -> None:
        """Sample actions of those rows after the forward pass.

        asked: fields of `AskedView`, as for the learner's rows. blocks: of 256 threads each.
        """
        passing = self.passing
        torch.cuda.current_stream(self.greedy.device).wait_stream(self._stream)
        frozen = self.kernels.view(
            "FrozenView", position=passing.position, group=passing.group_of, greedy=self.greedy
        )
        view = self.kernels.view("DecisionsView", **asked | {"frozen": frozen})
        self.kernels.draw(blocks, 256, self._heads, view, answers)
