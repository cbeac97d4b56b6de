"""The critics that see what is hidden on a GPU: `learn.critic` for all members, inside the graphs.

They have the passes of other perceptrons, kernels or autograd. tests/learn/test_fused_critic.py
holds values and gradients equal to those of autograd.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.learn.backends.torch import optimizer_state
from sparring.learn.critic import CRITIC, CRITIC_OPTIMIZER, critic_config, fresh_critic
from sparring.learn.fused.adam import FlatAdam
from sparring.learn.fused.heads import HiddenColumns
from sparring.learn.fused.magnet import AT_ONCE, places_by_member
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.head_terms import SEAT
from sparring.learn.learner import Snapshot
from sparring.nets.critic_rows import CriticRows
from sparring.nets.heads import HIDDEN
from sparring.nets.run.flat import FlatNet, Pass
from sparring.nets.run.make_flat import make_flat


class FusedCritic:
    """The critics of one network of all members."""

    adam: FlatAdam

    def __init__(
        self,
        policy: FlatNet,
        net: NetConfig,
        rollout: FusedRollout,
        seeds: Sequence[int],
        *,
        room: int,
    ) -> None:
        """Make critics with initial weights.

        policy: the network that learns, whose scale of returns they share. net: its configuration.
        seeds: of the members. room: samples of a minibatch.
        """
        self.rows, self.rollout = CriticRows(rollout.rules), rollout
        self.net = make_flat(
            self.rows.rules,
            critic_config(net),
            policy.members,
            has_policy=False,
            bf16=policy.bf16,
            device=policy.device,
        )
        for member, seed in enumerate(seeds):
            self.net.load(member, fresh_critic(self.rows, net, seed).state_dict())
        self.net.value_scale = policy.value_scale
        self.columns, self.room = HiddenColumns(rollout), room
        self.places = places_by_member(rollout, AT_ONCE)
        self.looking = self.net.make_pass(self.places.shape[2], learn=False)
        self.learning = self.net.make_pass(room, learn=True)
        with torch.device(policy.device):
            self.obs = torch.zeros(rollout.places, self.rows.row_bytes, dtype=torch.uint8)
            """Rows by place."""
            self.loss = torch.zeros(policy.members)
            """Sum of the losses of an update's optimizer steps, by member."""
        self._build(slice(0, 1))  # copies constants to the device before any capture

    def _build(self, at: slice) -> None:
        hidden = self.columns.by_place
        rows = self.rows.build(self.rollout.obs[at], hidden[HIDDEN][at], hidden[SEAT][at])
        self.obs[at].copy_(rows)

    @torch.no_grad()
    def fill(self) -> None:
        """Write the values of all places of a rollout; those of rows that nobody decided, too."""
        rollout = self.rollout
        self.loss.zero_()
        self.columns.fill()
        for at in range(0, rollout.places, AT_ONCE):
            self._build(slice(at, min(at + AT_ONCE, rollout.places)))
        for places in self.places:
            self.looking.read(self.obs, places)
            self.looking.forward()
            values = self.outputs(self.looking) * self.net.value_scale[:, None]
            rollout.value.index_copy_(0, places.reshape(-1).long(), values.reshape(-1))

    def outputs(self, at: Pass) -> Tensor:
        """Return the values of a pass in units of the scale of returns [members, rows]."""
        bias = self.net.value_bias.reshape(-1, 1, self.net.value_bias.shape[-1])
        return at.value[..., 0] + bias[..., 0]

    @torch.no_grad()
    def backward(self, picked: Tensor, stopped: Tensor) -> None:
        """Fill the gradients of a minibatch. picked: places of its samples [members, room]."""
        at, rollout, picked = self.learning, self.rollout, picked[:, : self.room].contiguous()
        at.read(self.obs, picked)
        at.forward()
        is_sample, place = picked >= 0, picked.clamp(min=0).long()
        share = is_sample / is_sample.sum(1, keepdim=True).clamp(min=1)
        returns = (rollout.advantage + rollout.value)[place] / self.net.value_scale[:, None]
        error = torch.where(is_sample, self.outputs(at) - returns, 0.0)
        at.value_grad[..., 0].copy_(2 * error * share)
        loss = (error**2 * share).sum(1)
        self.loss.add_(torch.where(stopped.bool(), 0.0, loss))
        at.backward()

    def kept(self) -> list[Tensor]:
        """All tensors that an update changes, besides the scale of returns."""
        return [self.net.weight, self.net.compute, *self.adam.kept()]

    def state(self, member: int) -> dict[str, dict[str, Tensor]]:
        """Copy weights and optimizer of a member for a snapshot."""
        optimizer = self.adam.state(member, self.net)
        return {CRITIC: self.net.state(member), CRITIC_OPTIMIZER: optimizer}

    def load(self, member: int, snapshot: Snapshot) -> None:
        """Restore a member's `state`."""
        self.net.load(member, snapshot.tensors[CRITIC])
        self.adam.load_state(member, self.net, optimizer_state(snapshot, CRITIC_OPTIMIZER))
