"""Advantages on a GPU: the launches of `learn.transitions` and GAE, in csrc/cuda/rollout.cuh.

A rollout on its way to transitions, the discounts of one network or of every role, and what is
carried to the next rollout. tests/cuda/test_fused_rollout.py and test_fused_hierarchy.py hold links
and advantages equal to those of a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sparring.kernels import Module
from sparring.kernels.views import View
from sparring.learn.advantages import Discounts
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.rollout import FusedRollout
from sparring.nets.hierarchy import RoleTeller
from sparring.pools.lineups import LEARNER

PLAYED = ("seat", "role", "policy", "reward", "terminated", "truncated", "skipped")
LINKED = ("end", "next", "paid", "discount", "tail")
ROWS = ("obs", "legal", "action", "log_prob", "value")


def rollout_view(kernels: Module, rollout: FusedRollout, final_role: Tensor | None = None) -> View:
    """The rows as they were played. Discounts are the members' own, and come apart.

    final_role: to which role the worth of a cut game belongs; None: to all.
    """
    rules = rollout.rules
    return kernels.view(
        "RolloutView",
        **{name: getattr(rollout, name) for name in (*PLAYED, "final_value", "open")},
        steps=rollout.steps,
        games=rollout.games,
        rows=rules.rows,
        seats=rules.seats,
        roles=len(rules.roles),
        chains=rollout.chains,
        learner=LEARNER,
        gamma=0.0,
        gamma_into=None,
        gamma_of=None,
        lambda_of=None,
        ended_by=None,
        final_role=final_role,
    )


def links_view(kernels: Module, rollout: FusedRollout) -> View:
    """What follows every decision."""
    return kernels.view("Links", **{name: getattr(rollout, name) for name in LINKED})


def estimate_view(
    kernels: Module, rollout: FusedRollout, *, apart: int, gamma_into: Tensor, **given: Any
) -> View:
    """How rewards are discounted, and where advantages are written.

    given: `gamma` and `gae_lambda` of every member, `apart` numbers from one to the next; and
        discounts by role, where roles have their own.
    """
    by_role = dict.fromkeys(("gamma_of", "lambda_of", "ended_by"))
    return kernels.view(
        "EstimateView",
        **by_role | given,
        apart=apart,
        gamma_into=gamma_into,
        value=rollout.value,
        advantage=rollout.advantage,
        each=rollout.games // rollout.members,
    )


class RoleDiscounts:
    """The discounts of every role and member, and the role that a cut game's worth belongs to."""

    def __init__(self, rollout: FusedRollout) -> None:
        self.rollout, device = rollout, rollout.obs.device
        self.teller = RoleTeller(rollout.rules).to(device)
        shape = rollout.members, len(rollout.rules.roles)
        with torch.device(device):
            self.gamma_into, self.gamma_of, self.lambda_of = (torch.zeros(shape) for _ in range(3))
            self.ended_by = torch.zeros(shape, dtype=torch.int32)
            self.final_role = torch.zeros(rollout.final_value.shape, dtype=torch.int8)

    def send(self, found: Sequence[Discounts]) -> None:
        """Send those of every member to the device."""
        for name in ("gamma_into", "gamma_of", "lambda_of", "ended_by"):
            getattr(self, name).copy_(torch.tensor([getattr(mine, name) for mine in found]))

    def role_at(self, number: int) -> Tensor:
        """In which role every row was to decide when its game was cut for the `number`th time."""
        role: Tensor = self.teller(self.rollout.cut_obs[number])
        return role.to(torch.int8)

    def view(self, kernels: Module) -> View:
        """See `estimate_view`."""
        return estimate_view(
            kernels,
            self.rollout,
            gamma=self.gamma_of,
            gae_lambda=self.lambda_of,
            apart=self.gamma_of.shape[1],
            gamma_into=self.gamma_into,
            gamma_of=self.gamma_of,
            lambda_of=self.lambda_of,
            ended_by=self.ended_by,
        )


def carry(kernels: Module, rollout: FusedRollout) -> None:
    """Keep the decisions that are still open for the next rollout."""
    rollout.carry_columns()
    carried = kernels.view(
        "CarriedView",
        **{name: getattr(rollout, name) for name in ("open", *ROWS)},
        carried=rollout.carried,
        row_bytes=rollout.obs.shape[1],
    )
    kernels.carry(blocks_of(rollout.carried, 8), 256, carried)
