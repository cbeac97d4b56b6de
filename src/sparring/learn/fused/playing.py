"""Playing on a GPU: games, networks, the answers to rows, frozen opponents, counts, what is saved.

Every learner on a GPU owns one of these, as every other one owns a `learn.playing.SelfPlay`. The
members of a population play side by side in the same arrays. Nothing waits for the device inside a
rollout, nothing is allocated. Where games live on CPU threads, their rollout is no graph but the
answers to rows are. tests/cuda/test_fused_rollout.py holds the answers against the networks'
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
from sparring.games.stats import stat_metrics
from sparring.kernels import KernelModule
from sparring.learn.acting import check_slot
from sparring.learn.fused.games import Games
from sparring.learn.fused.graphs import Graphs, Stopwatch
from sparring.learn.fused.heads import kept_for
from sparring.learn.fused.kernels import PPO_SOURCE, blocks_of, heads_view, learner_kernels
from sparring.learn.fused.opponents import FrozenOpponents
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.head_terms import head_terms
from sparring.learn.learner import DivergedError, Report, Snapshot, Timing
from sparring.nets.inputs import memory_bytes_of, stack_frames
from sparring.nets.make import make_net
from sparring.nets.net import Net, configured_heads, set_wdl_blend
from sparring.nets.policy import BY_VALUE, Policy
from sparring.nets.run.flat import FlatNet, Pass
from sparring.nets.run.make_flat import FlatHierarchy, make_flat
from sparring.pools.lineups import LEARNER, Mixes, check_answered
from sparring.pools.protocol import EXACT
from sparring.schedule import format_rounded


class RoleActing:
    """A network that answers rows: all of them, or those of one role."""

    def __init__(
        self, kernels: KernelModule, net: FlatNet, rows: int, role: int | None = None
    ) -> None:
        self.net, self.role = net, role
        self.passing: Pass = net.make_pass(rows, learn=False)
        self.heads = heads_view(kernels, net, self.passing)

    def asked(self, role: Tensor | None) -> dict[str, Any]:
        """What of `AskedView` is its own. role: of the rows."""
        own = role if self.role is not None else None
        return {"role": own, "only": self.role or 0, "value_scale": self.net.value_scale}


class FusedSelfPlay:
    """Plays with the networks of one member or of a whole population."""

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
        facts: Mapping[str, bool] | None = None,
        source: str = PPO_SOURCE,
        final_legal: bool = False,
        examples: int = 0,
        heads: HeadsConfig | None = None,
    ) -> None:
        """Take over games whose seeds are those of the members.

        roles: networks by role, in the order of the game's, instead of one for all.
        by_role: a decision's next one is the seat's next in the same role.
        slots: room for frozen networks of the same kind, for every member.
        graphs: False launches every kernel from Python, for debugging.
        facts: metadata of the heads, see `nets.policy.HEAD_META`. `BY_VALUE`: the policy head
            holds action values, whose best is played.
        source: the kernels that are launched.
        final_legal: keep what seats might do when games are cut.
        examples: room for decisions seen in hindsight.
        heads: what the network is asked besides policy and value, of a learner with terms.
        """
        if games.each != collect.games:
            raise ConfigError(f"the pool has {games.each} games, the config {collect.games}")
        self.games, self.pool, self.rules = games, games.pool, games.rules
        """The rules are those of the first member; phases change flags of the pool's alone."""
        self.members, self.device, self.slots = len(games.seeds), games.device, slots
        self.config, self.roles, self.facts = net, dict(roles or {}), dict(facts or {})
        self.exact = EXACT in self.pool.can
        """Whether a snapshot holds the games in flight."""
        if memory_bytes_of(games.rules, net) not in (0, self.pool.memory_bytes):
            raise ConfigError(
                f"the pool has {self.pool.memory_bytes} bytes of memory per seat and net.memory "
                f"{net.memory} needs {memory_bytes_of(games.rules, net)}; make it with as many"
            )
        check_answered(self.pool.policies, range(slots + 1))
        self.heads, self.formulas = heads, head_terms(games.rules, heads)
        self.net: Any = self._make_flat(bf16=collect.bf16)
        """The networks of all members: a `FlatNet`, or several behind one face."""
        self.graphs = Graphs(self.device, net.kind, on=graphs, eager=self.net.eager_reason)
        for member, seed in enumerate(games.seeds):
            torch.manual_seed(seed)
            fresh = self.fresh_net()
            self.net.load(member, fresh.state_dict())
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
            **kept_for(self.formulas),
        )
        games.reset()
        self.frozen: FrozenOpponents | None = None
        if slots:
            self.frozen = FrozenOpponents(games, self.kernels, net, slots, bf16=collect.bf16)
        self.voices = self._make_voices()
        """Who answers the learner's rows, by role; the only one is called \"\"."""
        self.clock = torch.zeros(1, dtype=torch.int32, device=self.device)
        """The number of the rollout."""
        # The bits of unsigned 64-bit seeds.
        seeds = np.array([seed % 2**64 for seed in games.seeds], np.uint64)
        self.seeds = torch.from_numpy(seeds.view(np.int64)).to(self.device)
        self.block_rows = 256 if games.rules.box else 8  # a thread has a row, or a warp has it
        self._nobody = self.kernels.view("FrozenView", position=None, group=None, greedy=None)
        self.epsilon: Tensor | None = None
        """By row of a step, how probable a random action is; None: nobody explores."""
        self.updates = 0
        self.decisions, self.samples = [0] * self.members, [0] * self.members
        self.opponent_rows = [0] * self.members
        self.diverged = [""] * self.members
        """Why members learn no more."""
        self.phases = Timing()
        self.watch = Stopwatch(self.phases)
        self.met: npt.NDArray[np.int64] | None = None
        """Of the last update [members, players, 3]."""
        self._told_cuts = False

    def _make_flat(self, *, bf16: bool) -> FlatNet | FlatHierarchy:
        room: dict[str, Any] = {"bf16": bf16, "device": self.device}
        room["memory"] = self.pool.memory_bytes
        if self.roles:
            return FlatHierarchy(self.rules, self.roles, self.members, **room)
        heads = configured_heads(self.rules, self.heads)
        return make_flat(self.rules, self.config, self.members, heads=heads, **room)

    def _make_voices(self) -> dict[str, RoleActing]:
        at_once = self.games.at_once
        if not self.roles:
            return {"": RoleActing(self.kernels, self.net, at_once)}
        nets: dict[str, FlatNet] = self.net.roles
        return {
            role: RoleActing(self.kernels, net, at_once, number)
            for number, (role, net) in enumerate(nets.items())
        }

    def fresh_net(self) -> Net:
        """A network that has learned nothing."""
        rules, memory = self.rules, self.pool.memory_bytes
        if self.roles:
            return make_net(rules, self.config, memory=memory, roles=self.roles)
        heads = configured_heads(rules, self.heads)
        return set_wdl_blend(
            make_net(rules, self.net.net_config, heads=heads, memory=memory), self.heads
        )

    # Rollout

    def play(self) -> None:
        """Play `steps` steps."""
        self.rollout.final_value.fill_(torch.nan)
        self.games.play(self.rollout, self._answer if self.games.captures else self._answer_fast)

    def answer_again(self) -> None:
        """Answer the rows of the last rollout once more, without games."""
        self.rollout.final_value.fill_(torch.nan)
        at_once = self.games.at_once * self.members
        for step in range(self.rollout.steps):
            for first in range(0, self.rollout.rows, at_once):
                self._answer(step, slice(first, first + at_once))

    def _answer_fast(self, step: int, rows: slice) -> None:
        """Answer some rows of a step, as a graph of their own once everything is warm."""
        self.graphs.run(f"answer {step} {rows.start}", lambda: self._answer(step, rows))

    def _answer(self, step: int, rows: slice) -> None:
        """A forward pass for rows of a step, one for each network, and an action for each row."""
        rollout, view = self.rollout, self.kernels.view
        at, count = rollout.at(step, rows), rows.stop - rows.start
        if self.frozen:
            self.frozen.look(rollout.obs[at], rollout.policy[step, rows], count // self.members)
        for voice in self.voices.values():
            voice.passing.read(rollout.obs[at])
            voice.passing.forward()
        epsilon = self.epsilon[rows] if self.epsilon is not None else None
        asked: dict[str, Any] = {
            "legal": rollout.legal[at],
            "policy": rollout.policy[step, rows],
            "learner": LEARNER,
            "frozen": self._nobody,
            "explore": view("ExploreView", epsilon=epsilon, greedy=int(BY_VALUE in self.facts)),
            "seeds": self.seeds,
            "clock": self.clock,
            "rows": count,
            "rows_each": count // self.members,
            "first_row": rows.start,
            "step": step,
        }
        answers = view(
            "AnswersView",
            action=rollout.action[at],
            log_prob=rollout.log_prob[at],
            value=rollout.value[at],
            played=rollout.played if rollout.squash else None,
        )
        blocks = blocks_of(count, self.block_rows)
        for voice in self.voices.values():
            own = asked | voice.asked(rollout.role[step, rows])
            self.kernels.draw(blocks, 256, voice.heads, view("AskedView", **own), answers)
        if self.frozen:
            self.frozen.answer(asked | self.voices[""].asked(None), answers, blocks)
        if rollout.remembered is not None:
            self._remember(rollout.obs[at], rollout.remembered[rows])

    def _remember(self, obs: Tensor, to: Tensor) -> None:
        """Write what rows make their seats remember [rows, numbers], whoever answers them.

        Only one network for all remembers.
        """
        voice = self.voices[""]
        made, net = voice.passing.memory, voice.net
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
        """Put a frozen network of the learner's own kind into a slot."""
        check_slot(slot, self.slots)
        assert self.frozen
        self.frozen.put(member, slot, weights, greedy=greedy or BY_VALUE in self.facts)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        """Say who is drawn from every mix from now on, when games begin."""
        self.games.set_mixes(mixes, member)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running."""
        return self.games.seated(self.slots + 1, member)

    def check_filled(self) -> None:
        """Refuse to play with a policy at the tables that nobody answers.

        Members fill their slots each at its own time.
        """
        for member in range(self.members):
            filled = self.frozen.filled[member] if self.frozen else [False]
            known = [LEARNER, *(slot for slot, there in enumerate(filled) if there)]
            check_answered(self.games.policies(member), known)

    # Reports

    def earned(self, found: Mapping[str, float]) -> dict[str, float]:
        """Name what finished games brought as curves show it."""
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
        """Add up what a rollout did; raise what went wrong with games on the device."""
        if found["opponent_rows"] and not self.slots:
            raise ConfigError(
                f"{found['opponent_rows']:.0f} rows are of policies that nobody answers; they sat "
                "down under other line-ups, reset the games"
            )
        if found["frozen"]:
            self.games.check()
        if found["cuts_dropped"] and not self._told_cuts:
            self._told_cuts = True
            text = (
                f"games are cut more than {len(self.rollout.cut_at)} times in a rollout of "
                f"{self.rollout.steps} steps; the decisions before further cuts are not learned "
                "from, learning/cuts_dropped counts them; raise the game's limit"
            )
            warnings.warn(SparringWarning(text), stacklevel=3)
        self.decisions[member] += int(found["decisions"])
        self.opponent_rows[member] += int(found["opponent_rows"])

    def give_up(self, member: int, lr: float) -> None:
        """Note that a member learns no more; one that is trained alone is an error."""
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
        counts = self.decisions[member], self.samples[member], self.opponent_rows[member]
        met = self.met[member] if self.met is not None else None
        return Report(stats, *counts, met=met, diverged=self.diverged[member])

    # Saving and playing

    def snapshot(self, member: int) -> Snapshot:
        """Copy what playing depends on.

        The games of one that diverged are left out: they were played on by a broken network.
        """
        rows, pending = self.rollout.pending_state(member)
        blobs = {}
        if not self.diverged[member]:
            blobs = {"games.bin": self.games.state(member), "open.bin": pending}
        return Snapshot(
            tensors={"net": self.net.state(member), "carried": rows},
            blobs=blobs,
            meta={
                "update": self.updates,
                "decisions": self.decisions[member],
                "samples": self.samples[member],
                "opponent_rows": self.opponent_rows[member],
                **self.facts,
                **self._description,
            },
        )

    def restore(self, snapshot: Snapshot, member: int) -> None:
        try:
            self.net.load(member, snapshot.tensors["net"])
        except (KeyError, RuntimeError) as wrong:
            raise StateError(f"the checkpoint holds another network: {wrong}") from None
        if "games.bin" in snapshot.blobs:
            pending = snapshot.tensors["carried"]
            self.rollout.load_pending_rows(member, pending, snapshot.blobs["open.bin"])
            self.games.load_state(snapshot.blobs["games.bin"], member)
        meta = snapshot.meta
        self.updates, self.diverged[member] = meta["update"], ""
        self.decisions[member], self.samples[member] = meta["decisions"], meta["samples"]
        self.opponent_rows[member] = int(meta.get("opponent_rows", 0))

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        net = self.fresh_net()
        net.load_state_dict(self.net.state(member))
        rules = self.games.custom_rules[member]
        return Policy(rules, net, name=f"update {self.updates}", meta=self.facts)
