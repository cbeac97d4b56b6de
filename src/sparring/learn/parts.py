"""What PPO has of every network that learns: how it runs, its optimizer, settings, unit of values.

One network for all roles is the part of role "".
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
from sparring.learn.playing import Playing
from sparring.learn.terms import Term
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.net import Net
from sparring.nets.run.native import NativeHierarchy

EPS = 1e-5
"""Adam's."""
LOGGED = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac")
"""The losses that curves show."""
HAS_UNIT = "has_unit"


@dataclass
class Part:
    """One network that learns."""

    net: Net
    forward: Forward
    backend: Backend
    settings: PPOConfig
    has_unit: bool = False
    """Whether a rollout has paid anything yet; the first that does sets the unit of values."""


def make_parts(
    playing: Playing,
    roles: Sequence[RolePlan],
    collect: CollectConfig,
    terms: Sequence[Term],
    *,
    native: bool,
) -> dict[str, Part]:
    """Make those of all roles. terms: of the loss; may grow later. native: where that can be."""
    net, parts = playing.net, dict[str, Part]()
    for plan in roles:
        forward = playing.forward
        if isinstance(net, HierarchyNet):
            forward = Forward(net.of(plan.role), playing.device, collect)
        backend = make_backend(forward, playing.threads if native else 0, terms)
        parts[plan.role] = Part(forward.net, forward, backend, plan.settings[0])
    computed = {role: part.forward.native for role, part in parts.items() if part.forward.native}
    if isinstance(net, HierarchyNet) and len(computed) == len(parts):
        playing.forward.lean = NativeHierarchy(net, computed).say
    return parts


def make_backend(forward: Forward, threads: int, terms: Sequence[Term] = ()) -> Backend:
    """Native if the network can be computed so, else torch. threads: 0 is torch."""
    native = forward.go_native(threads) if threads else None
    if native:
        return NativeBackend(native, eps=EPS, shown=LOGGED, terms=terms)
    return TorchBackend(forward.net, eps=EPS, shown=LOGGED)


def save_parts(parts: Mapping[str, Part]) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """What a snapshot has of optimizers, and of units."""
    units = {role: part.has_unit for role, part in parts.items()}
    tensors = {group_of(role): part.backend.tensors() for role, part in parts.items()}
    return tensors, {HAS_UNIT: units.get("", units)}


def load_parts(parts: Mapping[str, Part], snapshot: Snapshot) -> None:
    """Go on with the optimizers and units of a snapshot."""
    for role, part in parts.items():
        part.backend.load(snapshot.tensors.get(group_of(role), {}))
        part.has_unit = has_unit(snapshot, role)


def group_of(role: str) -> str:
    """What snapshots call the state of a role's optimizer."""
    return f"{OPTIMIZER}.{role}" if role else OPTIMIZER


def has_unit(snapshot: Snapshot, role: str = "") -> bool:
    """Whether values have a unit yet."""
    known = snapshot.meta[HAS_UNIT]
    return bool(known[role] if role else known)
