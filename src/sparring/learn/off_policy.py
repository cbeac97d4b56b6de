"""Learning from replay: what DQN and SAC have in common.

An update is a number of rounds. Each plays a rollout, remembers its decisions, and makes as many
optimiser steps as the replay ratio asks for: `ratio` samples per decision, however many games made
them.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig, ReplayConfig
from sparring.learn.collect import Actor
from sparring.learn.exploring import Exploring
from sparring.learn.hosted import HostedLearner
from sparring.learn.learner import DivergedError, Report, Segment, Snapshot
from sparring.learn.normalising import take_in_rows
from sparring.learn.replay import Replay, Samples
from sparring.learn.rollout import Episodes
from sparring.learn.win_bonus import WinBonus
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

Losses = Mapping[str, Tensor | float]
"""What curves show of an optimiser step, by name."""
DECISIONS_PER_UPDATE = 1000
"""About so many are made between two reports."""


class OffPolicy(HostedLearner):
    """Adds the replay and how often it is learned from; kinds add what learns."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        replay: ReplayConfig,
        net: NetConfig,
        *,
        gamma_into: Sequence[float] = (),
        **options: Any,
    ) -> None:
        """Take over a pool. options: those of `HostedLearner`."""
        super().__init__(pool, collect, net, **options)
        self.replay_config, self.gamma_into = replay, gamma_into
        self.replay = Replay(
            pool.rules,
            replay,
            row_bytes=pool.row_bytes,
            carried=self.collector.transitions.carried,
            seed=self.seed,
            squash=net.squash,
            threads=int(options.get("threads", 1)),
            anew=self.transforms.anew,
        )
        rows = collect.games * collect.steps * pool.rules.rows
        self.rounds = max(1, round(DECISIONS_PER_UPDATE / rows))
        """Rollouts of an update."""
        self.rollouts = 0
        self.steps = 0
        """Optimiser steps."""
        self.owed = 0.0
        """Samples that the replay ratio still asks for."""
        self.since = 0
        """Decisions that had been made when the replay was empty."""
        self.episodes = 0
        """Games that were finished."""
        self.moment = Moment(0, 0.0)
        """When the rollout began."""
        self.bonus: WinBonus | None = None
        """Pays wins backwards, once there is something to pay."""

    def set_settings(self, settings: Any) -> None:
        """Go on with other settings of the algorithm."""
        super().set_settings(settings)
        self.gamma_into = settings.gamma_into

    def clear_replay(self) -> None:
        """Forget what is remembered. What is learned plays on while the replay fills again."""
        self.replay.clear()
        self.since, self.owed = self.collector.decisions, 0.0

    # What kinds add

    @abstractmethod
    def turn_knobs(self, moment: Moment) -> dict[str, float]:
        """Read every schedule, set learning rates; return what curves show of them.

        "gamma" is among them, and "epsilon" where there is one.
        """

    @abstractmethod
    def descend(self, samples: Samples) -> tuple[Losses, Tensor]:
        """One optimiser step of everything. Return losses by name, and every sample's error.

        A loss that is not finite is never stepped on: raise `self.diverged(...)`.
        """

    @abstractmethod
    def learned(self) -> dict[str, dict[str, Tensor]]:
        """Everything else that learning depends on, as groups of tensors; the net is "net"."""

    @abstractmethod
    def put_learned(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on with `learned` of another moment."""

    # Learning

    def make_actor(self) -> Actor:
        """Return who answers the learner's rows: the network, or now and then chance."""
        self.exploring = Exploring(self.forward, self.rules, self.seed, greedy=self.by_value)
        return self.exploring

    @property
    def rows_device(self) -> torch.device:
        """Samples come from the host."""
        return torch.device("cpu")

    @property
    def samples(self) -> int:
        """Samples trained so far."""
        return self.steps * self.replay_config.batch

    @property
    def warm(self) -> bool:
        """Whether learning has begun."""
        return self.collector.decisions - self.since >= self.replay_config.warmup

    def iterate(self, progress: float) -> list[Report]:
        """Play and learn; returns what was earned and learned."""
        before = self.collector.decisions, self.steps
        earned: dict[str, float] = {}
        logged: list[Losses] = []
        with self.forward.best_matmul():
            for number in range(self.rounds):
                moment = Moment(self.collector.decisions, progress, self.episodes)
                self.moment = moment
                knobs = self.turn_knobs(moment)
                self._explore(knobs)
                earned = self._play(knobs, anew=not number)
                logged += self._learn(moment)
        self.updates += 1
        decisions, steps = self.collector.decisions - before[0], self.steps - before[1]
        stats = {f"losses/{name}": mean_of(logged, name) for name in (logged[0] if logged else ())}
        stats |= {f"learning/{name}": value for name, value in knobs.items()}
        stats |= {
            "learning/optimiser_steps": float(steps),
            "learning/samples": float(steps * self.replay_config.batch),
            "learning/decisions": float(decisions),
            "learning/replay_ratio": steps * self.replay_config.batch / max(decisions, 1),
            "learning/steps_per_decision": steps / max(decisions, 1),
            **self.replay.stats(),
        }
        return [self._report({**stats, **earned})]

    def _explore(self, knobs: Mapping[str, float]) -> None:
        """Set how often the coming rollout takes random actions."""
        at_random = not (self.warm or self.since) and self.replay_config.warmup_by == "random"
        self.exploring.set_epsilon(1.0 if at_random else knobs.get("epsilon", 0.0))

    def _play(self, knobs: Mapping[str, float], *, anew: bool) -> dict[str, float]:
        """Play a rollout and remember it."""
        collector = self.collector
        made, known = collector.decisions, 0 if anew else len(collector.earned.batches)
        earned = collector.collect(self.rollouts, anew=anew)
        self.rollouts += 1
        with self.phases("replay"):
            self.replay.mark_cuts(collector.rollout)
            collector.link(knobs["gamma"], self.gamma_into, demand=False)
            self._remember(collector.earned.batches[known:])
            take_in_rows(self.net, collector)
            collector.carry()
        if self.warm:
            self.owed += (collector.decisions - made) * self.replay_config.ratio
        return earned

    def _remember(self, ended: Sequence[Episodes]) -> None:
        """Put the rollout into the replay, and pay the games that were won in it backwards."""
        rollout, transitions = self.collector.rollout, self.collector.transitions
        if self.bonus is None and any(self.config.win_bonus.values):
            self._pay_wins(self.replay.head)
        if self.bonus is None:
            self.replay.push(rollout, transitions)
        else:
            serials = self.bonus.serials_of(rollout, transitions)
            self.replay.push(rollout, transitions)
            self.bonus.pay(serials, rollout, transitions, ended, self._worth)
        self.episodes += sum(map(len, ended))

    def _pay_wins(self, since: int) -> None:
        """Look after decisions from a serial number on."""
        self.bonus = WinBonus(self.replay, since)
        self.replay.unsettled = self.bonus.unsettled

    def _worth(self, number: int) -> tuple[float, float]:
        """Bonus and discount of a game that ended after so many others of this rollout."""
        then = replace(self.moment, episodes=self.episodes + number)
        return self.config.win_bonus.at(then), self.config.win_discount.at(then)

    def _learn(self, moment: Moment) -> list[Losses]:
        """Make the optimiser steps that are owed."""
        config, logged = self.replay_config, list[Losses]()
        while self.owed >= config.batch and len(self.replay):
            with self.phases("sampling"):
                samples = self.replay.sample(self.steps, config.priority_correction.at(moment))
                for transform in self.transforms.turning:
                    samples = transform.drawn(samples, self.steps)
            with self.phases("update"):
                losses, error = self.descend(samples)
            if config.prioritised:
                with self.phases("sampling"):
                    assert isinstance(samples.places, np.ndarray)
                    self.replay.reprioritise(samples.places, error.detach().cpu().numpy())
            logged.append(losses)
            self.owed -= config.batch
            self.steps += 1
        return logged

    def diverged(self, losses: Losses) -> DivergedError:
        """What to raise instead of a step on losses that are not finite."""
        shown = ", ".join(f"{name} {float(value):g}" for name, value in losses.items())
        return DivergedError(f"update {self.updates}, optimiser step {self.steps}: {shown}")

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what the next update depends on."""
        saved = self._saved()
        tensors = {**saved.tensors, **self.learned()}
        segments: dict[str, Segment] = {}
        meta = {
            **saved.meta,
            "rollouts": self.rollouts,
            "steps": self.steps,
            "owed": self.owed,
            "since": self.since,
            "finished": self.episodes,
            **({"bonus_since": self.bonus.since} if self.bonus else {}),
        }
        if self.replay_config.save:
            tensors["replay"], segments, meta["replay"] = self.replay.state()
        return replace(saved, tensors=tensors, meta=meta, segments=segments)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""
        meta = snapshot.meta
        self._put_saved(snapshot)
        self.put_learned(snapshot.tensors)
        self.rollouts, self.steps, self.owed = meta["rollouts"], meta["steps"], meta["owed"]
        self.episodes = int(meta.get("finished", 0))
        if "replay" in snapshot.tensors:
            self.since = meta.get("since", 0)
            segments = {name: read() for name, read in snapshot.segments.items()}
            self.replay.load_state(snapshot.tensors["replay"], segments, meta["replay"])
            if "bonus_since" in meta:
                self._pay_wins(int(meta["bonus_since"]))
        elif self.updates:  # it was not saved, or is to be forgotten: what is learned plays on
            self.since, self.owed = self.collector.decisions, 0.0

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        collector = self.collector
        kept, before = self.snapshot(), (collector.decisions, self.steps)
        weights = self.replay.weights()
        started = time.perf_counter()
        with self.forward.best_matmul():
            for _ in range(self.rounds):
                moment = Moment(collector.decisions, 0.0)
                self.turn_knobs(moment)
                collector.rehearse(self.rollouts)
                made = collector.rollout.decisions()
                self.owed += made * self.replay_config.ratio
                self._learn(moment)
        left = time.perf_counter() - started - sum(self.phases.seconds.values())
        self.phases.seconds["other"] = max(left, 0.0)
        steps = self.steps - before[1]
        stats = {
            "learning/optimiser_steps": float(steps),
            "learning/samples": float(steps * self.replay_config.batch),
            "learning/decisions": float(self.rounds * collector.rollout.decisions()),
        }
        report = self._report(stats)
        self.net.load_state_dict(kept.tensors["net"])
        self.put_learned(kept.tensors)
        self.replay.put_weights(weights)
        self.steps, self.owed = kept.meta["steps"], kept.meta["owed"]
        return [report]


def mean_of(logged: Sequence[Losses], name: str) -> float:
    """The mean of a loss over optimiser steps."""
    values = [losses[name] for losses in logged]
    if isinstance(values[0], Tensor):
        return float(torch.stack([torch.as_tensor(value) for value in values]).mean())
    return fmean(values)
