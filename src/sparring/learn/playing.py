"""Playing: the network, the pool that is played with it, frozen opponents, and what is saved.

Every learner that plays step by step owns one of these; `learn.fused` has the same for graphs on a
GPU. How a learner learns is on its own page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, HindsightConfig, NetConfig
from sparring.errors import ConfigError, StateError
from sparring.games.seeds import derive_seed
from sparring.learn.acting import Actor, SlotActor, check_slot
from sparring.learn.collect import Collector
from sparring.learn.forward import Forward
from sparring.learn.learner import Overrides, Report, Snapshot, Timing, apply_game_overrides
from sparring.learn.transforms import transforms_of
from sparring.nets.frozen.cpu import GroupedHierarchy, GroupedNet
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net, configured_heads, set_wdl_blend
from sparring.nets.policy import BY_VALUE, Policy
from sparring.pools.lineups import LEARNER, Mixes
from sparring.pools.protocol import GamePool


class SelfPlay:
    """Owns the network that plays and the collector that plays the pool with it."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        net: NetConfig,
        actor: Callable[[Forward], Actor],
        columns: Sequence[str] = (),
        *,
        facts: Mapping[str, bool] | None = None,
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
    ) -> None:
        """Take over a pool.

        actor: makes who answers the learner's rows. columns: what it says besides actions.
        facts: what policies say about their heads, see `nets.policy.HEAD_META`.
        rows_on: the device of rows when transforms change them; "": that of the network.
        collector: makes who plays the pool.
        roles: networks by role instead of one for all; decisions are then linked by role.
        slots: room for frozen networks of the same kind, see `learn.acting`.
        actors: who else plays, by policy id.
        first: what the first games begin under, where it is not the run's own.
        hindsight: how decisions are seen once more, if they are; then the pool keeps records.
        first_row: rows of other pools that go before these.
        heads: what the network is asked besides policy and value.
        """
        torch.manual_seed(seed)
        self.rules = pool.rules
        """The game as the run has it; phases change flags of the pool's alone."""
        if first is not None:
            apply_game_overrides(pool, first)
        self.pool, self.seed, self.device = pool, seed, torch.device(device)
        self.threads, self.facts = threads, dict(facts or {})
        self.net = make_net(
            pool.rules,
            net,
            heads=configured_heads(pool.rules, heads),
            memory=pool.memory_bytes,
            threads=threads,
            roles=roles,
        )
        set_wdl_blend(self.net, heads)
        self.net.to(self.device)
        self._check_memory()
        self.phases = Timing()
        self.transforms = transforms_of(
            pool, collect, hindsight, seed=seed, device=torch.device(rows_on or device)
        )
        """What is done to rows before they are learned from."""
        self.forward = Forward(self.net, self.device, collect)
        self.best_matmul = self.forward.best_matmul if self.forward.switches else nullcontext
        """A context in which products are computed the fastest way."""
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
        )
        self.collector.actors |= actors or {}
        self._slots: SlotActor | None = None
        if slots:
            room: dict[str, Any] = {"memory": pool.memory_bytes, "threads": threads}
            frozen = (
                GroupedHierarchy(pool.rules, roles, slots, **room)
                if roles
                else GroupedNet(pool.rules, net, slots, **room)
            )
            self._slots = self.collector.slots = SlotActor(frozen, slots, seed)

    def _check_memory(self) -> None:
        """Refuse a pool without room for what the network remembers."""
        net, pool = self.net, self.pool
        if net.inputs.memory != pool.memory_bytes:
            raise ConfigError(
                f"the pool has {pool.memory_bytes} bytes of memory per seat and net.memory "
                f"{net.config.memory} needs {net.inputs.memory}; make it with "
                f"memory={net.inputs.memory}"
            )

    def dry_run(self, learner: Any, hparams: Any) -> Report:
        """Make an update with games that cost nothing, and put everything back.

        learner: from rollouts; has `update`, `snapshot`, `load` for all but playing, and counts.
        """
        collector, kept, front = self.collector, learner.snapshot(), self.collector.pending_state()
        started = time.perf_counter()
        with self.best_matmul():
            collector.dry_run(learner.updates)
            stats = learner.update(hparams)
        report = collector.report(stats, learner.samples)
        left = time.perf_counter() - started - sum(self.phases.seconds.values())
        self.phases.seconds["other"] = max(left, 0.0)
        self.net.load_state_dict(kept.tensors["net"])
        learner.load(kept)
        collector.load_pending_rows(*front)
        return report

    @property
    def exact(self) -> bool:
        """Whether a snapshot holds the games in flight."""
        return self.collector.exact

    # Frozen opponents, as `learn.acting.TakesOpponents` has them

    @property
    def slots(self) -> int:
        return self._slots.slots if self._slots else 0

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network of the learner's own kind into a slot."""
        check_slot(slot, self.slots)
        assert self._slots
        self._slots.put(slot, weights, greedy=greedy or BY_VALUE in self.facts)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        """Say who is drawn from every mix from now on, when games begin."""
        self.pool.set_mixes(mixes)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running."""
        return self.pool.seated(self.slots + 1)

    # Saving and playing

    def policy(self, updates: int) -> Policy:
        """Return what plays after so many updates; it never changes again."""
        return Policy(self.rules, self.net.cpu_copy(), name=f"update {updates}", meta=self.facts)

    def snapshot(self, updates: int, samples: int) -> Snapshot:
        """Copy what playing depends on: weights, games, open decisions, counts."""
        rows, blobs = self.collector.state()
        return Snapshot(
            tensors={"net": copied(self.net), "carried": rows},
            blobs=blobs,
            meta={
                "update": updates,
                "decisions": self.collector.decisions,
                "samples": samples,
                "opponent_rows": self.collector.opponent_rows,
                **self.facts,
                **self.net.describe(),
            },
        )

    def restore(self, snapshot: Snapshot, *, fresh: bool) -> int:
        """Go on from `snapshot`; return its updates. fresh: the learner has made none yet."""
        try:
            self.net.load_state_dict(snapshot.tensors["net"])
        except RuntimeError as wrong:
            first = str(wrong).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds another network: {first}") from None
        updates = int(snapshot.meta["update"])
        self.collector.load_state(snapshot.tensors["carried"], snapshot.blobs, snapshot.meta)
        if fresh and updates and "games.bin" not in snapshot.blobs:
            self.collector.begin(derive_seed(self.seed, updates))
        return updates


def copied(module: torch.nn.Module) -> dict[str, Tensor]:
    """All tensors of a module by name, on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}


def normalizes(net: Net) -> bool:
    """Whether a network, or one of its roles', normalizes its observations."""
    return any(each.normalizer is not None for _, each in nets_by_role(net) or [("", net)])


def update_normalizer(net: Net, collector: Collector) -> None:
    """Add the learner's own rows of a rollout to what its network normalizes by.

    Of several networks, each sees the rows of its role.
    """
    own = nets_by_role(net) or [("", net)]
    if all(each.normalizer is None for _, each in own):
        return
    rollout = collector.rollout
    obs, role = rollout.obs[collector.transitions.max_pending :], rollout.role.reshape(-1)
    mine = rollout.policy.reshape(-1) == LEARNER
    for number, (name, each) in enumerate(own):
        rows = mine & (role == number) if name else mine
        each.update_normalizer(torch.from_numpy(obs[np.flatnonzero(rows)]))


def share_normalizer(net: Net, other: Net) -> None:
    """Have another network of the same kind, such as a target, normalize by the same numbers."""
    if isinstance(net, Perceptron) and isinstance(other, Perceptron):
        other.first.normalizer = net.first.normalizer
