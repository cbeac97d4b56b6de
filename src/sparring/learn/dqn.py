"""DQN from replay: double, dueling, n-step, with masks. An update in the order in which it runs.

The policy head holds values of actions (`learn.losses`), so that everything that plays a
policy plays this one too, by its best action. An update is a few rounds of playing and learning;
`replay.ratio` samples are drawn for every decision. `DQN.gradient` is `loss.backward()`; native
code does the same where it can (`learn.backends.native_replay`), and `learn.fused.dqn` on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring import _native
from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig
from sparring.learn.acting import Exploring
from sparring.learn.backends.native_replay import NativeGradient
from sparring.learn.experience import Experience, Losses, means
from sparring.learn.forward import Forward
from sparring.learn.learner import Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.losses import dqn_loss, spread_epsilon, td_target
from sparring.learn.plan import ScheduledValues
from sparring.learn.playing import SelfPlay, copied, share_normalizer
from sparring.learn.replay import ReplayBatch
from sparring.nets.make import make_net
from sparring.nets.net import POLICY, VALUE
from sparring.nets.policy import BY_VALUE, DUELING, Policy
from sparring.nets.run.native import NativeNet, PackedAdam, PackedParameters
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


@dataclass(frozen=True)
class DQNHparams(ScheduledValues):
    """The numbers of `DQNConfig` that a schedule may change, as they are in one rollout."""

    lr: float
    gamma: float
    tau: float
    epsilon: float
    max_grad_norm: float


class DQN:
    """The learner: a network whose policy head values actions, and a target that follows it."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: DQNConfig,
        replay: ReplayConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        **options: Any,
    ) -> None:
        assert not pool.rules.box and not net.recurrent
        self.playing = playing = SelfPlay(
            pool,
            collect,
            net,
            lambda forward: Exploring(forward, pool.rules, seed, greedy=True),
            facts={BY_VALUE: True, DUELING: config.dueling},
            rows_on="cpu",
            seed=seed,
            threads=threads,
            **options,
        )
        self.experience = Experience(playing, collect, replay)
        self.config, self.updates = config, 0
        self.hparams = DQNHparams.at(config, Moment(0, 0.0))
        self.rules, self.pool, self.collector = playing.rules, pool, playing.collector
        self.phases, self.slots, self.put = playing.phases, playing.slots, playing.put
        self.set_mixes, self.seated, self.exact = playing.set_mixes, playing.seated, playing.exact
        assert isinstance(playing.actor, Exploring)
        self.exploring = playing.actor
        self.net, self.forward, self.device = playing.net, playing.forward, playing.device
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and overwritten
            self.target = make_net(pool.rules, net, memory=pool.memory_bytes, threads=threads)
        self.target.to(self.device).load_state_dict(self.net.state_dict())
        share_normalizer(self.net, self.target)
        self.target.requires_grad_(False)
        self.target_forward = Forward(self.target, self.device, collect)
        self.native: NativeGradient | None = None
        own = type(self) is not DQN  # a subclass may have other losses: it is left to torch
        if native := None if own else self.forward.go_native(threads):
            target = NativeNet(self.target, threads=threads, arithmetic=self.forward.arithmetic)
            self.native = NativeGradient(native, target, weighted=replay.prioritized)
            self.packed, self.packed_target = native.packed, target.packed
            work = _native.Updating(threads)
            self.optimizer = PackedAdam(self.packed, native=work, on_change=native.mark_changed)
        else:
            self.packed, self.packed_target = (
                PackedParameters(self.net),
                PackedParameters(self.target),
            )
            self.optimizer = PackedAdam(self.packed)

    # An update

    def iterate(self, progress: float) -> list[Report]:
        """Play and learn by turns; return what was earned and learned."""
        experience, logged = self.experience, list[Losses]()
        decisions, steps = experience.decisions, experience.steps
        finished: dict[str, float] = {}
        with self.forward.best_matmul():
            for number in range(experience.rounds):  # `finished` adds up over them
                moment = Moment(experience.decisions, progress, experience.episodes)
                self.set_hparams(moment)
                self.explore()
                gamma = self.hparams.gamma
                finished = experience.play(moment, gamma, self.config, reset_stats=not number)
                logged += experience.learn(moment, self.step)
        self.updates += 1
        hparams = {name: getattr(self.hparams, name) for name in ("lr", "gamma", "epsilon")}
        stats = means(logged) | {f"learning/{name}": value for name, value in hparams.items()}
        stats |= experience.stats(decisions, steps) | finished
        return [self.collector.report(stats, experience.samples)]

    def set_hparams(self, moment: Moment) -> None:
        """Read every schedule."""
        self.hparams = DQNHparams.at(self.config, moment)
        self.optimizer.lr = self.hparams.lr

    def explore(self) -> None:
        """Give every game an epsilon (as Ape-X spreads them); before learning, all is random."""
        spread, games = self.config.epsilon_spread, self.pool.num_games
        epsilon = 1.0 if self.experience.at_random else self.hparams.epsilon
        self.exploring.set_epsilon(spread_epsilon(epsilon, spread, games))

    @torch.enable_grad()
    def step(self, samples: ReplayBatch) -> tuple[Losses, Tensor]:
        """Make an optimizer step, and one of the target; return losses and every sample's error.

        A loss that is not finite is never stepped on.
        """
        native = self.native
        found = native.gradient(samples, self.config) if native else self.gradient(samples)
        loss, mean_error, error = found
        norm = math.nan
        if math.isfinite(loss):
            norm = self.optimizer.clip_and_step(self.hparams.max_grad_norm)
        losses = {"q_loss": loss, "td_error": mean_error, "grad_norm": norm}
        if not math.isfinite(norm):
            raise self.experience.diverged(self.updates, losses)
        self.follow()
        return losses, error

    def gradient(self, samples: ReplayBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Fill the gradient; return the loss, the mean error, and every sample's error."""
        samples, weighted = samples.to(self.device), self.experience.config.prioritized
        target = self.targets(samples)
        heads = self.forward(samples.obs)
        loss, error = dqn_loss(
            heads[POLICY],
            heads[VALUE],
            mask=samples.mask,
            action=samples.action,
            target=target,
            weight=samples.weight if weighted else None,
            dueling=self.config.dueling,
            huber=self.config.huber,
        )
        self.packed.grad.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), error.mean(), error

    @torch.no_grad()
    def targets(self, samples: ReplayBatch) -> Tensor:
        """What decisions are to be worth: what they were paid, and the best that follows."""
        following = self.target_forward(samples.next_obs)
        chooser = self.forward(samples.next_obs) if self.config.double else following
        return td_target(
            following[POLICY],
            following[VALUE],
            chooser=chooser[POLICY],
            mask=samples.next_mask,
            paid=samples.paid,
            discount=samples.discount,
            dueling=self.config.dueling,
        )

    @torch.no_grad()
    def follow(self) -> None:
        """Move the target network by tau, or replace it every so many optimizer steps."""
        every, share = self.config.target_every, self.hparams.tau
        if every:
            share = float((self.experience.steps + 1) % every == 0)  # this step counts, too
        if self.native:
            self.native.follow(share)
        elif share:
            self.packed_target.weight.lerp_(self.packed.weight, share)

    # Saving, measuring, and other terms

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        return self.playing.policy(self.updates)

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what the next update depends on."""
        return self.experience.snapshot(self.updates, self.learned())

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""
        self.updates = self.playing.restore(snapshot, fresh=not self.updates)
        self.put_learned(snapshot.tensors)
        self.experience.restore(snapshot)

    def learned(self) -> dict[str, dict[str, Tensor]]:
        """The target network and Adam's memory."""
        return {"target": copied(self.target), "optimizer": self.optimizer.tensors()}

    def put_learned(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on with `learned` of another moment; where nothing was learned the target is new."""
        self.optimizer.load(tensors["optimizer"])
        learned = bool(tensors["optimizer"])
        self.target.load_state_dict(tensors["target"] if learned else self.net.state_dict())

    def dry_run(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        return [self.experience.dry_run(self)]

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Go on under other overrides. No running game changes its rules, seats or start."""
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.config = overrides.settings
            self.playing.facts[DUELING] = self.config.dueling
        if overrides.clear_replay:
            self.experience.clear()
