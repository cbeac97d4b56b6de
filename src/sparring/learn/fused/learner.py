"""PPO on a GPU: games, rollout, advantages and update as two CUDA graphs.

The same algorithm as `learn.ppo`, which stays the readable one and the one for CPUs; tests hold
the two equal. Nothing waits for the device inside a rollout or an update, nothing is allocated,
and Python runs once per update. Several members of a population learn side by side in the same
arrays. Where games live on CPU threads, their rollout is no graph but the answers to rows are.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError, SparringWarning, StateError
from sparring.games.rules import Rules
from sparring.kernels import Module
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import blocks_of, heads_view, learner_kernels
from sparring.learn.fused.minibatches import check_configs
from sparring.learn.fused.opponents import FrozenOpponents
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.fused.update import Update
from sparring.learn.learner import DivergedError, Report, Snapshot
from sparring.learn.on_policy import optimiser_state
from sparring.learn.opponents import check_slot
from sparring.learn.phases import Phases
from sparring.learn.ppo import LOGGED, has_unit
from sparring.nets.flat import FlatNet
from sparring.nets.flat_kinds import make_flat
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.policy import Policy
from sparring.pools.lineups import LEARNER, Pots, check_answered
from sparring.pools.protocol import EXACT
from sparring.schedule import Moment


class FusedPPO:
    """The learner of one member or of a whole population."""

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: PPOConfig | Sequence[PPOConfig],
        net: NetConfig,
        *,
        by_role: bool = False,
        slots: int = 0,
        graphs: bool = True,
    ) -> None:
        """Take over games whose seeds are those of the members.

        configs: one for all members, or one each; they share what decides the shapes.
        by_role: a decision's next one is the seat's next in the same role.
        slots: room for frozen networks of the same kind, for every member.
        graphs: False launches every kernel from Python, for debugging.
        """
        self.games, self.members = games, len(games.seeds)
        given = [configs] * self.members if isinstance(configs, PPOConfig) else list(configs)
        check_configs(games, collect.games, given)
        self.slots = slots
        check_answered(self.pool.policies, range(slots + 1))
        self.configs, self.device, self.graphs = given, games.device, graphs
        self.net: FlatNet = make_flat(
            games.rules,
            net,
            self.members,
            bf16=collect.bf16,
            device=self.device,
            memory=self.pool.memory_bytes,
        )
        for member, seed in enumerate(games.seeds):
            torch.manual_seed(seed)
            fresh = self._fresh_net()
            self.net.load(member, fresh.state_dict())
        self._description = fresh.describe()
        self.kernels: Module = learner_kernels(games.rules, bf16=collect.bf16, device=self.device)
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
        )
        games.reset()
        self._frozen: FrozenOpponents | None = None
        if slots:
            self._frozen = FrozenOpponents(games, self.kernels, net, slots, bf16=collect.bf16)
        self.acting = cutting = self.net.passing(games.at_once, learn=False)
        if games.at_once * self.members != self.rollout.rows:
            cutting = self.net.passing(self.rollout.rows // self.members, learn=False)
        self.update = Update(
            self.kernels, self.net, games, self.rollout, cutting=cutting, configs=given
        )
        self._nobody = self.kernels.view("FrozenView", position=None, group=None, greedy=None)
        self._acting_heads = heads_view(self.kernels, self.net, self.acting)
        self.updates = 0
        self.decisions, self.samples = [0] * self.members, [0] * self.members
        self.opponent_rows = [0] * self.members
        self.diverged = [""] * self.members
        """Why members learn no more."""
        self.phases = Phases()
        self._met: npt.NDArray[np.int64] | None = None
        """Of the last update [members, players, 3]."""
        self._told_cuts = False
        self._captured: dict[str, torch.cuda.CUDAGraph] = {}
        self._graph_pool: Any = None
        self._ran: set[str] = set()
        self._events: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(3)]  # type: ignore[no-untyped-call]
        self._ended_at = time.perf_counter()

    @property
    def pool(self) -> Any:
        """The games' pool."""
        return self.games.pool

    @property
    def rules(self) -> Rules:
        """The game."""
        rules: Rules = self.pool.rules
        return rules

    @property
    def exact(self) -> bool:
        """Whether a snapshot holds the games in flight."""
        return EXACT in self.pool.can

    def _fresh_net(self) -> Net:
        return make_net(self.games.rules, self.net.config, memory=self.pool.memory_bytes)

    def iterate(self, progress: float) -> list[Report]:
        """Play a rollout and learn from it; returns what each member earned and learned."""
        self._check_filled()
        moments = [Moment(made, progress) for made in self.decisions]
        knobs = self.update.turn_knobs(self.updates, moments)
        took = self._work("rollout", self._play, whole=self.games.captures)
        now = time.perf_counter()
        busy = min(took / max(now - self._ended_at, 1e-9), 1.0)
        self._ended_at = now
        self.updates += 1
        self._met = self.rollout.met.cpu().numpy().astype(np.int64)
        reports = []
        for member, mine in enumerate(knobs):
            self._count(member, mine.lr)
            named: dict[str, float] = {}
            if not self.diverged[member]:
                named = self._stats(member)
                named |= {"learning/lr": mine.lr, "learning/entropy_weight": mine.entropy}
                if self.games.gpu_alone:  # else the time between events is the CPU's too
                    named["charts/gpu_busy"] = busy
            reports.append(self._report(member, named))
        return reports

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        rollout, front = self.rollout, slice(0, self.rollout.carried)
        kept = [
            *self.update.kept(),
            rollout.open,
            *(rollout.obs[front], rollout.legal[front], rollout.action[front]),
            *(rollout.log_prob[front], rollout.value[front]),
        ]
        before = [tensor.clone() for tensor in kept]
        self._work("free rollout", self._answer_all, whole=True)
        for tensor, old in zip(kept, before, strict=True):
            tensor.copy_(old)
        torch.cuda.synchronize()
        reports = []
        for member in range(self.members):
            samples = self.samples[member] + int(self.update.figures(member)["samples"])
            counts = self.decisions[member], samples, self.opponent_rows[member]
            reports.append(Report(self._stats(member), *counts))
        return reports

    def _work(self, name: str, rollout: Callable[[], None], *, whole: bool) -> float:
        """Run rollout and update, wait for them, and return the device's seconds.

        whole: the rollout is one graph.
        """
        start, middle, end = self._events
        start.record()
        if whole:
            self._run(name, rollout)
        else:
            rollout()
        # Most rollouts cut no game or each once: waiting here is cheaper than passes over nothing.
        for number in range(self.rollout.cut_layers()):
            self._run(f"cuts {number}", partial(self.update.value_cuts, number))
        middle.record()
        if self._frozen:
            self._run("advantages", self.update.begin)
            self._run(f"update {self.update.fit()}", self.update.finish)
        else:
            self._run("update", self.update.learn)
        end.record()
        self.update.fetch()
        torch.cuda.current_stream().synchronize()
        self.phases.seconds = {
            "rollout": start.elapsed_time(middle) / 1000,
            "update": middle.elapsed_time(end) / 1000,
        }
        return float(start.elapsed_time(end)) / 1000

    def _run(self, name: str, work: Callable[[], None]) -> None:
        """Replay a graph. The first time runs without one, which also wakes up every library."""
        if not self.graphs or name not in self._ran:
            self._ran.add(name)
            work()
            return
        if name not in self._captured:
            graph = torch.cuda.CUDAGraph()
            # What a graph allocates is of no use behind it: all of them share one piece of memory.
            with torch.cuda.graph(graph, pool=self._graph_pool):
                work()
            self._captured[name], self._graph_pool = graph, graph.pool()
        self._captured[name].replay()

    # Rollout

    def _play(self) -> None:
        """Play `steps` steps."""
        self.rollout.final_value.fill_(torch.nan)
        self.games.play(self.rollout, self._answer if self.games.captures else self._answer_fast)

    def _answer_all(self) -> None:
        """Answer the rows of the last rollout once more, without games."""
        self.rollout.final_value.fill_(torch.nan)
        at_once = self.games.at_once * self.members
        for step in range(self.rollout.steps):
            for first in range(0, self.rollout.rows, at_once):
                self._answer(step, slice(first, first + at_once))

    def _answer_fast(self, step: int, rows: slice) -> None:
        """Answer some rows of a step, as a graph of their own once everything is warm."""
        self._run(f"answer {step} {rows.start}", lambda: self._answer(step, rows))

    def _answer(self, step: int, rows: slice) -> None:
        """One forward pass for rows of a step, and an action for each."""
        rollout, update, view = self.rollout, self.update, self.kernels.view
        at, count = rollout.at(step, rows), rows.stop - rows.start
        if self._frozen:
            self._frozen.look(rollout.obs[at], rollout.policy[step, rows], count // self.members)
        self.acting.read(rollout.obs[at])
        self.acting.forward()
        asked: dict[str, Any] = {
            "legal": rollout.legal[at],
            "policy": rollout.policy[step, rows],
            "learner": LEARNER,
            "frozen": self._nobody,
            "seeds": update.seeds,
            "clock": update.clock,
            "value_scale": self.net.value_scale,
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
        blocks = blocks_of(count, update.block_rows)
        self.kernels.draw(blocks, 256, self._acting_heads, view("AskedView", **asked), answers)
        if self._frozen:
            self._frozen.answer(asked, answers, blocks)

    # Frozen opponents, as `learn.opponents.TakesOpponents` has them

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network of the learner's own kind into a slot."""
        check_slot(slot, self.slots)
        assert self._frozen
        self._frozen.put(member, slot, weights, greedy=greedy)

    def set_pots(self, pots: Pots, member: int = 0) -> None:
        """Say who is drawn from every pot from now on, when games begin."""
        self.games.set_pots(pots, member)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running."""
        return self.games.seated(self.slots + 1, member)

    def _check_filled(self) -> None:
        """Refuse to play with a policy at the tables that nobody answers.

        Members fill their slots each at its own time.
        """
        for member in range(self.members):
            filled = self._frozen.filled[member] if self._frozen else [False]
            known = [LEARNER, *(slot for slot, there in enumerate(filled) if there)]
            check_answered(self.games.policies(member), known)

    # Reports

    def _stats(self, member: int) -> dict[str, float]:
        """Name what an update found as curves show it."""
        found, update = self.update.figures(member), self.update
        steps = found["optimiser_steps"]
        stats = {f"losses/{name}": found[name] / max(steps, 1.0) for name in (*LOGGED, "grad_norm")}
        stats |= {
            "losses/explained_variance": found["explained_variance"],
            "learning/value_scale": found["value_scale"],
            "learning/optimiser_steps": steps,
            "learning/samples": found["samples"],
            "learning/decisions": found["decisions"],
            "learning/left_out": max(found["samples"] - update.minibatches * update.room, 0.0),
            "learning/cuts_dropped": found["cuts_dropped"],
            "charts/games": found["earned_games"],
            "charts/forced": found["forced"],
        }
        if found["earned_games"]:
            stats["charts/length"] = found["earned_length"] / found["earned_games"]
        if found["earned_seats"]:
            stats["charts/score"] = found["earned_score"] / found["earned_seats"]
        return stats

    def _count(self, member: int, lr: float) -> None:
        """Add up what was done; raises what went wrong on the device."""
        found = self.update.figures(member)
        if found["diverged"]:
            self._give_up(member, lr)
            return
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
        if not found["samples"]:
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        self.samples[member] += int(found["samples"])
        self.decisions[member] += int(found["decisions"])
        self.opponent_rows[member] += int(found["opponent_rows"])

    def _give_up(self, member: int, lr: float) -> None:
        """Note that a member learns no more; one that is trained alone is an error."""
        if self.diverged[member]:
            return
        why = (
            f"update {self.updates - 1}: a loss, gradient or weight of member {member} (seed "
            f"{self.games.seeds[member]}) is not finite"
        )
        if self.members == 1:
            raise DivergedError(f"{why} with a learning rate of {lr:g}")
        self.diverged[member] = f"{why} with a learning rate of {lr:g}"

    def _report(self, member: int, stats: dict[str, float]) -> Report:
        counts = self.decisions[member], self.samples[member], self.opponent_rows[member]
        met = self._met[member] if self._met is not None else None
        return Report(stats, *counts, met=met, diverged=self.diverged[member])

    # Saving and playing

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what a member's next update depends on, in the layout of `PPO.snapshot`.

        The games of one that diverged are left out: they were played on by a broken network.
        """
        rows, open_decisions = self.rollout.front(member)
        blobs = {}
        if not self.diverged[member]:
            blobs = {"games.bin": self.games.state(member), "open.bin": open_decisions}
        return Snapshot(
            tensors={
                "net": self.net.state(member),
                "optimiser": self.update.optimiser(member),
                "carried": rows,
            },
            blobs=blobs,
            meta={
                "update": self.updates,
                "decisions": self.decisions[member],
                "samples": self.samples[member],
                "opponent_rows": self.opponent_rows[member],
                "has_unit": bool(self.update.has_unit[member]),
                **self._description,
            },
        )

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a member of a fresh learner where the snapshot was taken."""
        try:
            self.net.load(member, snapshot.tensors["net"])
        except (KeyError, RuntimeError) as wrong:
            raise StateError(f"the checkpoint holds another network: {wrong}") from None
        self.update.load_optimiser(member, optimiser_state(snapshot))
        if "games.bin" in snapshot.blobs:
            carried = snapshot.tensors["carried"]
            self.rollout.put_front(member, carried, snapshot.blobs["open.bin"])
            self.games.load_state(snapshot.blobs["games.bin"], member)
        meta = snapshot.meta
        self.updates, self.diverged[member] = meta["update"], ""
        self.update.diverged[member] = 0
        self.update.has_unit[member] = int(has_unit(snapshot))
        self.decisions[member], self.samples[member] = meta["decisions"], meta["samples"]
        self.opponent_rows[member] = int(meta.get("opponent_rows", 0))

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        net = self._fresh_net()
        net.load_state_dict(self.net.state(member))
        return Policy(self.rules, net, name=f"update {self.updates}")
