"""Learning from replay on a GPU: games, replay, sampling and update stay on the device.

`learn.experience` is the same, step by step. A rollout that is remembered is one graph, an
optimiser step of all members is another; the host counts decisions in between and replays the
second as often as the replay ratio asks for.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig, ReplayConfig
from sparring.learn.experience import DECISIONS_PER_UPDATE
from sparring.learn.fused.adam import FlatAdam, Weights
from sparring.learn.fused.figures import Figures, rollout_figures
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import REPLAY_SOURCE, blocks_of
from sparring.learn.fused.learner import FusedLearner
from sparring.learn.fused.links import carry, rollout_view
from sparring.learn.fused.minibatches import put_back
from sparring.learn.fused.replay import DeviceReplay
from sparring.learn.learner import Report, Segment, Snapshot
from sparring.learn.mirror import mirrors_of
from sparring.nets.flat import Pass
from sparring.nets.net import head_width
from sparring.schedule import Moment

EPSILON = 1e-8
"""Adam's, as in `learn.dqn` and `learn.sac`."""


class FusedOffPolicy(FusedLearner):
    """One member or a whole population; kinds add networks and an optimiser step."""

    knob_names: tuple[str, ...]
    """What schedules may change, as the device has it; gamma is among them."""
    loss_names: tuple[str, ...]

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: Sequence[Any],
        replay: ReplayConfig,
        net: NetConfig,
        *,
        by_value: bool,
        by_role: bool = False,
        slots: int = 0,
        graphs: bool = True,
    ) -> None:
        """Take over games whose seeds are those of the members.

        configs: of the algorithm, one for each member.
        by_value, by_role, slots, graphs: see `FusedLearner`.
        """
        super().__init__(
            games,
            collect,
            net,
            by_role=by_role,
            slots=slots,
            graphs=graphs,
            by_value=by_value,
            source=REPLAY_SOURCE,
            final_legal=True,
        )
        assert not any(any(config.win_bonus.values) for config in configs), "links lead forwards"
        self.configs, self.replay_config = list(configs), replay
        members, rollout = self.members, self.rollout
        memory = self.pool.memory_bytes
        mirrors = mirrors_of(self.rules, collect, self.device, memory=memory)
        self.replay = DeviceReplay(self.kernels, rollout, replay, self.seeds, mirrors=mirrors)
        self.stopped = self.replay.stopped
        """Who makes no step now: it has made those that its decisions ask for."""
        self.learning = self.net.passing(replay.batch, learn=True)
        """About the decisions of a batch."""
        self.ahead = self.net.passing(replay.batch, learn=False)
        """About what follows them."""
        with torch.device(self.device):
            self.epsilon = torch.zeros(rollout.rows)
            self.knobs = torch.zeros(members, len(self.knob_names))
            self.gamma_into = torch.zeros(members, len(self.rules.roles))
            self.quota = torch.zeros(members, dtype=torch.int32)
            """Steps that each of them still makes in this round."""
            self.broken = torch.zeros(members, dtype=torch.uint8)
            """Who diverged."""
            self.losses = torch.zeros(members, len(self.loss_names), dtype=torch.float64)
            """Sums over the optimiser steps of an update."""
        self.adam = self.make_adam(self.net)
        self.figures = Figures(self._measure, members)
        rows = rollout.steps * rollout.rows // members
        self.rounds = max(1, round(DECISIONS_PER_UPDATE / rows))
        self.rollouts = 0
        self.steps = [0] * members
        """Optimiser steps."""
        self.owed = [0.0] * members
        self.since = [0] * members
        """Decisions that had been made when the replay was empty."""
        self.made = [0] * members
        """Optimiser steps of the last update."""
        self._ended_at = time.perf_counter()
        self._events: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(3)]  # type: ignore[no-untyped-call]

    def clear_replay(self, member: int) -> None:
        """Forget what a member remembers. What it has learned plays on meanwhile."""
        self.replay.clear(member)
        self.since[member], self.owed[member] = self.decisions[member], 0.0

    # What kinds add

    @abstractmethod
    def knobs_of(self, config: Any, moment: Moment) -> dict[str, float]:
        """Every schedule of a member, and what else curves show."""

    @abstractmethod
    def descend(self) -> None:
        """One optimiser step of all members with the batch that was drawn; adds to `losses`."""

    @abstractmethod
    def kept(self) -> list[Tensor]:
        """Everything that an optimiser step changes."""

    @abstractmethod
    def learned(self, member: int) -> dict[str, dict[str, Tensor]]:
        """What learning depends on, in the layout of the learner on the host."""

    @abstractmethod
    def put_learned(self, member: int, snapshot: Snapshot) -> None:
        """Go on with `learned` of another moment."""

    # Helpers of theirs

    def make_adam(self, weights: Weights) -> FlatAdam:
        """An optimiser that leaves members alone once they diverged."""
        return FlatAdam(
            self.kernels, weights, epsilon=EPSILON, stopped=self.stopped, diverged=self.broken
        )

    def knob(self, name: str) -> Tensor:
        """A knob of every member [members]."""
        return self.knobs[:, self.knob_names.index(name)]

    def step_with(self, adam: FlatAdam, lr: str) -> None:
        """Follow the gradient with a learning rate of this name."""
        adam.step(self.knob(lr), self.knob("max_grad_norm"), apart=len(self.knob_names))

    def head(self, at: Pass) -> Tensor:
        """What the policy head says about the rows of a pass [members, rows, width]."""
        width, bias = head_width(self.rules), at.flat.policy_bias
        return at.logits[..., :width] + bias.reshape(-1, 1, bias.shape[-1])[..., :width]

    def value(self, at: Pass) -> Tensor:
        """What the value head says about the rows of a pass [members, rows]."""
        bias = at.flat.value_bias
        return at.value[..., 0] + bias.reshape(-1, bias.shape[-1])[:, :1]

    @property
    def active(self) -> Tensor:
        """Who makes a step now [members], as numbers."""
        return 1.0 - self.stopped.float()

    def note(self, **losses: Tensor) -> None:
        """Add the losses of a step, one number per member each."""
        for at, name in enumerate(self.loss_names):
            self.losses[:, at] += (losses[name].detach() * self.active).double()

    # Learning

    def iterate(self, progress: float) -> list[Report]:
        """Play and learn; returns what each member earned and learned."""
        self._check_filled()
        started = time.perf_counter()
        self.losses.zero_()
        self.made, spent = [0] * self.members, {"rollout": 0.0, "update": 0.0}
        totals: list[dict[str, float]] = [{} for _ in range(self.members)]
        met = np.zeros(self.rollout.met.shape, np.int64)
        for _ in range(self.rounds):
            moments = [Moment(made, progress) for made in self.decisions]
            shown = self._turn_knobs(moments)
            took = self._round(totals)
            met += self.rollout.met.cpu().numpy()
            spent = {name: spent[name] + took[name] for name in spent}
        self._met = met
        self.phases.seconds = spent
        self.updates += 1
        losses, broken = self.losses.tolist(), self.broken.tolist()
        now = time.perf_counter()
        busy = min(sum(spent.values()) / max(now - min(self._ended_at, started), 1e-9), 1.0)
        self._ended_at = now
        reports = []
        for member, total in enumerate(totals):
            if broken[member]:
                self._give_up(member, shown[member]["lr"])
            named: dict[str, float] = {}
            if not self.diverged[member]:
                named = self._stats(member, total, losses[member])
                named |= {f"learning/{name}": value for name, value in shown[member].items()}
                named["charts/gpu_busy"] = busy
            reports.append(self._report(member, named))
        return reports

    def _turn_knobs(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        """Send schedules and the number of the rollout to the device."""
        shown = [
            self.knobs_of(config, moment)
            for config, moment in zip(self.configs, moments, strict=True)
        ]
        self.knobs.copy_(torch.tensor([[s[name] for name in self.knob_names] for s in shown]))
        roles = self.gamma_into.shape[1]
        into = [
            c.gamma_into or (s["gamma"],) * roles for c, s in zip(self.configs, shown, strict=True)
        ]
        self.gamma_into.copy_(torch.tensor(into))
        self.clock.fill_(self.rollouts)
        correction = self.replay_config.priority_correction
        self.replay.correction.copy_(torch.tensor([correction.at(moment) for moment in moments]))
        at_random = self.replay_config.warmup_by == "random"
        by_game = [
            np.ones(self.games.each, np.float32)
            if at_random and not (self._warm(member) or self.since[member])
            else self.epsilon_of(member, shown[member])
            for member in range(self.members)
        ]
        rows = np.repeat(np.concatenate(by_game), self.rules.rows)
        assert self.epsilon is not None
        self.epsilon.copy_(torch.from_numpy(rows))
        hidden = {"tau", "max_grad_norm", "temperature_lr"}
        return [{k: v for k, v in s.items() if k not in hidden} for s in shown]

    def epsilon_of(self, member: int, knobs: Mapping[str, float]) -> np.ndarray[Any, Any]:
        """How probable a random action is in every game of a member."""
        return np.full(self.games.each, knobs.get("epsilon", 0.0), np.float32)

    def _warm(self, member: int) -> bool:
        return self.decisions[member] - self.since[member] >= self.replay_config.warmup

    def _round(self, totals: list[dict[str, float]]) -> dict[str, float]:
        """A rollout, and the optimiser steps that it asks for; returns the device's seconds."""
        start, middle, end = self._events
        start.record()
        self._run("rollout", self._play_and_remember)
        middle.record()
        self.figures.fetch()
        torch.cuda.current_stream().synchronize()
        self.rollouts += 1
        for member in range(self.members):
            self._count(member, totals[member])
        self._learn()
        end.record()
        torch.cuda.current_stream().synchronize()
        seconds = start.elapsed_time(middle) / 1000, middle.elapsed_time(end) / 1000
        return dict(zip(("rollout", "update"), seconds, strict=True))

    def _learn(self) -> None:
        """Make the optimiser steps that are owed; members with fewer wait for the others."""
        batch = self.replay_config.batch
        quota = [int(owed // batch) for owed in self.owed]
        if any(not self.figures.of(member)["sampleable"] for member in range(self.members)):
            return
        self.quota.copy_(torch.tensor(quota))
        for _ in range(max(quota)):
            self._run("step", self._draw_and_descend)
        for member, steps in enumerate(quota):
            self.steps[member] += steps
            self.made[member] += steps
            self.owed[member] -= steps * batch
            self.samples[member] += steps * batch

    def _play_and_remember(self) -> None:
        """Play a rollout and take its decisions into the replay."""
        self._play()
        self.replay.push(self._link)
        carry(self.kernels, self.rollout)
        self.figures.take()

    def _draw_and_descend(self) -> None:
        """Learn from a batch. Nothing is kept of a step that is not finite."""
        self.stopped.copy_(self.quota <= 0)
        self.replay.draw()
        self.descend()
        self.replay.number.add_(1 - self.stopped.int())
        self.quota.sub_(1)

    def _link(self) -> None:
        """Turn rows into transitions."""
        rollout, kernels = self.rollout, self.kernels
        estimate = kernels.view(
            "EstimateView",
            gamma=self.knob("gamma"),
            gae_lambda=self.knob("gamma"),  # nobody estimates
            apart=len(self.knob_names),
            gamma_into=self.gamma_into,
            gamma_of=None,
            lambda_of=None,
            ended_by=None,
            value=rollout.value,
            advantage=rollout.advantage,
            each=self.games.each,
        )
        blocks = blocks_of(rollout.games, 64)
        kernels.link(blocks, 64, rollout_view(kernels, rollout), self.replay.links, estimate)

    # Reports

    def _measure(self) -> dict[str, Tensor]:
        """Every figure of a rollout by name, one number per member."""
        return {**rollout_figures(self.rollout, self.games), **self.replay.figures()}

    def _count(self, member: int, total: dict[str, float]) -> None:
        """Add up what a rollout did, and what is to be learned from it."""
        found = self.figures.of(member)
        self._check_rollout(found)
        for name, value in found.items():
            total[name] = total.get(name, 0.0) + value
        self.decisions[member] += int(found["decisions"])
        self.opponent_rows[member] += int(found["opponent_rows"])
        if self._warm(member):
            self.owed[member] += found["decisions"] * self.replay_config.ratio

    def _stats(
        self, member: int, total: Mapping[str, float], losses: Sequence[float]
    ) -> dict[str, float]:
        """Name what an update found as curves show it."""
        made = self.made[member]
        samples = float(made * self.replay_config.batch)
        decisions, kept = max(total["decisions"], 1.0), self.figures.of(member)["kept"]
        stats = {
            "learning/optimiser_steps": float(made),
            "learning/samples": samples,
            "learning/decisions": total["decisions"],
            "learning/replay_ratio": samples / decisions,
            "learning/steps_per_decision": made / decisions,
            "learning/replay_fill": kept / self.replay_config.capacity,
            "learning/replay_age": kept / 2,
        }
        if made:
            named = zip(self.loss_names, losses, strict=True)
            stats |= {f"losses/{name}": value / made for name, value in named}
        return stats | self._earned(total)

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what a member's next update depends on, in the layout of the learner on the host."""
        saved = self._saved(member)
        meta = {
            **saved.meta,
            "rollouts": self.rollouts,
            "steps": self.steps[member],
            "owed": self.owed[member],
            "since": self.since[member],
        }
        tensors = {**saved.tensors, **self.learned(member)}
        segments: dict[str, Segment] = {}
        if self.replay_config.save and not self.diverged[member]:
            tensors["replay"], segments, meta["replay"] = self.replay.state(member)
        return replace(saved, tensors=tensors, meta=meta, segments=segments)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a member of a fresh learner where the snapshot was taken."""
        self._put_saved(snapshot, member)
        self.put_learned(member, snapshot)
        self.broken[member] = 0
        meta = snapshot.meta
        self.rollouts, self.steps[member] = meta["rollouts"], meta["steps"]
        self.replay.number[member] = meta["steps"]
        self.owed[member] = meta["owed"]
        self.since[member] = meta.get("since", 0)
        if "replay" in snapshot.tensors:
            segments = {name: read() for name, read in snapshot.segments.items()}
            self.replay.load_state(member, snapshot.tensors["replay"], segments, meta["replay"])
        elif self.updates:  # it was not saved, or is to be forgotten: what is learned plays on
            self.since[member], self.owed[member] = self.decisions[member], 0.0

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        kept = [*self.kept(), *self.replay.weights()]
        before = [tensor.clone() for tensor in kept]
        counts = list(self.steps), list(self.owed), list(self.samples)
        start, middle, end = self._events
        start.record()
        self._run("free rollout", self._answer_all)
        middle.record()
        made = [self.figures.of(member)["decisions"] for member in range(self.members)]
        for member, decisions in enumerate(made):
            self.owed[member] += decisions * self.replay_config.ratio
        self.made = [0] * self.members
        self._learn()
        end.record()
        torch.cuda.synchronize()
        self.phases.seconds = {
            "rollout": start.elapsed_time(middle) / 1000,
            "update": middle.elapsed_time(end) / 1000,
        }
        reports = [
            self._report(
                member,
                {
                    "learning/optimiser_steps": float(self.made[member]),
                    "learning/samples": float(self.made[member] * self.replay_config.batch),
                    "learning/decisions": decisions,
                },
            )
            for member, decisions in enumerate(made)
        ]
        for tensor, old in zip(kept, before, strict=True):
            put_back(torch.ones(self.members, device=self.device), [old], [tensor])
        self.replay.sum_up()
        self.steps, self.owed, self.samples = counts
        self.replay.number.copy_(torch.tensor(self.steps))
        return reports
