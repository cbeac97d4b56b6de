"""Work of a run: multiply-adds of its networks per forward pass and per trained sample.

Only matrix products count as work. Activations, losses, shuffling and the optimizer count as time
only, because a faster program would spend less on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sparring.learn.critic import fresh_critic
from sparring.learn.memory import has_replay
from sparring.learn.plan import CPU, Plan
from sparring.nets.critic_rows import CriticRows
from sparring.nets.critics import CRITICS, Critics
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.layers import FirstLayer
from sparring.nets.net import Net
from sparring.nets.sizes import count

ALL_ROLES = ""
"""The role of a network that is shared by all roles."""


@dataclass(frozen=True)
class MacsPerRow:
    """Multiply-adds of one row: forward pass and backward pass."""

    forward: float
    backward: float


def macs_of(net: Net, *, density: float = 1.0) -> MacsPerRow | None:
    """Return the multiply-adds of a network; None if they cannot be counted.

    density: share of nonzero observation values. A sparse first layer on a CPU multiplies only
        those, forward and for the gradient of its weights; its input needs no gradient.
    """
    counted = count(net)
    if counted.macs is None or counted.backward is None:
        return None
    macs = {layer.name: layer.macs for layer in counted.layers}
    skipped = sum(
        (1.0 - density) * macs[name]
        for name, module in net.named_modules()
        if isinstance(module, FirstLayer) and module.sparse
    )
    return MacsPerRow(counted.macs - skipped, counted.backward - skipped)


def critic_macs(critics: Critics) -> MacsPerRow:
    """Return the multiply-adds of all critics; their first layers are dense."""
    widths = critics.widths
    layers = [float(critics.count * a * b) for a, b in pairwise(widths)]
    # Gradients of weights and of inputs; the first layer's input needs none.
    return MacsPerRow(sum(layers), 2 * sum(layers) - layers[0])


@dataclass(frozen=True)
class WorkPerSample:
    """Multiply-adds per forward pass and per trained sample, by role."""

    inference: Mapping[str, float]
    update: Mapping[str, float]
    """Of a sample in one epoch, including critics."""
    epochs: Mapping[str, int]
    """At most; 1 with a replay buffer."""
    minibatch: Mapping[str, int]

    def trained_samples(self, role: str, samples: float, steps: float) -> float:
        """Samples times epochs, reckoned from optimizer steps: `target_kl` may end epochs early."""
        if not samples or not steps:
            return 0.0
        steps_per_epoch = max(1, round(samples / self.minibatch[role]))
        return samples * min(float(self.epochs[role]), steps / steps_per_epoch)


def work_of(plan: Plan, algo: str, net: Net, density: float = 1.0) -> WorkPerSample | None:
    """Return the work of a plan with a built-in learner; None if it cannot be counted.

    net: of the same architecture as the learner's. density: see `macs_of`.
    """
    density = density if plan.device == CPU else 1.0
    settings = {one.role: one.settings[0] for one in plan.roles} or {ALL_ROLES: plan.settings[0]}
    nets = dict(nets_by_role(net)) or {ALL_ROLES: net}
    macs = dict[str, MacsPerRow]()
    for role, one in nets.items():
        counted = macs_of(one, density=density)
        if counted is None:
            return None
        macs[role] = counted
    inference = {role: one.forward for role, one in macs.items()}
    if has_replay(plan):
        update = {ALL_ROLES: replay_macs(algo, macs[ALL_ROLES], settings[ALL_ROLES], net)}
        return WorkPerSample(inference, update, {ALL_ROLES: 1}, {ALL_ROLES: plan.replay.batch})
    update = {role: one.forward + one.backward for role, one in macs.items()}
    if plan.net.full_critic:
        rows = CriticRows(plan.rules)
        critic = macs_of(fresh_critic(rows, plan.net, plan.seed), density=density)
        update[ALL_ROLES] += critic.forward + critic.backward if critic else 0.0
    return WorkPerSample(
        inference,
        update,
        {role: one.epochs for role, one in settings.items()},
        {role: one.minibatch for role, one in settings.items()},
    )


def replay_macs(algo: str, macs: MacsPerRow, settings: Any, net: Net) -> float:
    if algo in ("dqn", "qrdqn"):  # online net, target on the next state, online too if double
        return (2.0 + bool(settings.double)) * macs.forward + macs.backward
    widths = settings.critic_hidden or net.config.hidden
    number = getattr(settings, "critics", CRITICS)
    critics = critic_macs(Critics(net.inputs, widths, norm=settings.critic_norm, count=number))
    # Critics: forward for targets, for the sampled actions and for the actor's actions; backward
    # for the sampled actions, and to the action for the actor's if actions are continuous.
    critic_total = 3 * critics.forward + critics.backward + critics.forward * bool(net.box)
    return 2 * macs.forward + macs.backward + critic_total
