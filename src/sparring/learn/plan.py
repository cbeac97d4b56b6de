"""The plan of a run: all that a learner is made from, resolved once from the configuration."""

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
"""Fractions in words; a measured share is printed as the nearest one."""


@dataclass(frozen=True)
class ComputePath:
    """How one network is computed."""

    network: str
    """Architecture, such as perceptron 531-256-256-87."""
    name: str
    """Name of the path, such as native bf16."""
    because: str = ""
    """Why no faster path is possible; "" on the fastest one."""
    speed: float | None = None
    """Share of the faster path's samples per second; None if it was not measured."""
    role: str = ""
    """Role of the network, if every role has one."""

    @property
    def way(self) -> str:
        """The path with reason and speed."""
        reason = f" because {self.because}" if self.because else ""
        price = f": about {share_words(self.speed)} of the speed" if self.speed else ""
        return f"{self.name}{reason}{price}"

    def plain(self) -> dict[str, Any]:
        """Return JSON values; `ComputePath(**plain)` restores it."""
        return asdict(self)


def share_words(share: float) -> str:
    return SHARES[min(SHARES, key=lambda known: abs(known - share))]


@dataclass(frozen=True)
class PathSummary:
    """The compute paths of a run."""

    algo: str
    paths: tuple[ComputePath, ...]
    """One per network; none for a custom learner."""

    @property
    def line(self) -> str:
        """One line, such as ppo, perceptron 531-256-256-87, native bf16."""
        if not self.paths:
            return printable(f"{self.algo}, a custom learner")
        ways: dict[str, dict[str, list[str]]] = {}
        for path in self.paths:
            ways.setdefault(path.way, {}).setdefault(path.network, []).append(path.role)
        parts = (f"{named(networks)}, {way}" for way, networks in ways.items())
        return printable(f"{self.algo}, {'; '.join(parts)}")

    def plain(self) -> dict[str, Any]:
        return {"path": self.line, "paths": [path.plain() for path in self.paths]}


def named(networks: Mapping[str, Sequence[str]]) -> str:
    """List networks with their roles."""
    parts = (
        f"{' and '.join(roles)}: {network}" if any(roles) else network
        for network, roles in networks.items()
    )
    return ", ".join(parts)


if TYPE_CHECKING:
    from sparring.pools.cuda import CudaPool

CPU = "cpu"


@dataclass(frozen=True)
class RolePlan:
    """Network and settings of one role."""

    role: str
    net: NetConfig
    settings: tuple[Any, ...]
    """Settings of the algorithm, one per member."""
    ended_by: tuple[str, ...] = ()
    """Roles whose decision terminates this role's subproblem."""


