"""What a learner is made of, decided once at the top; below it nobody asks again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, HindsightConfig, NetConfig, ReplayConfig
from sparring.errors import ConfigError, printable
from sparring.games.rules import Rules
from sparring.learn.acting import Actor
from sparring.learn.learner import Overrides
from sparring.nets.inputs import memory_bytes_of
from sparring.pools.lineups import Lineup
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool
from sparring.pools.starts import Start
from sparring.schedule import Schedule, ScheduledValues

SHARES = {
    0.25: "a quarter",
    0.33: "a third",
    0.5: "half",
    0.67: "two thirds",
    0.75: "three quarters",
}
"""Fractions in words; a measured share is told by the nearest one."""


@dataclass(frozen=True)
class ComputePath:
    """How one network is computed."""

    network: str
    """What it is: perceptron 531-256-256-87."""
    name: str
    """Of the path: native bf16."""
    because: str = ""
    """What keeps the network from a faster path; "" on the fastest one that there is."""
    speed: float | None = None
    """Share of the faster path's samples per second; None where nobody has measured it."""
    role: str = ""
    """Whose network it is, where every role has its own."""

    @property
    def way(self) -> str:
        """The path with its reason and its price."""
        reason = f" because {self.because}" if self.because else ""
        price = f": about {share_words(self.speed)} of the speed" if self.speed else ""
        return f"{self.name}{reason}{price}"

    def plain(self) -> dict[str, Any]:
        """As JSON has it; `ComputePath(**plain)` is the same again."""
        return asdict(self)


def share_words(share: float) -> str:
    """Return a share as people say it."""
    return SHARES[min(SHARES, key=lambda known: abs(known - share))]


@dataclass(frozen=True)
class Announced:
    """The paths of a run."""

    algo: str
    paths: tuple[ComputePath, ...]
    """One per role, where every role has a network; none of a learner of somebody's own."""

    @property
    def line(self) -> str:
        """All of it in one line: ppo, perceptron 531-256-256-87, native bf16.

        Roles whose networks take the same path share its words.
        """
        if not self.paths:
            return printable(f"{self.algo}, a learner of your own")
        ways: dict[str, dict[str, list[str]]] = {}
        for path in self.paths:
            ways.setdefault(path.way, {}).setdefault(path.network, []).append(path.role)
        told = (f"{named(networks)}, {way}" for way, networks in ways.items())
        return printable(f"{self.algo}, {'; '.join(told)}")

    def plain(self) -> dict[str, Any]:
        return {"path": self.line, "paths": [path.plain() for path in self.paths]}


def named(networks: Mapping[str, Sequence[str]]) -> str:
    """List networks with the roles that have them."""
    told = (
        f"{' and '.join(roles)}: {network}" if any(roles) else network
        for network, roles in networks.items()
    )
    return ", ".join(told)


if TYPE_CHECKING:
    from sparring.pools.cuda import CudaPool

CPU = "cpu"


@dataclass(frozen=True)
class RolePlan:
    """A role with a network of its own."""

    role: str
    net: NetConfig
    settings: tuple[Any, ...]
    """Of the algorithm, one per member."""
    ended_by: tuple[str, ...] = ()
    """Roles whose decision ends what this one did before: its next one is another problem."""


