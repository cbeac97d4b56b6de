"""PPO on a GPU: games, rollout, advantages and update as two CUDA graphs.

The same algorithm as `learn.ppo`, which stays the readable one and the one for CPUs; tests hold
the two equal. Python runs once per update.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn.fused.games import Games
from sparring.learn.fused.learner import FusedLearner
from sparring.learn.fused.minibatches import check_configs
from sparring.learn.fused.update import Update
from sparring.learn.learner import Report, Snapshot
from sparring.learn.on_policy import optimiser_state
from sparring.learn.ppo import LOGGED, has_unit
from sparring.schedule import Moment


class FusedPPO(FusedLearner):
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
        by_role, slots, graphs: see `FusedLearner`.
        """
        members = len(games.seeds)
        given = [configs] * members if isinstance(configs, PPOConfig) else list(configs)
        check_configs(games, collect.games, given)
        super().__init__(games, collect, net, by_role=by_role, slots=slots, graphs=graphs)
        self.configs = given
        cutting = self.acting
        if games.at_once * self.members != self.rollout.rows:
            cutting = self.net.passing(self.rollout.rows // self.members, learn=False)
        self.update = Update(
            self.kernels,
            self.net,
            games,
            self.rollout,
            cutting=cutting,
            configs=given,
            seeds=self.seeds,
            clock=self.clock,
        )
        self.figures = self.update.figures
        self._events: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(3)]  # type: ignore[no-untyped-call]
        self._ended_at = time.perf_counter()

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
            samples = self.samples[member] + int(self.figures.of(member)["samples"])
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
        self.figures.fetch()
        torch.cuda.current_stream().synchronize()
        self.phases.seconds = {
            "rollout": start.elapsed_time(middle) / 1000,
            "update": middle.elapsed_time(end) / 1000,
        }
        return float(start.elapsed_time(end)) / 1000

    # Reports

    def _stats(self, member: int) -> dict[str, float]:
        """Name what an update found as curves show it."""
        found, update = self.figures.of(member), self.update
        steps = found["optimiser_steps"]
        stats = {f"losses/{name}": found[name] / max(steps, 1.0) for name in (*LOGGED, "grad_norm")}
        stats |= {
            "losses/explained_variance": found["explained_variance"],
            "learning/value_scale": found["value_scale"],
            "learning/optimiser_steps": steps,
            "learning/samples": found["samples"],
            "learning/decisions": found["decisions"],
            "learning/left_out": max(found["samples"] - update.minibatches * update.room, 0.0),
        }
        return stats | self._earned(found)

    def _count(self, member: int, lr: float) -> None:
        """Add up what was done; raises what went wrong on the device."""
        found = self.figures.of(member)
        if found["diverged"]:
            self._give_up(member, lr)
            return
        self._check_rollout(found)
        if not found["samples"]:
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        self.samples[member] += int(found["samples"])
        self.decisions[member] += int(found["decisions"])
        self.opponent_rows[member] += int(found["opponent_rows"])

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what a member's next update depends on, in the layout of `PPO.snapshot`."""
        saved = self._saved(member)
        return replace(
            saved,
            tensors={**saved.tensors, "optimiser": self.update.optimiser(member)},
            meta={**saved.meta, "has_unit": bool(self.update.has_unit[member])},
        )

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a member of a fresh learner where the snapshot was taken."""
        self._put_saved(snapshot, member)
        self.update.load_optimiser(member, optimiser_state(snapshot))
        self.update.diverged[member] = 0
        self.update.has_unit[member] = int(has_unit(snapshot))
