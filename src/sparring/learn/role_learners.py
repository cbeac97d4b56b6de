"""Networks that PPO trains, by role: forward pass, backend, settings and value scale of each.

A network shared by all roles has the role "".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sparring.config import CollectConfig, PPOConfig
from sparring.learn.backends import Backend
from sparring.learn.backends.native import NativeBackend
from sparring.learn.backends.torch import OPTIMIZER, TorchBackend
from sparring.learn.forward import Forward
from sparring.learn.learner import Snapshot
from sparring.learn.plan import RolePlan
from sparring.learn.playing import SelfPlay
from sparring.learn.terms import Term
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.net import Net
from sparring.nets.run.native import NativeHierarchy

EPS = 1e-5
"""Of Adam."""
PPO_METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac")
"""Names of the metrics of `PPO.loss`."""
HAS_VALUE_SCALE = "has_value_scale"


@dataclass
class RoleLearner:
    """One trained network."""

    net: Net
    forward: Forward
    backend: Backend
    settings: PPOConfig
    has_value_scale: bool = False
    """False until the first rollout with a nonzero reward, which sets `net.value_scale`."""


def make(
    playing: SelfPlay,
    roles: Sequence[RolePlan],
    collect: CollectConfig,
    terms: Sequence[Term],
    *,
    native: bool,
) -> dict[str, RoleLearner]:
    """Make the learners of all roles.

    terms: further loss terms; the list may grow later. native: use native code where possible.
    """
    net, learners = playing.net, dict[str, RoleLearner]()
    for plan in roles:
        forward = playing.forward
        if isinstance(net, HierarchyNet):
            forward = Forward(net.net_of(plan.role), playing.device, collect)
        backend = make_backend(forward, playing.threads if native else 0, terms)
        learners[plan.role] = RoleLearner(forward.net, forward, backend, plan.settings[0])
    native_nets = {
        role: learner.forward.native for role, learner in learners.items() if learner.forward.native
    }
    if isinstance(net, HierarchyNet) and len(native_nets) == len(learners):
        playing.forward.lean = NativeHierarchy(net, native_nets).forward_heads
    return learners


def make_backend(forward: Forward, threads: int, terms: Sequence[Term] = ()) -> Backend:
    """Return the native backend if it supports the network, else torch's. threads: 0 is torch."""
    native = forward.go_native(threads) if threads else None
    if native:
        return NativeBackend(native, eps=EPS, metric_names=PPO_METRICS, terms=terms)
    return TorchBackend(forward.net, eps=EPS, metric_names=PPO_METRICS)


def save(
    learners: Mapping[str, RoleLearner],
) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """Return optimizer states and metadata for a snapshot."""
    scales = {role: learner.has_value_scale for role, learner in learners.items()}
    tensors = {group_of(role): learner.backend.tensors() for role, learner in learners.items()}
    return tensors, {HAS_VALUE_SCALE: scales.get("", scales)}


def load(learners: Mapping[str, RoleLearner], snapshot: Snapshot) -> None:
    """Restore optimizers and value scales from a snapshot."""
    for role, learner in learners.items():
        learner.backend.load(snapshot.tensors.get(group_of(role), {}))
        learner.has_value_scale = has_value_scale(snapshot, role)


def group_of(role: str) -> str:
    """Name of a role's optimizer state in snapshots."""
    return f"{OPTIMIZER}.{role}" if role else OPTIMIZER


def has_value_scale(snapshot: Snapshot, role: str = "") -> bool:
    saved = snapshot.meta[HAS_VALUE_SCALE]
    return bool(saved[role] if role else saved)
