"""Experience of DQN and SAC on a GPU: replay buffers and optimizer steps at the replay ratio.

Collecting and storing a rollout is one graph, an optimizer step of all members another; the host
counts decisions in between and replays the second as often as the replay ratio requires.
`learn.experience` is the counterpart on the host; tests/cuda/test_fused_replay.py compares
contents, samples and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, ReplayConfig
from sparring.learn.experience import DECISIONS_PER_UPDATE
from sparring.learn.fused.adam import FlatAdam, Weights
from sparring.learn.fused.graphs import Figures, rollout_figures
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.minibatches import restored_after
from sparring.learn.fused.playing import FusedSelfPlay
from sparring.learn.fused.replay import DeviceReplay
from sparring.learn.fused.rollout import estimate_view, keep_pending, rollout_view
from sparring.learn.learner import Overrides, Report, Segment, Snapshot
from sparring.learn.transforms import mirrors_of
from sparring.nets.heads import head_width
from sparring.nets.run.flat import Pass
from sparring.schedule import Moment

EPSILON = 1e-8
"""Of Adam, as in `learn.dqn` and `learn.sac`."""
HIDDEN = frozenset({"tau", "max_grad_norm", "temperature_lr"})
"""Hyperparameters without a metric."""


class FusedExperience:
    """Replay buffers of all members, with counts of decisions and optimizer steps."""

    def __init__(
        self,
        playing: FusedSelfPlay,
        collect: CollectConfig,
        config: ReplayConfig,
        settings: Sequence[Any],
        *,
        hparams: tuple[str, ...],
        losses: tuple[str, ...],
    ) -> None:
        """Make the replay buffers.

        settings: of the algorithm, one per member.
        hparams: names of scheduled values on the device, gamma included.
        losses: names of the losses of a step.
        """
        assert not playing.config.recurrent, "links lead to single decisions"
        assert not any(any(one.win_bonus.values) for one in settings), "links lead forwards"
        self.playing, self.config, self.settings = playing, config, list(settings)
        """Every update reads the settings."""
        self.hparam_names, self.loss_names = hparams, losses
        members, rollout, rules = playing.members, playing.rollout, playing.rules
        memory = playing.pool.memory_bytes
        mirrors = mirrors_of(rules, collect, playing.device, memory=memory)
        self.replay = DeviceReplay(playing.kernels, rollout, config, playing.seeds, mirrors=mirrors)
        self.stopped = self.replay.stopped
        """Members that make no step now: no further one is due."""
        with torch.device(playing.device):
            playing.epsilon = torch.zeros(rollout.rows)
            self.hparams = torch.zeros(members, len(hparams))
            self.gamma_into = torch.zeros(members, len(rules.roles))
            self.quota = torch.zeros(members, dtype=torch.int32)
            """Steps that each member still makes in this round."""
            self.broken = torch.zeros(members, dtype=torch.uint8)
            """Members that diverged."""
            self.losses = torch.zeros(members, len(losses), dtype=torch.float64)
            """Sums over the optimizer steps of an update."""
        self.figures = Figures(self._measure, members)
        rows = rollout.steps * rollout.rows // members
        self.rounds = max(1, round(DECISIONS_PER_UPDATE / rows))
        self.rollouts = 0
        self.steps = [0] * members
        """Optimizer steps."""
        self.owed = [0.0] * members
        self.since = [0] * members
        """Decisions made before the buffer was last empty."""
        self.made = [0] * members
        """Optimizer steps of the last update."""
        self._totals: list[dict[str, float]] = []

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        self.playing.games.apply_overrides(overrides, member)
        if overrides.settings is not None:
            self.settings[member] = overrides.settings
        if overrides.clear_replay:  # the network plays on
            self.replay.clear(member)
            self._reset_warmup(member)

    def _reset_warmup(self, member: int) -> None:
        self.since[member], self.owed[member] = self.playing.decisions[member], 0.0

    def adam_for(self, weights: Weights) -> FlatAdam:
        """Make an optimizer that skips members that diverged."""
        return FlatAdam(
            self.playing.kernels,
            weights,
            epsilon=EPSILON,
            stopped=self.stopped,
            diverged=self.broken,
        )

    def hparam(self, name: str) -> Tensor:
        """Return a scheduled value of every member [members]."""
        return self.hparams[:, self.hparam_names.index(name)]

    def step_with(self, adam: FlatAdam, lr: str) -> None:
        """Make an optimizer step with the learning rate of this name."""
        adam.step(self.hparam(lr), self.hparam("max_grad_norm"), apart=len(self.hparam_names))

    @property
    def active(self) -> Tensor:
        """[members], 1.0 for members that make a step now."""
        return 1.0 - self.stopped.float()

    def add_losses(self, **losses: Tensor) -> None:
        """Add the losses of a step, one number per member each."""
        for at, name in enumerate(self.loss_names):
            self.losses[:, at] += (losses[name].detach() * self.active).double()

    def update(
        self,
        progress: float,
        set_hparams: Callable[[Sequence[Moment]], list[dict[str, float]]],
        step: Callable[[], None],
    ) -> list[Report]:
        """Collect and learn in turns. step: see `learn`."""
        self._begin()
        for _ in range(self.rounds):
            metrics = set_hparams([Moment(made, progress) for made in self.playing.decisions])
            self.play()
            self.learn(step)
        return self.reports(metrics)

    def _begin(self) -> None:
        self.playing.check_filled()
        self.playing.watch.clear()
        self.losses.zero_()
        self.made, self._totals = [0] * len(self.made), [{} for _ in self.made]
        self.playing.met = np.zeros(self.playing.rollout.met.shape, np.int64)

    def set_hparams(
        self,
        moments: Sequence[Moment],
        hparams: Sequence[Mapping[str, float]],
        epsilon: Sequence[npt.NDArray[np.float32]],
    ) -> list[dict[str, float]]:
        """Copy scheduled values and the index of the rollout to the device.

        hparams: by member, with further metrics; returns the metrics.
        epsilon: by member, the probability of a random action in every game.
        """
        self.hparams.copy_(torch.tensor([[k[name] for name in self.hparam_names] for k in hparams]))
        roles = self.gamma_into.shape[1]
        into = [
            config.gamma_into or (k["gamma"],) * roles
            for config, k in zip(self.settings, hparams, strict=True)
        ]
        self.gamma_into.copy_(torch.tensor(into))
        self.playing.clock.fill_(self.rollouts)
        correction = self.config.priority_correction
        self.replay.correction.copy_(torch.tensor([correction.at(moment) for moment in moments]))
        random_warmup = self.config.warmup_by == "random"
        by_game = [
            np.ones_like(by_game_epsilon)
            if random_warmup and not (self._warm(member) or self.since[member])
            else by_game_epsilon
            for member, by_game_epsilon in enumerate(epsilon)
        ]
        rows = np.repeat(np.concatenate(by_game), self.playing.rules.rows)
        assert self.playing.epsilon is not None
        self.playing.epsilon.copy_(torch.from_numpy(rows))
        return [{name: k[name] for name in k if name not in HIDDEN} for k in hparams]

    def _warm(self, member: int) -> bool:
        return self.playing.decisions[member] - self.since[member] >= self.config.warmup

    def play(self) -> None:
        """Collect a rollout, store it, and count the samples that are due."""
        watch = self.playing.watch
        watch.start()
        self.playing.graphs.run("rollout", self._play_and_remember)
        watch.middle()
        self.figures.fetch()
        torch.cuda.current_stream().synchronize()
        self.rollouts += 1
        for member, total in enumerate(self._totals):
            found = self.figures.of(member)
            self.playing.count(member, found)
            for name, value in found.items():
                total[name] = total.get(name, 0.0) + value
            if self._warm(member):
                self.owed[member] += found["decisions"] * self.config.ratio

    def learn(self, step: Callable[[], None]) -> None:
        """Make the optimizer steps that are due.

        step: one step of all members with the current batch; adds its losses.
        """
        playing = self.playing
        self._make_steps(step)
        playing.watch.end()
        torch.cuda.current_stream().synchronize()
        playing.watch.add()
        assert playing.met is not None
        playing.met += playing.rollout.met.cpu().numpy()

    def _make_steps(self, step: Callable[[], None]) -> None:
        """Make the steps that are due; members with fewer wait for the others."""
        batch = self.config.batch
        quota = [int(owed // batch) for owed in self.owed]
        if any(not self.figures.of(member)["sampleable"] for member in range(len(quota))):
            return
        self.quota.copy_(torch.tensor(quota))
        for _ in range(max(quota)):
            self.playing.graphs.run("step", partial(self.draw_and, step))
        for member, steps in enumerate(quota):
            self.steps[member] += steps
            self.made[member] += steps
            self.owed[member] -= steps * batch
            self.playing.samples[member] += steps * batch

    def _play_and_remember(self) -> None:
        self.playing.play()
        self.replay.push(self._link)
        keep_pending(self.playing.kernels, self.playing.rollout)
        self.figures.take()

    def draw_and(self, step: Callable[[], None]) -> None:
        """Sample a batch and make a step; a step that is not finite changes nothing."""
        self.stopped.copy_(self.quota <= 0)
        self.replay.draw()
        step()
        self.replay.number.add_(1 - self.stopped.int())
        self.quota.sub_(1)

    def _link(self) -> None:
        rollout, kernels = self.playing.rollout, self.playing.kernels
        estimate = estimate_view(
            kernels,
            rollout,
            gamma=self.hparam("gamma"),
            gae_lambda=self.hparam("gamma"),  # not used
            apart=len(self.hparam_names),
            gamma_into=self.gamma_into,
        )
        blocks = blocks_of(rollout.games, 64)
        kernels.link(blocks, 64, rollout_view(kernels, rollout), self.replay.links, estimate)

    def dry_run(self, step: Callable[[], None], kept: Sequence[Tensor]) -> list[Report]:
        """Make an update without stepping games, and restore everything.

        kept: all tensors that a step changes, except the replay buffers.
        """
        playing, watch = self.playing, self.playing.watch
        counts = list(self.steps), list(self.owed), list(playing.samples)
        with restored_after([*kept, *self.replay.weights()]):
            watch.clear()
            watch.start()
            playing.graphs.run("free rollout", playing.act_again)
            watch.middle()
            made = [self.figures.of(member)["decisions"] for member in range(playing.members)]
            for member, decisions in enumerate(made):
                self.owed[member] += decisions * self.config.ratio
            self.made = [0] * len(made)
            self._make_steps(step)
            watch.end()
            torch.cuda.synchronize()
            watch.add()
            reports = [
                playing.report(member, self._counted(member, decisions))
                for member, decisions in enumerate(made)
            ]
        self.replay.sum_up()
        self.steps, self.owed, playing.samples = counts
        self.replay.number.copy_(torch.tensor(self.steps))
        return reports

    # Reports

    def _measure(self) -> dict[str, Tensor]:
        playing = self.playing
        return {**rollout_figures(playing.rollout, playing.games), **self.replay.figures()}

    def reports(self, metrics: Sequence[Mapping[str, float]]) -> list[Report]:
        """Finish an update; return one report per member. metrics: of hyperparameters."""
        playing = self.playing
        playing.updates += 1
        losses, broken, busy = self.losses.tolist(), self.broken.tolist(), playing.watch.busy()
        reports = []
        for member, total in enumerate(self._totals):
            if broken[member]:
                playing.give_up(member, metrics[member]["lr"])
            stats: dict[str, float] = {}
            if not playing.diverged[member]:
                stats = self._stats(member, total, losses[member])
                stats |= {f"learning/{name}": value for name, value in metrics[member].items()}
                stats["charts/gpu_busy"] = busy
            reports.append(playing.report(member, stats))
        return reports

    def _counted(self, member: int, decisions: float) -> dict[str, float]:
        return {
            "learning/optimizer_steps": float(self.made[member]),
            "learning/samples": float(self.made[member] * self.config.batch),
            "learning/decisions": decisions,
        }

    def _stats(
        self, member: int, total: Mapping[str, float], losses: Sequence[float]
    ) -> dict[str, float]:
        made, kept = self.made[member], self.figures.of(member)["kept"]
        stats = self._counted(member, total["decisions"])
        decisions = max(total["decisions"], 1.0)
        stats |= {
            "learning/replay_ratio": stats["learning/samples"] / decisions,
            "learning/steps_per_decision": made / decisions,
            "learning/replay_fill": kept / self.config.capacity,
            "learning/replay_age": kept / 2,
        }
        if made:
            named = zip(self.loss_names, losses, strict=True)
            stats |= {f"losses/{name}": value / made for name, value in named}
        return stats | self.playing.earned(total)

    # Saving

    def snapshot(self, member: int, learned: Mapping[str, dict[str, Tensor]]) -> Snapshot:
        """Copy the state of a member, in the layout of the learner on the host.

        learned: trained tensors besides the network.
        """
        saved = self.playing.snapshot(member)
        meta = {
            **saved.meta,
            "rollouts": self.rollouts,
            "steps": self.steps[member],
            "owed": self.owed[member],
            "since": self.since[member],
        }
        tensors = {**saved.tensors, **learned}
        segments: dict[str, Segment] = {}
        if self.config.save and not self.playing.diverged[member]:
            tensors["replay"], segments, meta["replay"] = self.replay.state(member)
        return replace(saved, tensors=tensors, meta=meta, segments=segments)

    def restore(self, snapshot: Snapshot, member: int) -> None:
        """Restore replay buffer and counts, after `FusedSelfPlay.restore`."""
        meta = snapshot.meta
        self.broken[member] = 0
        self.rollouts, self.steps[member] = meta["rollouts"], meta["steps"]
        self.replay.number[member] = meta["steps"]
        self.owed[member], self.since[member] = meta["owed"], meta.get("since", 0)
        if "replay" in snapshot.tensors:
            segments = {name: read() for name, read in snapshot.segments.items()}
            self.replay.load_state(member, snapshot.tensors["replay"], segments, meta["replay"])
        elif self.playing.updates:  # not saved, or to be cleared
            self._reset_warmup(member)


def head_of(at: Pass) -> Tensor:
    """Outputs of the policy head of a pass [members, rows, width]."""
    width, bias = head_width(at.flat.rules), at.flat.policy_bias
    return at.logits[..., :width] + bias.reshape(-1, 1, bias.shape[-1])[..., :width]


def value_of(at: Pass) -> Tensor:
    """Outputs of the value head of a pass [members, rows]."""
    bias = at.flat.value_bias
    return at.value[..., 0] + bias.reshape(-1, bias.shape[-1])[:, :1]
