"""What a run has to compute: multiply-adds of its networks, for every row answered or learned from.

Only products are counted. Activations, losses, shuffling and the optimizer are what a faster
program would spend less on, so that they count as time and not as work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sparring.learn.plan import CPU, Plan
from sparring.nets.critics import CRITICS, Critics
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.layers import FirstLayer
from sparring.nets.net import Net
from sparring.nets.sizes import count

ALL = ""
"""The role of a network that is for all of them."""


@dataclass(frozen=True)
class Passes:
    """Multiply-adds of one row on its way through a network, and of its gradients."""

    forward: float
    backward: float


def passes_of(net: Net, *, density: float = 1.0) -> Passes | None:
    """The products of a network by its `count`; None where they cannot be counted.

    density: share of the numbers in a row that are not 0. A sparse first layer on a CPU multiplies
        only those, forward and for the gradient of its weights; nobody needs that of what it reads.
    """
    counted = count(net)
    if counted.macs is None or counted.backward is None:
        return None
    macs = {layer.name: layer.macs for layer in counted.layers}
    spared = sum(
        (1.0 - density) * macs[name]
        for name, module in net.named_modules()
        if isinstance(module, FirstLayer) and module.sparse
    )
    return Passes(counted.macs - spared, counted.backward - spared)


def critic_passes_of(critics: Critics) -> Passes:
    """Count the products of both critics, which read every number."""
    widths = critics.widths
    layers = [float(CRITICS * a * b) for a, b in pairwise(widths)]
    # A gradient of weights and one of inputs, but for what the first layer reads.
    return Passes(sum(layers), 2 * sum(layers) - layers[0])


@dataclass(frozen=True)
class Work:
    """Multiply-adds for every row that is answered, and for every sample that is learned from."""

    answered: Mapping[str, float]
    """By role."""
    learned: Mapping[str, float]
    """By role, for a sample in one epoch; critics are among it."""
    epochs: Mapping[str, int]
    """By role, at most; 1 where samples come from replay."""
    minibatch: Mapping[str, int]

    def passes_made(self, role: str, samples: float, steps: float) -> float:
        """How often samples were learned from, in all: a policy that moved far stops early."""
        if not samples or not steps:
            return 0.0
        each = max(1, round(samples / self.minibatch[role]))
        return samples * min(float(self.epochs[role]), steps / each)


def work_of(plan: Plan, algo: str, net: Net, density: float = 1.0) -> Work | None:
    """Reckon the work of a plan whose learner is one of ours; None where it cannot be counted.

    net: of the same kind as the learner's. density: see `passes_of`.
    """
    density = density if plan.device == CPU else 1.0
    settings = {one.role: one.settings[0] for one in plan.roles} or {ALL: plan.settings[0]}
    nets = dict(nets_by_role(net)) or {ALL: net}
    passes = dict[str, Passes]()
    for role, one in nets.items():
        found = passes_of(one, density=density)
        if found is None:
            return None
        passes[role] = found
    answered = {role: one.forward for role, one in passes.items()}
    if algo == "sac" or (algo == "dqn" and settings[ALL].mode != "rollouts"):
        replayed = {ALL: from_replay(algo, passes[ALL], settings[ALL], net)}
        return Work(answered, replayed, {ALL: 1}, {ALL: plan.replay.batch})
    return Work(
        answered,
        {role: one.forward + one.backward for role, one in passes.items()},
        {role: one.epochs for role, one in settings.items()},
        {role: one.minibatch for role, one in settings.items()},
    )


def from_replay(algo: str, passes: Passes, settings: Any, net: Net) -> float:
    if algo == "dqn":  # what is sampled, what follows it by the target, and by itself if double
        return (2.0 + bool(settings.double)) * passes.forward + passes.backward
    critics = critic_passes_of(
        Critics(net.inputs, settings.critic_hidden or net.config.hidden, norm=settings.critic_norm)
    )
    # Targets of what follows, what was done, what the actor would do; back through the second,
    # and through the third as far as its action, where actions are numbers.
    judged = 3 * critics.forward + critics.backward + critics.forward * bool(net.box)
    return 2 * passes.forward + passes.backward + judged
