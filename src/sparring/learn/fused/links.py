"""A rollout on its way to transitions, as csrc/cuda/rollout.cuh takes it, whatever learns."""

from __future__ import annotations

from torch import Tensor

from sparring.kernels import Module
from sparring.kernels.views import View
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.rollout import FusedRollout
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
