"""Self-play: network, collector, frozen opponents, snapshots.

Every learner on the host owns a `SelfPlay`; `learn.fused.playing` does the same for CUDA graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, HindsightConfig, NetConfig
from sparring.errors import ConfigError, StateError
from sparring.games.seeds import derive_seed
from sparring.learn.acting import Actor, PoolActor, SlotActor, check_slot
from sparring.learn.averaging import TRAINED, WeightAverage, trained_weights
from sparring.learn.collect import Collector
from sparring.learn.forward import Forward
from sparring.learn.learner import GAMES, Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.process_group import SINGLE, ProcessGroup
from sparring.learn.rollout import Columns
from sparring.learn.transforms import transforms_of
from sparring.nets.critic_rows import CriticRows
from sparring.nets.frozen.cpu import GroupedHierarchy, GroupedNet
from sparring.nets.heads import configured_heads
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net, set_wdl_blend
from sparring.nets.policy import BY_VALUE, DETERMINISTIC, Policy
from sparring.phases import Timing
from sparring.pools.lineups import LEARNER, Mixes
from sparring.pools.protocol import GamePool


class SelfPlay:
    """The network and the collector that steps a pool with it."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        net: NetConfig,
        actor: Callable[[Forward], Actor],
        columns: Columns = (),
        *,
        policy_meta: Mapping[str, bool] | None = None,
        rows_on: str = "",
        collector: Callable[..., Collector] = Collector,
        seed: int = 0,
        threads: int = 1,
        device: str = "cpu",
        by_role: bool = False,
        slots: int = 0,
        actors: Mapping[int, Actor] | None = None,
        roles: Mapping[str, NetConfig] | None = None,
        first: Overrides | None = None,
        hindsight: HindsightConfig | None = None,
        first_row: int = 0,
        heads: HeadsConfig | None = None,
        average: float = 0.0,
        quantiles: int = 0,
    ) -> None:
        """Make network and collector for a pool.

        actor: makes the learner's actor. columns: arrays that it stores besides actions.
        facts: what policies say about their heads, see `nets.policy.HEAD_META`.
        rows_on: the device of rows when transforms change them; "": that of the network.
        collector: makes who plays the pool.
        roles: networks by role instead of a shared one; decisions are then linked by role.
        slots: number of slots for frozen networks, see `learn.acting`.
        actors: of other players, by policy id.
        first: overrides for the first games.
        hindsight: relabeling of decisions; needs a pool that records goal results.
        first_row: index of the pool's first row among all pools.
        heads: auxiliary heads.
        average: share of the training whose average weights play, see `learn.averaging`; 0: none.
        quantiles: of the return of every action, which the network has a head for; 0: none.
        """
        torch.manual_seed(seed)
        self.rules = pool.rules
        """The rules of the run; phases change flags of the pool alone."""
        if first is not None:
            apply_game_overrides(pool, first)
        self.pool, self.seed, self.device = pool, seed, torch.device(device)
        self.threads, self.policy_meta = threads, dict(policy_meta or {})
        self.best_only = not {BY_VALUE, DETERMINISTIC}.isdisjoint(self.policy_meta)
        """Whether policies always play the best action."""
        self.net = make_net(
            pool.rules,
            net,
            heads=configured_heads(pool.rules, heads, quantiles),
            memory=pool.memory_bytes,
            threads=threads,
            roles=roles,
        )
        set_wdl_blend(self.net, heads)
        self.net.to(self.device)
        self.average = WeightAverage(self.net, average) if average else None
        self._check_memory()
        self.phases = Timing()
        self.transforms = transforms_of(
            pool, collect, hindsight, seed=seed, device=torch.device(rows_on or device)
        )
        self.forward = Forward(self.net, self.device, collect)
        self.best_matmul = self.forward.best_matmul if self.forward.switches else nullcontext
        """Context manager for the fastest matrix products."""
        self.actor = actor(self.forward)
        self.collector = collector(
            pool,
            collect,
            self.actor,
            columns,
            self.phases,
            squash=net.squash,
            pinned=self.device.type == "cuda",
            by_role=by_role or bool(roles),
            first_row=first_row,
            seeing=CriticRows(pool.rules) if net.sees else None,
        )
        self.report = self._report_averaged if self.average else self.collector.report
        """Finishes an update, and makes its report of metrics and the number of samples."""
        self.collector.actors |= actors or {}
        for other in (actors or {}).values():
            if isinstance(other, PoolActor):
                other.join(pool, first_row)
        self.critic: Any = None
        """A `learn.critic.Critic` that writes the values of rollouts, instead of the network."""
        self._slots: SlotActor | None = None
        if slots:
            options: dict[str, Any] = {"memory": pool.memory_bytes, "threads": threads}
            blind = replace(net, sees=False)  # opponents see no more than their seat
            frozen = (
                GroupedHierarchy(pool.rules, roles, slots, **options)
                if roles
                else GroupedNet(pool.rules, blind, slots, **options)
            )
            self._slots = self.collector.slots = SlotActor(frozen, slots, seed)

    def _check_memory(self) -> None:
        """Raise if the pool has not the bytes of memory that the network needs."""
        net, pool = self.net, self.pool
        if net.inputs.memory != pool.memory_bytes:
            raise ConfigError(
                f"the pool has {pool.memory_bytes} bytes of memory per seat and net.memory "
                f"{net.config.memory} needs {net.inputs.memory}; make it with "
                f"memory={net.inputs.memory}"
            )

    def dry_run(self, learner: Any, hparams: Any) -> Report:
        """Make an update without stepping games, and restore everything.

        learner: from rollouts; has `update`, `snapshot`, `load`, `updates` and `samples`.
        """
        collector, saved, front = self.collector, learner.snapshot(), self.collector.pending_state()
        started = time.perf_counter()
        with self.best_matmul():
            collector.dry_run(learner.updates)
            stats = collector.count_work() | learner.update(hparams)
        report = collector.report(stats, learner.samples)
        other_s = time.perf_counter() - started - sum(self.phases.seconds.values())
        self.phases.seconds["other"] = max(other_s, 0.0)
        self._load_nets(saved)
        learner.load(saved)
        collector.load_pending_rows(*front)
        return report

    def _load_nets(self, snapshot: Snapshot) -> None:
        self.net.load_state_dict(trained_weights(snapshot.tensors))
        if self.critic:
            self.critic.load(snapshot.tensors)

    @property
    def exact(self) -> bool:
        return self.collector.exact

    # Frozen opponents, as `learn.acting.TakesOpponents` has them

    @property
    def slots(self) -> int:
        return self._slots.slots if self._slots else 0

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        check_slot(slot, self.slots)
        assert self._slots
        self._slots.put(slot, weights, greedy=greedy or self.best_only)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self.pool.set_mixes(mixes)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        return self.pool.seated(self.slots + 1)

    # Reports, saving and playing

    def _report_averaged(self, stats: dict[str, float], samples: int) -> Report:
        assert self.average
        self.average.add(self.collector.decisions)
        return self.collector.report(stats, samples)

    def policy(self, updates: int) -> Policy:
        """Return a frozen copy of the policy after so many updates."""
        net = self.net.cpu_copy()
        if self.average:
            net.load_state_dict(self.average.tensors())
        return Policy(self.rules, net, name=f"update {updates}", meta=self.policy_meta)

    def snapshot(self, updates: int, samples: int) -> Snapshot:
        """Copy weights, games, pending transitions and counts."""
        rows, blobs = self.collector.state()
        nets = {"net": copied(self.net)} | (self.critic.tensors() if self.critic else {})
        if self.average:
            nets |= {TRAINED: nets["net"], "net": self.average.tensors()}
        return Snapshot(
            tensors={**nets, "carried": rows},
            blobs=blobs,
            meta={
                "update": updates,
                "decisions": self.collector.decisions,
                "samples": samples,
                "opponent_rows": self.collector.opponent_rows,
                **self.policy_meta,
                **self.net.describe(),
            },
        )

    def restore(self, snapshot: Snapshot, *, fresh: bool) -> int:
        """Restore `snapshot`; return its updates. fresh: this learner has made none."""
        try:
            self._load_nets(snapshot)
        except RuntimeError as error:
            first = str(error).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds another network: {first}") from None
        if self.average:
            self.average.load(snapshot)
        updates = int(snapshot.meta["update"])
        self.collector.load_state(snapshot.tensors["carried"], snapshot.blobs, snapshot.meta)
        if fresh and updates and GAMES not in snapshot.blobs:
            self.collector.begin(derive_seed(self.seed, updates))
        return updates


