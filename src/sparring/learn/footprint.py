"""What networks keep on a GPU for their passes: made once, so it is known before anything is."""

from __future__ import annotations

import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.learn.plan import CPU, Plan
from sparring.nets.inputs import Inputs, memory_of
from sparring.nets.make import make_net
from sparring.nets.net import head_width
from sparring.nets.residual import layout_of
from sparring.nets.run.flat import VALUE_WIDTH, rounded_up, widened_width
from sparring.nets.sizes import dense_twin

SORT_BYTES = 16
"""Of every row that frozen networks answer: its place, the row and the group there, its turn."""
GAPS = 2
"""Passes over boards make what they need anew, and graphs keep it: about as much lies between."""
BOARDS = 4
"""Boards of all channels that a pass over a residual net has at once, those that it reads too."""

IMAGES = 4
"""Copies of a row and its mask that are there at once while a minibatch is mirrored."""
ALIVE = 4
"""Tensors that a pass without gradients has at once, about."""
TRACED_ROWS = 64
"""Of a pass that is only looked at; so many that what all rows share does not count."""


def pass_bytes(rules: Rules, net: NetConfig, *, bf16: bool, learn: bool) -> int:
    """Bytes of a row in a pass; with learn, of its gradients too."""
    number, heads = 2 if bf16 else 4, rounded_up(head_width(rules)) + VALUE_WIDTH
    inside = inside_of(rules, net, learn=learn)
    widened = widened_width(Inputs(rules, memory_of(rules, net), net.inputs))
    return number * (widened + inside + heads * learn) + 4 * heads


def inside_of(rules: Rules, net: NetConfig, *, learn: bool) -> int:
    """Numbers of a row inside a network."""
    if net.kind == "mlp" and not net.recurrent:
        towers = sum(net.hidden) * (1 if net.shared else 2)
        return (towers + sum(net.policy_hidden + net.value_hidden)) * (2 if learn else 1)
    if net.kind != "residual":
        kept = traced(rules, net)
        alive = sum(sorted(kept)[-ALIVE:])
        return alive + sum(kept) * learn
    boards = BOARDS + (2 * net.blocks if learn else 0)
    return boards * net.channels * layout_of(rules).squares


def traced(rules: Rules, net: NetConfig) -> list[int]:
    """Numbers of a row that autograd keeps of a forward pass, by tensor.

    For networks without passes of their own; it is tried with a few rows of zeros.
    """
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.random.fork_rng(devices=[]):
        made = dense_twin(make_net(rules, net, memory=memory_of(rules, net)))
    obs = torch.zeros(TRACED_ROWS, made.inputs.row_bytes, dtype=torch.uint8)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        made(obs)
    own = [*made.parameters(), *made.buffers()]
    besides = {one.untyped_storage()._cdata for one in own}
    return [one.numel() // TRACED_ROWS for at, one in kept.items() if at not in besides]


def acting_bytes(plan: Plan) -> int:
    """Bytes of a row for those who answer it: every network for itself, frozen ones together.

    With games on CPU threads, which are answered slot by slot, another pass looks at cut games.
    """
    bf16, rules = plan.collect.bf16, plan.rules
    nets = [role.net for role in plan.roles] or [plan.net]
    passes = 2 if plan.games_on == CPU else 1
    own = passes * sum(pass_bytes(rules, net, bf16=bf16, learn=False) for net in nets)
    if not plan.cast.slots:
        return own
    return own + pass_bytes(rules, plan.net, bf16=bf16, learn=False) + SORT_BYTES


def minibatch_bytes(plan: Plan) -> int:
    """Bytes of all minibatches that are learned from at once: one of each member."""
    bf16, rules = plan.collect.bf16, plan.rules
    pairs = [(role.net, role.settings[0]) for role in plan.roles] or [(plan.net, plan.settings[0])]
    images = IMAGES * plan.collect.mirror * (rules.obs_bytes + 64 * rules.legal_words)
    return len(plan.seeds) * sum(
        minibatch_rows(plan, net, getattr(own, "minibatch", 0))
        * (
            pass_bytes(rules, net, bf16=bf16, learn=True) * (GAPS if net.kind == "residual" else 1)
            + images
        )
        for net, own in pairs
    )


def minibatch_rows(plan: Plan, net: NetConfig, samples: int) -> int:
    """Rows of a minibatch of so many samples: in segments there is room for nobody's besides."""
    if not net.recurrent:
        return samples
    from sparring.learn.fused.sequences import Cut

    rules, collect = plan.rules, plan.collect
    played = collect.games * collect.steps * rules.rows
    seats, length = collect.games * rules.seats, min(net.segment, collect.steps + 1)
    cut = Cut(1, seats, collect.steps, seats + played, length)
    return cut.room(max(1, round(played / samples))) * length