@dataclass(frozen=True)
class Turns:
    """Which roles learn in which update."""

    learn: str = "together"
    """together, alternately, or the one role that does."""
    updates: int = 10
    """That a turn takes."""

    def learns(self, role: str, roles: Sequence[str], update: int) -> bool:
        if self.learn == "alternately":
            return roles[update // self.updates % len(roles)] == role
        return self.learn in ("together", role)


@dataclass(frozen=True)
class Plan:
    """Rules, line-ups, places, network and settings of one run or of a population."""

    rules: Rules
    participants: Participants
    """Who plays."""
    seeds: tuple[int, ...]
    """One per member."""
    threads: int
    device: str
    """Where the network lives: cpu or cuda."""
    games_on: str
    """Where the games live: cpu, or with the network."""
    fused: bool
    """Rollout and update run as graphs on the GPU."""
    collect: CollectConfig
    net: NetConfig
    settings: tuple[Any, ...]
    """Of the algorithm, one per member."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """What is remembered; of learners that remember."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of a learner of your own, as they were written."""
    custom: GamePool | None = None
    """An environment that somebody brought along."""
    rewards: Mapping[str, tuple[float, ...]] | None = None
    """Weights by part, one per role, when the run begins; None: the game's own."""
    paid_by_role: bool = False
    """Roles are paid differently later on, if not from the beginning."""
    starts: tuple[Start, ...] = ()
    """Where games begin; none: as usual."""
    first_game: int = 0
    """Games of other pools that go before these."""
    custom_rules: tuple[Rules, ...] = ()
    """By member, where some have flags of their own; none: `rules` for all."""
    first: tuple[Overrides, ...] = ()
    """By member, what the first games begin under, where it is not what stands here: flags and
    rewards of its own, the first phase."""
    roles: tuple[RolePlan, ...] = ()
    """Networks by role, in the order of the game's roles; none: one network for all."""
    turns: Turns = field(default_factory=Turns)
    hindsight: HindsightConfig = field(default_factory=HindsightConfig)
    heads: HeadsConfig = field(default_factory=HeadsConfig)
    """What the network is asked besides policy and value."""
    paths: tuple[ComputePath, ...] = ()
    """How the network is computed, or that of every role; none of a learner of your own."""
    lr_factor: float = 1.0
    """What learning rates were multiplied with, in `settings` and `roles` already; it stands in
    checkpoints of a run that has diverged, not in its settings."""

    @property
    def memory(self) -> int:
        """Bytes per (game, seat) that the network remembers, or an environment brings along."""
        given = self.custom.memory_bytes if self.custom else 0
        nets = self.role_nets.values() or [self.net]
        return max(given, *(memory_bytes_of(self.rules, net) for net in nets))

    @property
    def role_nets(self) -> dict[str, NetConfig]:
        """Networks by role, none where one network is for all."""
        return {one.role: one.net for one in self.roles}

    def rules_of(self, member: int) -> Rules:
        """What a member plays by, whatever its phases change meanwhile."""
        return self.custom_rules[member] if self.custom_rules else self.rules

    @property
    def seed(self) -> int:
        """Of a run that is trained alone."""
        return self.seeds[0]

    @property
    def by_role(self) -> bool:
        """Whether roles are paid differently: then each of them has decisions of its own to link.

        In one chain what a bid leads to is paid to the cards that are played after it.
        """
        return bool(self.roles) or pays_apart(self.rewards, self.paid_by_role)

    @property
    def spare_threads(self) -> int:
        """Cores that training leaves free: half of them if games and network have a GPU."""
        return max((os.cpu_count() or 1) // 2, 1) if self.games_on != CPU else 1

    def host_pool(self) -> GamePool:
        """The games on CPU threads, or the environment that was brought along."""
        if self.custom is None:
            return self.native_pool(slots=self.collect.groups)
        self.custom.set_lineups(self.participants.lineups, self.participants.mixes)
        if self.rewards is not None:
            self.custom.set_rewards(self.rewards)
        return self.custom

    def native_pool(self, *, slots: int) -> Pool:
        """The games on CPU threads."""
        return Pool(
            self.rules,
            self.collect.games,
            seed=self.seed,
            first_game=self.first_game,
            threads=self.threads,
            lineups=self.participants.lineups,
            mixes=self.participants.mixes,
            rewards=self.rewards,
            slots=slots,
            starts=self.starts,
            records=self.hindsight.relabels,
            memory=self.memory,
        )

    def device_pool(self) -> CudaPool:
        """The games of all members on the GPU."""
        from sparring.pools.cuda import CudaPool

        return CudaPool(
            self.rules,
            self.collect.games * len(self.seeds),
            seeds=self.seeds,
            lineups=self.participants.lineups,
            mixes=self.participants.mixes,
            rewards=self.rewards,
            starts=self.starts,
            records=self.hindsight.relabels,
            memory=self.memory,
            device=self.device,
        )


def pays_apart(rewards: Mapping[str, tuple[float, ...]] | None, paid_by_role: bool) -> bool:
    """Whether roles are paid differently, now or later on; see `Plan`."""
    return paid_by_role or any(len(set(weights)) > 1 for weights in (rewards or {}).values())


@dataclass(frozen=True)
class Fixed:
    """A frozen policy of the learner's own kind that line-ups name; it keeps its slot for good."""

    name: str
    """As it was typed."""
    slot: int
    weights: Mapping[str, Tensor]
    greedy: bool


@dataclass(frozen=True)
class Seating:
    """A line-up, and how often it is drawn as the run goes on."""

    lineup: Lineup
    weight: Schedule


@dataclass(frozen=True)
class Participants:
    """Who plays."""

    lineups: tuple[Lineup, ...]
    """Those that the run begins with."""
    fixed: tuple[Fixed, ...] = ()
    past_slots: int = 0
    """Slots that past selves share, the first ones; 0: nobody meets them."""
    recent: tuple[int, ...] = ()
    """Every N for which there is a mix past:N."""
    mixes: tuple[str, ...] = ()
    """The names of the mixes that line-ups draw from."""
    greedy: bool = False
    """Whether past selves take their most probable action."""
    actors: Mapping[int, Actor] = field(default_factory=dict)
    """Other networks and functions by policy id, one call each."""
    others: tuple[str, ...] = ()
    """What those are called, in the order of their ids."""
    seatings: tuple[tuple[Seating, ...], ...] = ()
    """Who plays in each phase; ids, slots and mixes are the same in all of them."""

    @property
    def slots(self) -> int:
        """Frozen networks of the learner's kind that can be met at a time."""
        return self.past_slots + len(self.fixed)


SHARED = {
    "ppo": ("epochs", "minibatch"),
    "dqn": ("double", "dueling", "huber", "target_every"),
    "sac": ("critic_hidden", "critic_norm", "target_entropy", "target_entropy_share"),
}
"""By algorithm; they decide the shapes of what is computed, or the graph itself."""


def check_shared(algo: str, settings: Sequence[Any]) -> None:
    """Refuse members that differ in these. settings: of the algorithm, one per member."""
    for name in SHARED[algo]:
        if len({getattr(one, name) for one in settings}) > 1:
            raise ConfigError(f"members of a population share {algo}.{name}; it decides the shapes")


__all__ = ["PPOHparams", "ScheduledValues"]


@dataclass(frozen=True)
class PPOHparams(ScheduledValues):
    """The numbers of `PPOConfig` that a schedule may change, as they are in one update.

    In the order of `PPOHparams` in csrc/cuda.
    """

    lr: float
    entropy: float
    clip: float
    value_clip: float
    value_weight: float
    max_grad_norm: float
    target_kl: float
    gamma: float
    gae_lambda: float
