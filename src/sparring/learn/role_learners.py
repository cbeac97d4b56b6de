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
from sparring.learn.critic import Critic
from sparring.learn.forward import Forward
from sparring.learn.learner import Snapshot
from sparring.learn.magnet import MAGNET, Magnet
from sparring.learn.plan import RolePlan
from sparring.learn.playing import SelfPlay
from sparring.learn.terms import Term, truth_of
from sparring.learn.transforms import Mirroring
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.net import Net
from sparring.nets.run.native import NativeHierarchy

EPS = 1e-5
"""Of Adam."""
PPO_METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac")
"""Names of the metrics of `PPO.loss`."""
HAS_VALUE_SCALE, COPIED = "has_value_scale", "magnet_updates"
"""Metadata of snapshots. `COPIED`: the updates in which magnets were copied, by role."""


@dataclass
class RoleLearner:
    """One trained network."""

    net: Net
    forward: Forward
    backend: Backend
    settings: PPOConfig
    terms: list[Term]
    """Further loss terms; the magnet is one of them if any settings gave it weight."""
    magnet: Magnet
    has_value_scale: bool = False
    """False until the first rollout with a nonzero reward, which sets `net.value_scale`."""

    def use(self, settings: PPOConfig) -> None:
        """Learn with settings from now on."""
        self.settings = self.magnet.settings = settings
        if any(settings.magnet.values) and self.magnet not in self.terms:
            self.terms.append(self.magnet)


def make(
    playing: SelfPlay,
    roles: Sequence[RolePlan],
    collect: CollectConfig,
    terms: list[Term],
    *,
    native: bool,
) -> dict[str, RoleLearner]:
    """Make the learners of all roles.

    terms: further loss terms; the list of a shared network is this one, and may grow later.
    native: use native code where possible.
    """
    net, learners = playing.net, dict[str, RoleLearner]()
    mirrors = [one for one in playing.transforms.in_place if isinstance(one, Mirroring)]
    if roles[0].net.full_critic:
        assert not roles[0].role, "the plan refuses"
        threads = playing.threads if native else 0
        playing.critic = Critic(playing, roles[0].net, collect, threads=threads, eps=EPS)
    playing.collector.rollout.track_truth(truth_of([*terms, playing.critic]))
    for plan in roles:
        forward = playing.forward
        if isinstance(net, HierarchyNet):
            forward = Forward(net.net_of(plan.role), playing.device, collect)
        mine = list(terms) if plan.role else terms
        backend = make_backend(forward, playing.threads if native else 0, mine)
        settings = plan.settings[0]
        magnet = Magnet(forward, collect, playing.threads, settings, mirrors)
        learner = RoleLearner(forward.net, forward, backend, settings, mine, magnet)
        learner.use(settings)
        learners[plan.role] = learner
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
    """Return optimizer states, magnets and metadata for a snapshot."""
    scales = {role: learner.has_value_scale for role, learner in learners.items()}
    tensors = {group_of(role): learner.backend.tensors() for role, learner in learners.items()}
    meta: dict[str, Any] = {HAS_VALUE_SCALE: scales.get("", scales)}
    for role, learner in learners.items():
        if weights := learner.magnet.tensors():
            tensors[group_of(role, MAGNET)] = weights
            meta.setdefault(COPIED, {})[role] = learner.magnet.copied_at
    return tensors, meta


def load(learners: Mapping[str, RoleLearner], snapshot: Snapshot) -> None:
    """Restore optimizers, magnets and value scales from a snapshot."""
    for role, learner in learners.items():
        learner.backend.load(snapshot.tensors.get(group_of(role), {}))
        learner.magnet.load(*magnet_in(snapshot, role))
        learner.has_value_scale = has_value_scale(snapshot, role)


def group_of(role: str, group: str = OPTIMIZER) -> str:
    """Name of a role's optimizer state, or of another group, in snapshots."""
    return f"{group}.{role}" if role else group


def magnet_in(snapshot: Snapshot, role: str = "") -> tuple[Mapping[str, Tensor], int | None]:
    """Return the magnet's weights in a snapshot and the update of their copy; None: no magnet."""
    copied_at = snapshot.meta.get(COPIED, {}).get(role)
    return snapshot.tensors.get(group_of(role, MAGNET), {}), copied_at


def has_value_scale(snapshot: Snapshot, role: str = "") -> bool:
    saved = snapshot.meta[HAS_VALUE_SCALE]
    return bool(saved[role] if role else saved)
