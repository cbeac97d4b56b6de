"""Self-play on a GPU: games, networks, sampling of actions, frozen opponents, counts, snapshots.

The counterpart of `learn.playing.SelfPlay` for learners of CUDA graphs. Members of a population
share the arrays. A rollout neither synchronizes nor allocates. With games on CPU threads only the
forward passes are graphs. tests/cuda/test_fused_rollout.py compares actions with those of the torch
modules, test_fused_league.py those of frozen opponents.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, NetConfig
from sparring.errors import ConfigError, SparringWarning, StateError
from sparring.games.hidden import StateField
from sparring.games.seeds import derive_seed
from sparring.games.stats import stat_metrics
from sparring.kernels import KernelModule
from sparring.kernels.views import KernelView
from sparring.learn.acting import check_slot
from sparring.learn.averaging import TRAINED, trained_weights
from sparring.learn.fused.averaging import FusedAverage
from sparring.learn.fused.games import Games
from sparring.learn.fused.graphs import Graphs, Stopwatch
from sparring.learn.fused.heads import rollout_options
from sparring.learn.fused.kernels import PPO_SOURCE, blocks_of, heads_view, learner_kernels
from sparring.learn.fused.opponents import FrozenOpponents
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.head_terms import head_terms
from sparring.learn.learner import GAMES, PENDING, DivergedError, Report, Snapshot
from sparring.nets.heads import configured_heads
from sparring.nets.inputs import memory_bytes_of, stack_frames
from sparring.nets.make import make_net
from sparring.nets.net import Net, set_wdl_blend
from sparring.nets.policy import BY_VALUE, Policy
from sparring.nets.run.flat import FlatNet, Pass
from sparring.nets.run.make_flat import FlatHierarchy, make_flat
from sparring.phases import Timing
from sparring.pools.lineups import LEARNER, Mixes, check_answered
from sparring.pools.protocol import EXACT
from sparring.schedule import format_rounded


class RoleActing:
    """A network that acts on all rows, or on those of one role."""

    def __init__(
        self, kernels: KernelModule, net: FlatNet, rows: int, role: int | None = None
    ) -> None:
        self.net, self.role = net, role
        self.passing: Pass = net.make_pass(rows, learn=False)
        self.heads = heads_view(kernels, net, self.passing)

    def view_fields(self, role: Tensor | None) -> dict[str, Any]:
        """Fields of `AskedView` that depend on the network. role: of the rows."""
        roles = role if self.role is not None else None
        return {"role": roles, "only": self.role or 0, "value_scale": self.net.value_scale}


class FusedSelfPlay:
    """Self-play of one run or of all members of a population."""

    graph_name = "rollout"
    """Name of the graph of a rollout; another one is captured anew."""

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        net: NetConfig,
        *,
        roles: Mapping[str, NetConfig] | None = None,
        by_role: bool = False,
        slots: int = 0,
        graphs: bool = True,
        policy_meta: Mapping[str, bool] | None = None,
        source: str = PPO_SOURCE,
        final_legal: bool = False,
        examples: int = 0,
        heads: HeadsConfig | None = None,
        truth: StateField | None = None,
        average: float = 0.0,
        first_row: int = 0,
    ) -> None:
        """Make networks and rollout for games; the games' seeds are those of the members.

        roles: networks by role, in the order of the game's roles, instead of a shared one.
        by_role: link a decision with the seat's next one in the same role.
        slots: number of slots for frozen networks, per member.
        graphs: False launches every kernel from Python, for debugging.
        policy_meta: metadata of policies, see `nets.policy.HEAD_META`. `BY_VALUE`: the policy head
            outputs action values.
        source: of the kernels.
        final_legal: store the legal actions of truncated games.
        examples: maximum of hindsight examples.
        heads: auxiliary heads.
        truth: field of the game state to store with every row.
        average: share of the training whose average weights play, see `learn.averaging`; 0: none.
        first_row: index of a member's first row among those of all replicas, for random numbers.
        """
        if games.each != collect.games:
            raise ConfigError(f"the pool has {games.each} games, the config {collect.games}")
        self.first_row = first_row
        self.games, self.pool, self.rules = games, games.pool, games.rules
        """Rules of the first member; phases change flags of the pool alone."""
        self.members, self.device, self.slots = len(games.seeds), games.device, slots
        self.config, self.roles, self.policy_meta = net, dict(roles or {}), dict(policy_meta or {})
        self.exact = EXACT in self.pool.can
        """Whether a snapshot holds the running games."""
        if memory_bytes_of(games.rules, net) not in (0, self.pool.memory_bytes):
            raise ConfigError(
                f"the pool has {self.pool.memory_bytes} bytes of memory per seat and net.memory "
                f"{net.memory} needs {memory_bytes_of(games.rules, net)}; make it with as many"
            )
        check_answered(self.pool.policies, range(slots + 1))
        self.heads, self.formulas = heads, head_terms(games.rules, heads)
        self.net: Any = self.make_nets(bf16=collect.bf16)
        """The networks of all members: a `FlatNet`, or a `FlatHierarchy`."""
        self.graphs = Graphs(self.device, net.kind, on=graphs, eager=self.net.eager_reason)
        for member, seed in enumerate(games.seeds):
            torch.manual_seed(seed)
            fresh = self.fresh_net()
            self.net.load(member, fresh.state_dict())
        self.average = self._make_average(average, bf16=collect.bf16)
        """The average weights, which play; None: the newest weights do."""
        self._description = fresh.describe()
        self.kernels: KernelModule = learner_kernels(
            games.rules, source, bf16=collect.bf16, device=self.device
        )
        self.rollout = FusedRollout(
            games.rules,
            games.num_games,
            collect.steps,
            members=self.members,
            row_bytes=self.pool.row_bytes,
            chains=len(games.rules.roles) if by_role else 1,
            squash=self.net.squash,
            device=self.device,
            policies=slots + 1,
            final_legal=final_legal,
            examples=examples,
            remembers=bool(net.memory),
            **rollout_options(self.formulas, truth),
        )
        games.reset()
        self.frozen: FrozenOpponents | None = None
        if slots:
            self.frozen = FrozenOpponents(games, self.kernels, net, slots, bf16=collect.bf16)
        self.acting = self._make_acting()
        """Networks that act for the learner, by role; a shared one has the role \"\"."""
        self.clock = torch.zeros(1, dtype=torch.int32, device=self.device)
        """Index of the rollout."""
        # The bits of unsigned 64-bit seeds.
        seeds = np.array([seed % 2**64 for seed in games.seeds], np.uint64)
        self.seeds = torch.from_numpy(seeds.view(np.int64)).to(self.device)
        self.block_rows = 256 if games.rules.box else 8  # a thread has a row, or a warp has it
        self._no_opponents = self.kernels.view("FrozenView", position=None, group=None, greedy=None)
        self.epsilon: Tensor | None = None
        """By row of a step, the probability of a random action; None: no exploration."""
        self.updates = 0
        self.decisions, self.samples = [0] * self.members, [0] * self.members
        self.opponent_rows = [0] * self.members
        self.diverged = [""] * self.members
        """By member, why it stopped learning."""
        self.phases = Timing()
        self.watch = Stopwatch(self.phases)
        self.met: npt.NDArray[np.int64] | None = None
        """Results against opponents in the last update [members, players, 3]."""
        self._warned_truncations = False

    def make_nets(self, *, bf16: bool) -> FlatNet | FlatHierarchy:
        """Allocate networks of all members; `load` fills them."""
        room: dict[str, Any] = {"bf16": bf16, "device": self.device}
        room["memory"] = self.pool.memory_bytes
        if self.roles:
            return FlatHierarchy(self.rules, self.roles, self.members, **room)
        heads = configured_heads(self.rules, self.heads)
        return make_flat(self.rules, self.config, self.members, heads=heads, **room)

    def _make_average(self, share: float, *, bf16: bool) -> FusedAverage | None:
        if not share:
            return None
        average = FusedAverage(self.make_nets(bf16=bf16), share, self.members)
        for member in range(self.members):
            average.load(member, self.net.state(member))
        return average

    def _make_acting(self) -> dict[str, RoleActing]:
        at_once = self.games.at_once
        if not self.roles:
            return {"": RoleActing(self.kernels, self.net, at_once)}
        nets: dict[str, FlatNet] = self.net.roles
        return {
            role: RoleActing(self.kernels, net, at_once, number)
            for number, (role, net) in enumerate(nets.items())
        }

    def fresh_net(self) -> Net:
        """Make a network with initial weights."""
        rules, memory = self.rules, self.pool.memory_bytes
        if self.roles:
            return make_net(rules, self.config, memory=memory, roles=self.roles)
        heads = configured_heads(rules, self.heads)
        return set_wdl_blend(
            make_net(rules, self.net.net_config, heads=heads, memory=memory), self.heads
        )

    # Rollout

    def play(self) -> None:
        """Collect a rollout."""
        self.rollout.final_value.fill_(torch.nan)
        self.games.play(self.rollout, self._act if self.games.captures else self._act_captured)

    def act_again(self) -> None:
        """Act on the rows of the last rollout again, without stepping games."""
        self.rollout.final_value.fill_(torch.nan)
        at_once = self.games.at_once * self.members
        for step in range(self.rollout.steps):
            for first in range(0, self.rollout.rows, at_once):
                self._act(step, slice(first, first + at_once))

    def _act_captured(self, step: int, rows: slice) -> None:
        """Act on some rows of a step, by a graph once everything is warm."""
        self.graphs.run(f"answer {step} {rows.start}", lambda: self._act(step, rows))

    def _act(self, step: int, rows: slice) -> None:
        """Run a forward pass per network for rows of a step, and sample their actions."""
        rollout, view, at = self.rollout, self.kernels.view, self.rollout.at(step, rows)
        self._look(step, rows)
        for acting_net in self.acting.values():
            acting_net.passing.read(rollout.obs[at])
            acting_net.passing.forward()
        asked, answers = self._asked(step, rows), self._answers(at)
        blocks = blocks_of(rows.stop - rows.start, self.block_rows)
        for acting_net in self.acting.values():
            fields = asked | acting_net.view_fields(rollout.role[step, rows])
            self.kernels.draw(
                blocks, 256, acting_net.heads, view("DecisionsView", **fields), answers
            )
        if self.frozen:
            self.frozen.act(asked | self.acting[""].view_fields(None), answers, blocks)
        if rollout.remembered is not None:
            self._remember(rollout.obs[at], rollout.remembered[rows])

    def _look(self, step: int, rows: slice) -> None:
        """Start the forward pass of frozen opponents."""
        if self.frozen:
            rollout, count = self.rollout, rows.stop - rows.start
            obs = rollout.obs[rollout.at(step, rows)]
            self.frozen.look(obs, rollout.policy[step, rows], count // self.members)

    def _asked(self, step: int, rows: slice) -> dict[str, Any]:
        """Fields of `DecisionsView` for rows of a step."""
        rollout, view = self.rollout, self.kernels.view
        at, count = rollout.at(step, rows), rows.stop - rows.start
        epsilon = self.epsilon[rows] if self.epsilon is not None else None
        return {
            "legal": rollout.legal[at],
            "policy": rollout.policy[step, rows],
            "learner": LEARNER,
            "frozen": self._no_opponents,
            "explore": view(
                "ExploreView", epsilon=epsilon, greedy=int(BY_VALUE in self.policy_meta)
            ),
            "seeds": self.seeds,
            "clock": self.clock,
            "rows": count,
            "rows_each": count // self.members,
            "first_row": self.first_row + rows.start,
            "step": step,
        }

    def _answers(self, at: slice) -> KernelView:
        """Where actions are written."""
        rollout = self.rollout
        return self.kernels.view(
            "SampledView",
            action=rollout.action[at],
            log_prob=rollout.log_prob[at],
            value=rollout.value[at],
            played=rollout.played if rollout.squash else None,
        )

    def _remember(self, obs: Tensor, to: Tensor) -> None:
        """Write the new memory of the rows' seats [rows, numbers], of a shared network."""
        acting_net = self.acting[""]
        made, net = acting_net.passing.memory, acting_net.net
        if made is not None:
            to.copy_(made.view(to.shape))
        else:
            to.copy_(stack_frames(net.inputs, obs, net.config.frames))
        if self.frozen:
            self.frozen.remember(to)

    # Frozen opponents, as `learn.acting.TakesOpponents` has them

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        check_slot(slot, self.slots)
        assert self.frozen
        self.frozen.put(member, slot, weights, greedy=greedy or BY_VALUE in self.policy_meta)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self.games.set_mixes(mixes, member)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        return self.games.seated(self.slots + 1, member)

    def check_filled(self) -> None:
        """Raise if a policy in line-ups has no loaded slot."""
        for member in range(self.members):
            filled = self.frozen.filled[member] if self.frozen else [False]
            known = [LEARNER, *(slot for slot, is_filled in enumerate(filled) if is_filled)]
            check_answered(self.games.policies(member), known)

    # Reports

    def earned(self, found: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of finished games."""
        stats = {
            "learning/cuts_dropped": found["cuts_dropped"],
            "charts/games": found["earned_games"],
            "charts/forced": found["forced"],
        }
        if found["earned_games"]:
            stats["charts/length"] = found["earned_length"] / found["earned_games"]
        if found["earned_seats"]:
            stats["charts/score"] = found["earned_score"] / found["earned_seats"]
        counts = [found[f"count_{i}"] for i in range(len(self.rules.counters))]
        return stats | stat_metrics(self.rules.stats, counts)

    def count(self, member: int, found: Mapping[str, float]) -> None:
        """Update the counts of a member; raise errors of games on the device."""
        if found["opponent_rows"] and not self.slots:
            raise ConfigError(
                f"{found['opponent_rows']:.0f} rows belong to policies without a slot, of earlier "
                "line-ups; reset the games"
            )
        if found["frozen"]:
            self.games.check()
        if found["cuts_dropped"] and not self._warned_truncations:
            self._warned_truncations = True
            text = (
                f"games are truncated more than {len(self.rollout.cut_at)} times in a rollout of "
                f"{self.rollout.steps} steps; the decisions before further truncations are not "
                "learned from, learning/cuts_dropped counts them; raise the game's limit"
            )
            warnings.warn(SparringWarning(text), stacklevel=3)
        self.decisions[member] += int(found["decisions"])
        self.opponent_rows[member] += int(found["opponent_rows"])

    def give_up(self, member: int, lr: float) -> None:
        """Stop a member that diverged; a single run raises."""
        if self.diverged[member]:
            return
        why = (
            f"update {self.updates - 1}: a loss, gradient or weight of member {member} (seed "
            f"{self.games.seeds[member]}) is not finite"
        )
        if self.members == 1:
            raise DivergedError(f"{why} with a learning rate of {format_rounded(lr)}")
        self.diverged[member] = f"{why} with a learning rate of {format_rounded(lr)}"

    def report(self, member: int, stats: dict[str, float]) -> Report:
        """Finish an update of a member: average its weights and make its report."""
        if self.average and not self.diverged[member]:
            self.average.add(member, self.net, self.decisions[member])
        counts = self.decisions[member], self.samples[member], self.opponent_rows[member]
        met = self.met[member] if self.met is not None else None
        return Report(stats, *counts, met=met, diverged=self.diverged[member])

    # Saving and playing

    def snapshot(self, member: int) -> Snapshot:
        """Copy the state of self-play. A diverged member has no games: its network broke them."""
        rows, pending = self.rollout.pending_state(member)
        blobs = {}
        if not self.diverged[member]:
            blobs = {GAMES: self.games.state(member), PENDING: pending}
        nets = {"net": (self.average or self.net).state(member)}
        if self.average:
            nets[TRAINED] = self.net.state(member)
        return Snapshot(
            tensors={**nets, "carried": rows},
            blobs=blobs,
            meta={
                "update": self.updates,
                "decisions": self.decisions[member],
                "samples": self.samples[member],
                "opponent_rows": self.opponent_rows[member],
                **self.policy_meta,
                **self._description,
            },
        )

    def restore(self, snapshot: Snapshot, member: int) -> None:
        try:
            self.net.load(member, trained_weights(snapshot.tensors))
            if self.average:
                made = snapshot.meta["decisions"]
                self.average.load(member, snapshot.tensors["net"], made)
        except (KeyError, RuntimeError) as wrong:
            raise StateError(f"the checkpoint holds another network: {wrong}") from None
        if GAMES in snapshot.blobs:
            pending = snapshot.tensors["carried"]
            self.rollout.load_pending_rows(member, pending, snapshot.blobs[PENDING])
            self.games.load_state(snapshot.blobs[GAMES], member)
        elif not self.updates and snapshot.meta["update"] and self.members == 1:
            # Others than those that the run began with.
            self.games.reset(derive_seed(self.games.seeds[0], snapshot.meta["update"]))
        meta = snapshot.meta
        self.updates, self.diverged[member] = meta["update"], ""
        self.decisions[member], self.samples[member] = meta["decisions"], meta["samples"]
        self.opponent_rows[member] = int(meta.get("opponent_rows", 0))

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        net = self.fresh_net()
        net.load_state_dict((self.average or self.net).state(member))
        rules = self.games.custom_rules[member]
        return Policy(rules, net, name=f"update {self.updates}", meta=self.policy_meta)
