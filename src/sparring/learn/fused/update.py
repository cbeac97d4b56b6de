"""The epochs of PPO as a list of launches: those of `learn.ppo` for one network of all members.

Nothing waits for the device, nothing is allocated between two updates. Minibatches all have one
size; csrc/cuda/ppo.cuh has the kernels in the order in which they are launched here.
tests/cuda/test_fused_update.py holds losses, gradients and steps equal to those of autograd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from sparring.config import NetConfig, PPOConfig
from sparring.errors import SparringError
from sparring.kernels.views import KernelView
from sparring.learn.critic import CRITIC_LOSS
from sparring.learn.fused.adam import FlatAdam
from sparring.learn.fused.critic import FusedCritic
from sparring.learn.fused.examples import Examples, HindsightRecords
from sparring.learn.fused.kernels import blocks_of, heads_view
from sparring.learn.fused.minibatches import (
    FusedMinibatch,
    FusedSamples,
    Images,
    minibatch_rows_of,
    restore_members,
)
from sparring.learn.fused.playing import FusedSelfPlay, RoleActing
from sparring.learn.fused.replicas import MinibatchMeans, ReplicaSums
from sparring.learn.fused.rollout import estimate_view
from sparring.learn.fused.sequences import Sequences
from sparring.learn.fused.terms import FusedTerms, PolicyLoss
from sparring.learn.plan import PPOHparams
from sparring.learn.role_learners import PPO_METRICS
from sparring.learn.transforms import Mirroring
from sparring.nets.net import MAX_SCALED_RETURN, SCALE_DECAY
from sparring.nets.run.flat import Pass
from sparring.schedule import Moment

EPSILON = 1e-5
"""Of Adam, as in `learn.role_learners`."""
MOMENT_BLOCKS = 256
EPOCHS_APART = 1 << 16
"""Added to the epoch for extra rows of loss terms, so that they are shuffled by other numbers."""


class Update:
    """The update of one network: its arrays and kernel launches."""

    def __init__(
        self,
        playing: FusedSelfPlay,
        acting_net: RoleActing,
        configs: Sequence[PPOConfig],
        *,
        records: HindsightRecords | None = None,
        mirrors: Sequence[Mirroring] = (),
        loss: type[PolicyLoss] = PolicyLoss,
        epsilon: float = EPSILON,
        critic: NetConfig | None = None,
        replicas: int = 1,
    ) -> None:
        """Allocate all arrays.

        acting_net: the network, and the role whose decisions it learns from.
        configs: one per member; every update reads them.
        records: for hindsight examples. mirrors: data augmentation.
        loss: writes the gradients of a minibatch. epsilon: of Adam.
        critic: configuration of the network and its critic that sees what is hidden.
        replicas: GPUs that share every minibatch; see `join`.
        """
        self.games, self.rollout, self.kernels = playing.games, playing.rollout, playing.kernels
        self.seeds, self.clock = playing.seeds, playing.clock
        """Seeds of the members, and the index of the update."""
        self.net, self.role, self.cutting = acting_net.net, acting_net.role, acting_net.passing
        """Network, role, and a pass for final observations of truncated games."""
        self.configs, self.config, self.members = configs, configs[0], playing.members
        rollout, net, members = self.rollout, self.net, self.members
        if self.games.at_once * members != rollout.rows:
            self.cutting = net.make_pass(rollout.rows // members, learn=False)
        rows = rollout.steps * rollout.rows // members
        self.minibatch = self.config.minibatch / replicas
        """Samples of a minibatch here."""
        # If every row is a sample; `fit` lowers it.
        self.most = self.minibatches = max(1, round(rows / self.minibatch))
        varies = rollout.policies > 1 or self.role is not None
        self.sequences: Sequences | None = None
        """Segments, for recurrent networks."""
        if net.config.recurrent:
            self.sequences = Sequences(self.kernels, net, rollout, minibatches=self.most)
        plain = minibatch_rows_of(rows, self.minibatches, self.minibatch, varies)
        self.room = self.sequences.rows if self.sequences else plain
        """Samples of a minibatch; segments are padded."""
        self.stride = self.room + (records.room(self.room) if records else 0)
        """Rows of a minibatch: samples, then hindsight examples."""
        self.learning: Pass = (
            self.sequences.learning if self.sequences else net.make_pass(self.stride, learn=True)
        )
        self._make_arrays()
        arrays = self.list, self.sample_counts, self.picked
        samples = FusedSamples(*arrays, self.room, self.seeds, self.clock)
        self.images = [Images(one, rollout, samples) for one in mirrors]
        """Mirror images of rows."""
        self.terms = FusedTerms(net, rollout, self.stopped)
        if records:
            self.terms.extra.append(Examples(records, self.kernels, samples))
        self.terms.put([])
        stops: dict[str, Any] = {"stopped": self.stopped, "diverged": self.diverged}
        optimizer = {**stops, "epsilon": epsilon, "plans": self.minibatches}
        self.adam = FlatAdam(self.kernels, net, **optimizer)
        self.critic: FusedCritic | None = None
        if critic:
            self.critic = FusedCritic(net, critic, rollout, self.games.seeds, room=self.room)
            self.critic.adam = FlatAdam(self.kernels, self.critic.net, **optimizer)
        self.loss = loss(
            self.kernels,
            self.learning,
            samples,
            hparams=self.hparams,
            statistics=self.statistics,
            diverged=self.diverged,
        )
        self._before = [torch.zeros_like(tensor) for tensor in self.kept()]
        self.sums: ReplicaSums | None = None
        self.means: MinibatchMeans | None = None
        self.total_counts = self.sample_counts
        """Samples of each member in all replicas."""
        self._make_views()

    def join(self, sums: ReplicaSums) -> None:
        """Learn as one with other replicas: all that is computed from all samples is summed."""
        self.sums, self.total_counts = sums, torch.zeros_like(self.sample_counts)
        self.means = MinibatchMeans(sums, self.most, self.members, self.net.grad)

    def _make_arrays(self) -> None:
        names = self.kernels.names
        self.hparam_names = names("Hparams")
        if set(self.hparam_names) != {field.name for field in fields(PPOHparams)}:
            raise SparringError("the kernels have other hparams than learn.ppo")
        members, places_each = self.members, self.rollout.places // self.members
        with torch.device(self.games.device):
            self.hparams = torch.zeros(members, len(self.hparam_names))
            self.gamma_into = torch.zeros(members, len(self.games.rules.roles))
            self.marks = torch.zeros(members, places_each, dtype=torch.int32)
            self.ranks = torch.zeros(members, places_each, dtype=torch.int32)
            self.list = torch.zeros(members, places_each, dtype=torch.int32)
            self.sample_counts = torch.zeros(members, dtype=torch.int32)
            self.moments = torch.zeros(
                members, MOMENT_BLOCKS, len(names("Moments")), dtype=torch.float64
            )
            self.has_value_scale = torch.zeros(members, dtype=torch.uint8)
            """As in `learn.role_learners.RoleLearner`."""
            self.statistics = torch.zeros(members, len(names("Statistics")))
            self.tallies = torch.zeros(members, len(names("Tally")))
            self.stopped = torch.zeros(members, dtype=torch.uint8)
            self.diverged = torch.zeros(members, dtype=torch.uint8)
            self.picked = torch.zeros(self.minibatches, members, self.stride, dtype=torch.int32)
        self._hparams_host, self._into_host = (
            torch.zeros(sent.shape, pin_memory=True) for sent in (self.hparams, self.gamma_into)
        )

    def _make_views(self) -> None:
        view, net, rollout = self.kernels.view, self.net, self.rollout
        self._by_place = {
            "obs": rollout.obs,
            "legal": rollout.legal,
            "action": rollout.action,
            "old_log_prob": rollout.log_prob,
            "old_value": rollout.value,
            "advantage": rollout.advantage,
        }
        self._cutting_heads = heads_view(self.kernels, net, self.cutting)
        self._samples = view(
            "SampleListView",
            list=self.list,
            stride=self.list.shape[1],
            counts=self.sample_counts,
        )
        self._places = view(
            "IndicesView",
            members=self.members,
            pending_each=rollout.max_pending // self.members,
            rows_each=rollout.rows // self.members,
            steps=rollout.steps,
            end=rollout.end,
            role=rollout.role if self.role is not None else None,
            only=self.role or 0,
            chains=rollout.chains,
        )

    def hparam(self, name: str) -> Tensor:
        return self.hparams[:, self.hparam_names.index(name)]

    def set_hparams(self, number: int, moments: Sequence[Moment]) -> list[PPOHparams]:
        """Copy scheduled values and the index of the update to the device."""
        hparams = [
            PPOHparams.at(c, moment) for c, moment in zip(self.configs, moments, strict=True)
        ]
        for member, (config, mine) in enumerate(zip(self.configs, hparams, strict=True)):
            self._hparams_host[member] = torch.tensor([getattr(mine, n) for n in self.hparam_names])
            into = config.gamma_into or (mine.gamma,) * self.gamma_into.shape[1]
            self._into_host[member] = torch.tensor(into)
        self.hparams.copy_(self._hparams_host, non_blocking=True)
        self.gamma_into.copy_(self._into_host, non_blocking=True)
        self.clock.fill_(number)
        self.terms.set_hparams(moments)
        return hparams

    def fit(self) -> int:
        """Set the number of minibatches by the number of samples, and return it. Synchronizes.

        Rows of frozen opponents are no samples.
        """
        samples = int(self.sample_counts.max())
        needed = -(-samples // self.room)
        if self.sequences:
            needed = self.sequences.minibatches(round(samples / self.minibatch))
        if self.sums:
            needed = max(self.sums.group.counts(needed))
        self.minibatches = min(max(1, needed), self.most)
        return self.minibatches

    def save_before(self) -> None:
        """Copy the state that members which diverge go back to."""
        for before, tensor in zip(self._before, self.kept(), strict=True):
            before.copy_(tensor)

    def run_epochs(self) -> None:
        """Run all epochs of shuffled minibatches."""
        self.terms.make_rows()
        for epoch in range(self.config.epochs):
            self.shuffle(epoch)
            if self.means:
                self.means.count(self.picked[: self.minibatches, :, : self.room])
            for number in range(self.minibatches):
                self.step(number)
            self._end_epoch()
        self.diverged.logical_or_(~self.net.weight.isfinite().all(1))
        if self.sums:
            self.sums.any_of(self.diverged)

    def restore_diverged(self, diverged: Tensor) -> None:
        """Restore members that diverged to their state before this update."""
        restore_members(diverged, self._before, self.kept())

    def bootstrap_truncated(
        self, number: int, role: Tensor | None = None, final_role: Tensor | None = None
    ) -> None:
        """Compute bootstrap values of layer `number` of truncations.

        role: of the rows, with several roles; final_role: is written.
        """
        rollout = self.rollout
        self.cutting.read(rollout.cut_obs[number])
        self.cutting.forward()
        self.terms.add_truncated(number, self.cutting)
        truncations = self.kernels.view(
            "TruncationsView",
            index=rollout.cut_at[number],
            count=rollout.cut_count,
            number=number,
            rows=rollout.rows,
            rows_each=rollout.rows // self.members,
            rows_per_game=self.games.rules.rows,
            value_scale=self.net.value_scale,
            final_value=rollout.final_value,
            role=role,
            only=self.role or 0,
            final_role=final_role,
        )
        self.kernels.write_truncation_values(
            blocks_of(rollout.rows), 256, self._cutting_heads, truncations
        )

    def discounts(self) -> KernelView:
        """Discounts of a shared network."""
        return estimate_view(
            self.kernels,
            self.rollout,
            gamma=self.hparam("gamma"),
            gae_lambda=self.hparam("gae_lambda"),
            apart=len(self.hparam_names),
            gamma_into=self.gamma_into,
        )

    def list_samples(self) -> None:
        """List the samples of a rollout, normalize advantages, and update the value scale."""
        rollout, kernels, blocks = self.rollout, self.kernels, blocks_of(self.rollout.places)
        if self.sequences:
            self.sequences.find()
        kernels.mark_samples(blocks, 256, self._places, self.marks)
        torch.cumsum(self.marks, 1, out=self.ranks)
        kernels.list_samples(blocks, 256, self._places, self.ranks, self._samples)
        kernels.sum_advantages(
            *((MOMENT_BLOCKS, self.members), 256),
            *(self._samples, rollout.advantage, rollout.value, rollout.paid, self.moments),
        )
        if self.sums:
            self.total_counts.copy_(self.sample_counts)
            self.sums.add_up(self.moments, self.total_counts)
        statistics = kernels.view(
            "StatisticsView",
            partials=self.moments,
            blocks=MOMENT_BLOCKS,
            counts=self.total_counts,
            has_scale=self.has_value_scale,
            decay=SCALE_DECAY,
            max_scaled_return=MAX_SCALED_RETURN,
            value_scale=self.net.value_scale,
            statistics=self.statistics,
            tallies=self.tallies,
            stopped=self.stopped,
        )
        kernels.summarize_advantages(1, self.members, statistics)
        self._rescale_values()
        for image in self.images:
            image.throw()

    def _rescale_values(self) -> None:
        for net in [self.net, *([self.critic.net] if self.critic else [])]:
            first = net.value_from
            count = net.size - first
            if not count:
                continue  # the network divides by the value scale itself
            self.kernels.rescale_values(
                *((blocks_of(count, 128), self.members), 128),
                *(net.weight[:, first:], net.compute[:, first:], net.size, count, self.statistics),
            )

    def shuffle(self, epoch: int) -> None:
        """Shuffle samples into the minibatches of an epoch, then extra rows of terms."""
        picked = self.picked
        if self.sequences:
            self._deal(self.sequences.list, epoch, 0, self.sequences.room, self.sequences.dealt)
            self.sequences.spread(picked[: self.minibatches])
            return
        self._deal(self._samples, epoch, 0, self.room, picked)
        for one in self.terms.extra:
            self._deal(one.listed, epoch + EPOCHS_APART, one.first, one.room, picked)
        for image in self.images:
            image.choose(epoch)

    def _deal(self, samples: KernelView, epoch: int, first: int, room: int, picked: Tensor) -> None:
        deal = self.kernels.view(
            "ShuffleView",
            seeds=self.seeds,
            clock=self.clock,
            epoch=epoch,
            minibatches=self.minibatches,
            members=self.members,
            room=room,
            first=first,
            stride=picked.shape[2],
            picked=picked,
        )
        rows = self.minibatches * self.members * room
        self.kernels.shuffle(blocks_of(rows), 256, samples, deal)

    def step(self, number: int) -> None:
        """Make one optimizer step of every member."""
        at, picked = self.learning, self.picked[number]
        minibatch = FusedMinibatch(picked, self._by_place)
        for image in self.images:
            minibatch = image.turn(number, minibatch)
        dealt, counts = {"number": number, "minibatches": self.minibatches}, self.sample_counts
        at.read(minibatch.rows["obs"], minibatch.places)
        if self.sequences:  # the number of samples varies with the segments
            dealt, counts = {"number": 0, "minibatches": 1}, self.sequences.filled[number]
            self.sequences.bring(number)
        at.forward()
        self.loss.write(number, minibatch, self.images, counts, dealt)
        self.terms.learn_extra(self.loss.heads, at, picked, dealt)
        self.terms.add_gradients(at, picked[:, : self.room], minibatch)
        at.backward()
        if self.means:
            self.means.of_gradient(number, self.net.grad)
        step: dict[str, Any] = {"apart": len(self.hparam_names), "number": number}
        self.adam.step(self.hparam("lr"), self.hparam("max_grad_norm"), **step)
        if self.critic:
            self.critic.backward(picked, self.stopped)
            if self.means:
                self.means.of_gradient(number, self.critic.net.grad)
            self.critic.adam.step(self.hparam("lr"), self.hparam("max_grad_norm"), **step)

    def _end_epoch(self) -> None:
        """Sum up the metrics; members whose KL exceeds `target_kl` stop here."""
        if self.means:
            self.means.of_losses(self.loss.means[: self.minibatches])
        epoch = self.kernels.view(
            "EpochView",
            means=self.loss.means,
            step_params=self.adam.plans,
            minibatches=self.minibatches,
            members=self.members,
            hparams=self.hparams,
            tallies=self.tallies,
            stopped=self.stopped,
        )
        self.kernels.end_epoch(1, self.members, epoch)

    def measure(self) -> dict[str, Tensor]:
        """Return the metrics of an update by name, one number per member."""
        explained = self.kernels.names("Statistics").index("explained")
        return {
            "samples": self.sample_counts,
            "diverged": self.diverged,
            "explained_variance": self.statistics[:, explained],
            "value_scale": self.net.value_scale,
            **dict(zip(self.kernels.names("Tally"), self.tallies.unbind(1), strict=True)),
            **self.terms.measure(),
            **({CRITIC_LOSS: self.critic.loss} if self.critic else {}),
        }

    def stats(self, found: Mapping[str, float]) -> dict[str, float]:
        """Return the stats of a report. found: metrics of one member."""
        steps = found["optimizer_steps"]
        stats = {
            f"losses/{name}": found[name] / max(steps, 1.0) for name in (*PPO_METRICS, "grad_norm")
        }
        if self.critic:
            stats[f"losses/{CRITIC_LOSS}"] = found[CRITIC_LOSS] / max(steps, 1.0)
        return stats | {
            **self.terms.stats(found, steps),
            "losses/explained_variance": found["explained_variance"],
            "learning/value_scale": found["value_scale"],
            "learning/optimizer_steps": steps,
            "learning/samples": found["samples"],
            "learning/left_out": max(found["samples"] - self.minibatches * self.room, 0.0),
        }

    def kept(self) -> list[Tensor]:
        """All tensors of network and optimizer that an update changes."""
        critic = self.critic.kept() if self.critic else []
        return [*self.net.learned_tensors(), self.has_value_scale, *self.adam.kept(), *critic]
