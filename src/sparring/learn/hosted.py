"""Learners that play step by step: the network, the collector, frozen opponents and what plays.

`learn.on_policy` adds how they learn; `learn.fused.learner` is the same for
graphs on a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, HindsightConfig, NetConfig
from sparring.errors import ConfigError, StateError
from sparring.games.seeds import mixed_seed
from sparring.learn.adjust import Terms, adjust_games
from sparring.learn.collect import Actor, Collector
from sparring.learn.forward import Forward
from sparring.learn.head_terms import head_terms
from sparring.learn.learner import Report, Snapshot
from sparring.learn.opponents import SlotActor, check_slot
from sparring.learn.terms import Term, truth_of
from sparring.learn.timing import Timing
from sparring.learn.transforms import transforms_of
from sparring.nets.grouped import GroupedHierarchy, GroupedNet
from sparring.nets.heads import asked_heads, blend_in
from sparring.nets.make import make_net
from sparring.nets.policy import BY_VALUE, Policy
from sparring.pools.lineups import Pots
from sparring.pools.protocol import GamePool


class HostedLearner(ABC):
    """Owns the network that plays and the collector that plays the pool with it."""

    by_value = False
    """Whether the policy head holds values of actions, whose best is played; else it is drawn."""
    columns: Sequence[str] = ()
    """What the actor says besides actions."""
    recurrent = False
    """Whether it learns from decisions in a row, as networks with a state need it."""
    config: Any
    """Of the algorithm."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        device: str = "cpu",
        by_role: bool = False,
        slots: int = 0,
        actors: Mapping[int, Actor] | None = None,
        roles: Mapping[str, NetConfig] | None = None,
        first: Terms | None = None,
        hindsight: HindsightConfig | None = None,
        first_row: int = 0,
        heads: HeadsConfig | None = None,
    ) -> None:
        """Take over a pool.

        roles: networks by role instead of one for all.
        slots: room for frozen networks of the same kind, see `learn.opponents`.
        actors: who else plays, by policy id.
        first: what the first games begin under, where it is not the run's own.
        hindsight: how decisions are seen once more, if they are; then the pool keeps records.
        first_row: rows of other pools that go before these.
        heads: what the network is asked besides policy and value, of a learner with terms.
        """
        torch.manual_seed(seed)
        self.rules = pool.rules
        """The game as the run has it; phases change flags of the pool's alone."""
        if first is not None:
            adjust_games(pool, first)
        self.pool, self.seed, self.device = pool, seed, torch.device(device)
        self.threads = threads
        self.net = make_net(
            pool.rules,
            net,
            heads=asked_heads(pool.rules, heads),
            memory=pool.memory_bytes,
            threads=threads,
            roles=roles,
        )
        blend_in(self.net, heads)
        self.net.to(self.device)
        self._demand_memory(by_role=by_role)
        self.phases = Timing()
        self.transforms = transforms_of(
            pool, collect, hindsight, seed=seed, device=self.rows_device
        )
        """What is done to rows before they are learned from."""
        self.forward = Forward(self.net, self.device, collect)
        self.collector = self.make_collector(
            collect,
            squash=net.squash,
            pinned=self.device.type == "cuda",
            by_role=by_role,
            first_row=first_row,
        )
        self.terms: list[Term] = self.make_terms(heads)
        """Of the loss, beside the algorithm's own."""
        self.collector.rollout.want_truth(truth_of(self.terms))
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
        self.updates = 0

    @property
    def rows_device(self) -> torch.device:
        """Where rows are when they are changed."""
        return self.device

    def _demand_memory(self, *, by_role: bool) -> None:
        """Refuse a pool without room for what the network remembers."""
        net, pool = self.net, self.pool
        if net.inputs.memory != pool.memory_bytes:
            raise ConfigError(
                f"the pool has {pool.memory_bytes} bytes of memory per seat and net.memory "
                f"{net.config.memory} needs {net.inputs.memory}; make it with "
                f"memory={net.inputs.memory}"
            )
        assert not net.config.recurrent or (self.recurrent and not by_role)

    @abstractmethod
    def make_actor(self) -> Actor:
        """Return who answers the learner's rows."""

    def make_terms(self, heads: HeadsConfig | None) -> list[Term]:
        """Return what the loss has beside the algorithm's own."""
        return head_terms(self.rules, heads)

    def make_collector(self, collect: CollectConfig, **options: Any) -> Collector:
        """Return who plays the pool."""
        actor = self.make_actor()
        return Collector(self.pool, collect, actor, self.columns, self.phases, **options)

    @property
    @abstractmethod
    def samples(self) -> int:
        """Trained so far."""

    @property
    def exact(self) -> bool:
        """Whether a snapshot holds the games in flight."""
        return self.collector.exact

    def _report(self, stats: dict[str, float]) -> Report:
        collector = self.collector
        counts = collector.decisions, self.samples, collector.opponent_rows
        earned = collector.earned.episodes()
        return Report(stats, *counts, episodes=earned, met=collector.met())

    # Other terms

    def adjust(self, terms: Terms, member: int = 0) -> None:
        """Go on under other terms. No running game changes its rules, seats or start."""
        adjust_games(self.pool, terms)
        if terms.settings is not None:
            self.set_settings(terms.settings)
        if terms.clear_replay:
            self.clear_replay()

    def set_settings(self, settings: Any) -> None:
        """Go on with other settings of the algorithm."""
        self.config = settings

    def clear_replay(self) -> None:
        """Forget what is remembered."""
        raise ConfigError(f"clear_replay: {type(self).__name__} has no replay; leave it out")

    # Frozen opponents, as `learn.opponents.TakesOpponents` has them

    @property
    def slots(self) -> int:
        """How many there are."""
        return self._slots.slots if self._slots else 0

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network of the learner's own kind into a slot."""
        check_slot(slot, self.slots)
        assert self._slots
        self._slots.put(slot, weights, greedy=greedy or self.by_value)

    def set_pots(self, pots: Pots, member: int = 0) -> None:
        """Say who is drawn from every pot from now on, when games begin."""
        self.pool.set_pots(pots)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running."""
        return self.pool.seated(self.slots + 1)

    # Saving and playing

    @property
    def facts(self) -> dict[str, bool]:
        """What policies are to say about their heads, see `nets.policy.FACTS`."""
        return {BY_VALUE: True} if self.by_value else {}

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        name = f"update {self.updates}"
        return Policy(self.rules, self.net.twin(), name=name, meta=self.facts)

    def _saved(self) -> Snapshot:
        """Copy what playing depends on: weights, games, open decisions, counts."""
        rows, blobs = self.collector.state()
        net = {name: value.detach().cpu().clone() for name, value in self.net.state_dict().items()}
        return Snapshot(
            tensors={"net": net, "carried": rows},
            blobs=blobs,
            meta={
                "update": self.updates,
                "decisions": self.collector.decisions,
                "samples": self.samples,
                "opponent_rows": self.collector.opponent_rows,
                **self.facts,
                **self.net.describe(),
            },
        )

    def _put_saved(self, snapshot: Snapshot) -> None:
        """Go on from `_saved`."""
        try:
            self.net.load_state_dict(snapshot.tensors["net"])
        except RuntimeError as wrong:
            first = str(wrong).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds another network: {first}") from None
        fresh, self.updates = not self.updates, snapshot.meta["update"]
        self.collector.load_state(snapshot.tensors["carried"], snapshot.blobs, snapshot.meta)
        if fresh and self.updates and "games.bin" not in snapshot.blobs:
            self.collector.begin(mixed_seed(self.seed, self.updates))
