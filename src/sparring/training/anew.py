"""A learner that begins anew in the middle of a run."""

from __future__ import annotations

from dataclasses import replace

import torch

from sparring.learn.learner import Learner
from sparring.learn.plan import Plan
from sparring.nets.make import make_net
from sparring.nets.net import asked_heads, blend_in

KEPT = ("carried", "replay")
"""What goes on: open decisions, and what is remembered."""


def start_anew(learner: Learner, plan: Plan, number: int, member: int) -> None:
    """Give a learner fresh weights and a fresh optimiser; its games go on.

    What is remembered in a replay stays: it says what games are like, not how to play them.
    """
    now = learner.snapshot(member)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seeds[member] + 1_000_003 * number)
        net = make_net(
            learner.rules,
            plan.net,
            heads=asked_heads(learner.rules, plan.heads),
            memory=now.meta.get("memory", 0),
            roles=plan.role_nets,
        )
    blend_in(net, plan.heads)
    kept = {name: now.tensors[name] for name in KEPT if name in now.tensors}
    tensors = {**kept, "net": dict(net.state_dict()), "optimiser": {}}
    learner.restore(replace(now, tensors=tensors, meta={**now.meta, "has_unit": False}), member)
