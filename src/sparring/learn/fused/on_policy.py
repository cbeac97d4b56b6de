"""Learning from fresh rollouts on a GPU: a rollout and an update as CUDA graphs, in turns.

`learn.fused.ppo` has one network, `learn.fused.hierarchy` one for every role.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, HindsightConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn.fused.examples import Records, room_for
from sparring.learn.fused.games import Games
from sparring.learn.fused.learner import FusedLearner, Voice
from sparring.learn.fused.update import Update
from sparring.learn.learner import Report
from sparring.learn.mirror import mirrors_of
from sparring.learn.ppo import LOGGED
from sparring.schedule import Moment


class FusedOnPolicy(FusedLearner):
    """Plays, learns, counts and rehearses; kinds say what an update is made of."""

    recurrent = True

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        net: NetConfig,
        *,
        hindsight: HindsightConfig | None = None,
        **options: Any,
    ) -> None:
        """Take over games, as `FusedLearner` does.

        hindsight: how decisions are seen once more, if they are.
        """
        seen = hindsight if hindsight and hindsight.sees else None
        examples = 0
        if seen:
            rows = collect.steps * games.each * games.rules.rows
            examples = len(games.seeds) * room_for(rows, seen.share)
        super().__init__(games, collect, net, examples=examples, **options)
        self.records = Records(games, self.rollout, seen) if seen else None
        memory = self.pool.memory_bytes
        self.mirrors = mirrors_of(self.rules, collect, self.device, memory=memory)
        self._events: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(3)]  # type: ignore[no-untyped-call]
        self._ended_at = time.perf_counter()

    def make_update(self, voice: Voice, configs: Sequence[PPOConfig]) -> Update:
        """Return what learns the decisions that a network makes."""
        cutting = voice.passing
        if self.games.at_once * self.members != self.rollout.rows:
            cutting = voice.net.passing(self.rollout.rows // self.members, learn=False)
        return Update(
            self.kernels,
            voice.net,
            self.games,
            self.rollout,
            cutting=cutting,
            configs=configs,
            seeds=self.seeds,
            clock=self.clock,
            role=voice.role,
            brings=[self.records] if self.records else [],
            mirrors=self.mirrors,
        )

    # What kinds add

    @abstractmethod
    def turn_knobs(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        """Send schedules to the device; returns what curves show of them, by member."""

    @abstractmethod
    def value_cuts(self, number: int) -> None:
        """Estimate what games would still have paid when they were cut for the `number`th time."""

    @abstractmethod
    def learn(self) -> None:
        """Advantages, epochs over shuffled minibatches, and what is carried on."""

    @abstractmethod
    def kept(self) -> list[Tensor]:
        """What an update changes of networks and optimisers."""

    @abstractmethod
    def sampled(self, member: int) -> int:
        """Decisions that the last update learned from."""

    @abstractmethod
    def learned(self, member: int) -> dict[str, float]:
        """What the last update brought, as curves show it."""

    # The course of an update

    def iterate(self, progress: float) -> list[Report]:
        """Play a rollout and learn from it; returns what each member earned and learned."""
        self._check_filled()
        knobs = self.turn_knobs([Moment(made, progress) for made in self.decisions])
        took = self._work("rollout", self._play, whole=self.games.captures)
        now = time.perf_counter()
        busy = min(took / max(now - self._ended_at, 1e-9), 1.0)
        self._ended_at = now
        self.updates += 1
        self._met = self.rollout.met.cpu().numpy().astype(np.int64)
        reports = []
        for member, mine in enumerate(knobs):
            self._count(member, max(value for name, value in mine.items() if "/lr" in name))
            named: dict[str, float] = {}
            if not self.diverged[member]:
                named = self._stats(member) | mine
                if self.games.gpu_alone:  # else the time between events is the CPU's too
                    named["charts/gpu_busy"] = busy
            reports.append(self._report(member, named))
        return reports

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        rollout, front = self.rollout, slice(0, self.rollout.carried)
        kept = [
            *self.kept(),
            rollout.open,
            *(rollout.obs[front], rollout.legal[front], rollout.action[front]),
            *(rollout.log_prob[front], rollout.value[front]),
            *(column.by_place[front] for column in rollout.columns),
        ]
        before = [tensor.clone() for tensor in kept]
        self._work("free rollout", self._answer_all, whole=True)
        for tensor, old in zip(kept, before, strict=True):
            tensor.copy_(old)
        torch.cuda.synchronize()
        reports = []
        for member in range(self.members):
            samples = self.samples[member] + self.sampled(member)
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
            self._run(f"cuts {number}", partial(self.value_cuts, number))
        middle.record()
        self.learn()
        end.record()
        self.figures.fetch()
        torch.cuda.current_stream().synchronize()
        self.phases.seconds = {
            "rollout": start.elapsed_time(middle) / 1000,
            "update": middle.elapsed_time(end) / 1000,
        }
        return float(start.elapsed_time(end)) / 1000

    def _stats(self, member: int) -> dict[str, float]:
        """Name what an update found as curves show it."""
        found = self.figures.of(member)
        decisions = {"learning/decisions": found["decisions"]}
        return self.learned(member) | decisions | self._earned(found)

    def _count(self, member: int, lr: float) -> None:
        """Add up what was done; raises what went wrong on the device."""
        found = self.figures.of(member)
        if found["diverged"]:
            self._give_up(member, lr)
            return
        self._check_rollout(found)
        samples = self.sampled(member)
        if not samples:
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        self.samples[member] += samples
        self.decisions[member] += int(found["decisions"])
        self.opponent_rows[member] += int(found["opponent_rows"])


def learned_of(found: Mapping[str, float], update: Update) -> dict[str, float]:
    """What an update brought, as curves show it. found: its figures."""
    steps = found["optimiser_steps"]
    stats = {f"losses/{name}": found[name] / max(steps, 1.0) for name in (*LOGGED, "grad_norm")}
    return stats | {
        **update.terms.stats(found, steps),
        "losses/explained_variance": found["explained_variance"],
        "learning/value_scale": found["value_scale"],
        "learning/optimiser_steps": steps,
        "learning/samples": found["samples"],
        "learning/left_out": max(found["samples"] - update.minibatches * update.room, 0.0),
    }