@dataclass(frozen=True)
class Turns:
    """Which roles learn in which update."""

    learn: str = "together"
    """together, alternately, or the name of the one role that learns."""
    updates: int = 10
    """Updates of a turn."""

    def learns(self, role: str, roles: Sequence[str], update: int) -> bool:
        if self.learn == "alternately":
            return roles[update // self.updates % len(roles)] == role
        return self.learn in ("together", role)


@dataclass(frozen=True)
class Plan:
    """Rules, participants, devices, network and settings of one run or of a population."""

    rules: Rules
    participants: Participants
    seeds: tuple[int, ...]
    """One per member."""
    threads: int
    device: str
    """Device of the network: cpu or cuda."""
    games_on: str
    """Device of the games: cpu, or that of the network."""
    fused: bool
    """Whether rollout and update run as CUDA graphs."""
    collect: CollectConfig
    net: NetConfig
    settings: tuple[Any, ...]
    """Settings of the algorithm, one per member."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """Settings of the replay buffer, for learners that have one."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of a custom learner, as strings."""
    custom: GamePool | None = None
    """The pool of a custom environment."""
    rewards: Mapping[str, tuple[float, ...]] | None = None
    """Initial weights of reward parts, one per role; None: those of the game."""
    paid_by_role: bool = False
    """Whether reward weights differ by role at any time of the run."""
    starts: tuple[Start, ...] = ()
    """Start positions; empty: those of the rules."""
    first_game: int = 0
    """Index of the pool's first game among all pools."""
    replicas: int = 1
    """Learners that share every update, each with as many games."""
    custom_rules: tuple[Rules, ...] = ()
    """Rules by member, if their flags differ; empty: `rules` for all."""
    first: tuple[Overrides, ...] = ()
    """Overrides by member for the first games: flags, rewards, the first phase."""
    roles: tuple[RolePlan, ...] = ()
    """Networks by role, in the order of the game's roles; empty: a shared network."""
    turns: Turns = field(default_factory=Turns)
    hindsight: HindsightConfig = field(default_factory=HindsightConfig)
    heads: HeadsConfig = field(default_factory=HeadsConfig)
    """Auxiliary heads."""
    average: float = 0.0
    """Share of the training whose average weights play; 0: the newest weights."""
    paths: tuple[ComputePath, ...] = ()
    """Compute path of every network; empty for a custom learner."""
    lr_factor: float = 1.0
    """Factor already contained in the learning rates of `settings` and `roles`, after a run has
    diverged. Checkpoints store it."""

    @property
    def quantiles(self) -> int:
        """Quantiles of the return of every action, which networks have a head for; 0: none."""
        return getattr(self.settings[0], "quantiles", 0)

    @property
    def memory(self) -> int:
        """Bytes of memory per (game, seat), of the network or a custom environment."""
        given = self.custom.memory_bytes if self.custom else 0
        nets = self.role_nets.values() or [self.net]
        return max(given, *(memory_bytes_of(self.rules, net) for net in nets))

    @property
    def role_nets(self) -> dict[str, NetConfig]:
        """Networks by role; empty with a shared network."""
        return {one.role: one.net for one in self.roles}

    def rules_of(self, member: int) -> Rules:
        """Return the rules of a member, without changes by phases."""
        return self.custom_rules[member] if self.custom_rules else self.rules

    @property
    def seed(self) -> int:
        """Seed of a single run."""
        return self.seeds[0]

    @property
    def by_role(self) -> bool:
        """Whether decisions are linked by role, which different reward weights per role require.

        Otherwise the rewards of a bid would go to the cards that are played after it.
        """
        return bool(self.roles) or pays_apart(self.rewards, self.paid_by_role)

    @property
    def spare_threads(self) -> int:
        """Cores that training leaves free: half of them if the games are on a GPU."""
        return max((os.cpu_count() or 1) // 2, 1) if self.games_on != CPU else 1

    def host_pool(self) -> GamePool:
        """Make the games on CPU threads, or return the pool of a custom environment."""
        if self.custom is None:
            return self.native_pool(slots=self.collect.groups)
        self.custom.set_lineups(self.participants.lineups, self.participants.mixes)
        if self.rewards is not None:
            self.custom.set_rewards(self.rewards)
        return self.custom

    def native_pool(self, *, slots: int) -> Pool:
        """Make the games on CPU threads."""
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
        """Make the games of all members on the GPU."""
        from sparring.pools.cuda import CudaPool

        return CudaPool(
            self.rules,
            self.collect.games * len(self.seeds),
            seeds=self.seeds,
            first_game=self.first_game,
            lineups=self.participants.lineups,
            mixes=self.participants.mixes,
            rewards=self.rewards,
            starts=self.starts,
            records=self.hindsight.relabels,
            memory=self.memory,
            device=self.device,
        )


def pays_apart(rewards: Mapping[str, tuple[float, ...]] | None, paid_by_role: bool) -> bool:
    """Whether reward weights differ by role at any time; see `Plan`."""
    return paid_by_role or any(len(set(weights)) > 1 for weights in (rewards or {}).values())


@dataclass(frozen=True)
class Fixed:
    """A frozen policy of the learner's architecture that line-ups name; its slot is permanent."""

    name: str
    """As the user wrote it."""
    slot: int
    weights: Mapping[str, Tensor]
    greedy: bool


@dataclass(frozen=True)
class Seating:
    """A line-up and the schedule of its weight."""

    lineup: Lineup
    weight: Schedule


@dataclass(frozen=True)
class Participants:
    """The players of a run."""

    lineups: tuple[Lineup, ...]
    """Line-ups at the beginning."""
    fixed: tuple[Fixed, ...] = ()
    past_slots: int = 0
    """Slots of past selves, the first ones; 0: there are no past selves."""
    recent: tuple[int, ...] = ()
    """Every N with a mix past:N."""
    mixes: tuple[str, ...] = ()
    """Names of the mixes in line-ups."""
    greedy: bool = False
    """Whether past selves take their most probable action."""
    actors: Mapping[int, Actor] = field(default_factory=dict)
    """Other networks and functions by policy id."""
    others: tuple[str, ...] = ()
    """Names of those, in the order of their ids."""
    seatings: tuple[tuple[Seating, ...], ...] = ()
    """Line-ups of each phase; ids, slots and mixes are the same in all phases."""

    @property
    def slots(self) -> int:
        """Number of slots for frozen networks."""
        return self.past_slots + len(self.fixed)


SHARED = {
    "ppo": ("epochs", "minibatch"),
    "dqn": ("double", "dueling", "huber", "target_every"),
    "qrdqn": ("quantiles", "double", "huber", "target_every"),
    "td3": ("critic_hidden", "critic_norm"),
    "sac": ("critic_hidden", "critic_norm", "target_entropy", "target_entropy_share"),
}
"""Settings by algorithm that all members of a population share: they decide shapes and graphs."""


def check_shared(algo: str, settings: Sequence[Any]) -> None:
    """Raise if members differ in `SHARED` settings. settings: one per member."""
    for name in SHARED[algo]:
        if len({getattr(one, name) for one in settings}) > 1:
            raise ConfigError(f"members of a population share {algo}.{name}; it decides the shapes")


__all__ = ["PPOHparams", "ScheduledValues"]


@dataclass(frozen=True)
class PPOHparams(ScheduledValues):
    """Scheduled values of `PPOConfig` in one update, in the order of the struct in csrc/cuda."""

    lr: float
    entropy: float
    clip: float
    value_clip: float
    value_weight: float
    max_grad_norm: float
    target_kl: float
    gamma: float
    gae_lambda: float