def copied(module: torch.nn.Module) -> dict[str, Tensor]:
    """Copy the state dict of a module to the CPU."""
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}


def normalizes(net: Net) -> bool:
    """Whether a network, or that of any role, normalizes observations."""
    return any(each.normalizer is not None for _, each in nets_by_role(net) or [("", net)])


def update_normalizer(net: Net, collector: Collector, group: ProcessGroup = SINGLE) -> None:
    """Add the learner's rows of a rollout to the network's observation statistics.

    With a network per role, each gets the rows of its role. group: replicas add those of all.
    """
    nets = nets_by_role(net) or [("", net)]
    if all(each.normalizer is None for _, each in nets):
        return
    rollout = collector.rollout
    obs, role = rollout.obs[collector.transitions.max_pending :], rollout.role.reshape(-1)
    is_learner = rollout.policy.reshape(-1) == LEARNER
    for number, (name, each) in enumerate(nets):
        rows = is_learner & (role == number) if name else is_learner
        chosen = torch.from_numpy(obs[np.flatnonzero(rows)])
        if group.size == 1 or each.normalizer is None:
            each.update_normalizer(chosen)
            continue
        before = copied(each.normalizer)
        each.normalizer.clear()
        each.update_normalizer(chosen)
        mine = each.normalizer.statistics()
        parts = mine.new_zeros((group.size, len(mine)))
        parts[group.rank] = mine
        group.sum_(parts)  # the same bits in every replica, merged in one order
        each.normalizer.load_state_dict(before)
        for part in parts:
            each.normalizer.merge_statistics(part)


def share_normalizer(net: Net, other: Net) -> None:
    """Make another network of the same architecture, such as a target, share the normalizer."""
    if isinstance(net, Perceptron) and isinstance(other, Perceptron):
        other.first.normalizer = net.first.normalizer
