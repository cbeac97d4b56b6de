"""PPO by self-play on one page: rollout, advantages, epochs, minibatches, loss, step, report.

A rollout has a place for every observation on which a seat decides. A transition is complete when
its seat decides again or its game ends; an update learns from complete ones, pending ones move into
the next rollout. `learners` holds networks by role; a shared network has the role "".
`learn.backends` makes optimizer steps: autograd on `PPO.loss`, or native code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn import role_learners
from sparring.learn.advantages import VTrace, bootstrap_truncated, linking_by_role, samples_by_role
from sparring.learn.collect import Sampling
from sparring.learn.forward import Forward
from sparring.learn.head_terms import head_terms
from sparring.learn.learner import DivergedError, Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.minibatches import (
    Metrics,
    RolloutSamples,
    extra_rows_of,
    gather_rows,
    mean_metrics,
    shuffle_rng,
)
from sparring.learn.plan import PPOHparams, RolePlan, Turns
from sparring.learn.playing import SelfPlay, normalizes, update_normalizer
from sparring.learn.process_group import SINGLE, ProcessGroup
from sparring.learn.role_learners import PPO_METRICS, RoleLearner
from sparring.learn.sequences import STEP, cut_segments, forward_segments
from sparring.learn.terms import Term, columns_of, losses_of, metric_names
from sparring.learn.transforms import MIRRORED
from sparring.nets.distribution import evaluate_actions
from sparring.nets.policy import Policy
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

Arrays = dict[str, npt.NDArray[Any]]
Indices = npt.NDArray[np.intp]
Rows = Mapping[str, Tensor]


@dataclass(frozen=True)
class Losses:
    total: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clipfrac: Tensor


def ppo_loss(
    logits: Tensor,
    value: Tensor,
    *,
    mask: Tensor,
    action: Tensor,
    old_log_prob: Tensor,
    old_value: Tensor,
    advantage: Tensor,
    returns: Tensor,
    hparams: PPOHparams,
    mirrored: Tensor | None = None,
) -> Losses:
    """Clipped surrogate, squared value error and entropy bonus.

    mirrored: marks mirror images of played rows; approx_kl and clipfrac leave them out.
    """
    clip, value_clip = hparams.clip, hparams.value_clip
    log_prob, entropy_per_row = evaluate_actions(logits, mask, action)
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    value = value.float()
    squared_error = (value - returns) ** 2
    if value_clip:
        clipped = old_value + (value - old_value).clamp(-value_clip, value_clip)
        squared_error = torch.max(squared_error, (clipped - returns) ** 2)
    value_loss = squared_error.mean()
    entropy = entropy_per_row.mean()
    total = policy_loss + hparams.value_weight * value_loss - hparams.entropy * entropy
    with torch.no_grad():
        approx_kl = unmirrored_mean((ratio - 1) - log_ratio, mirrored)
        clipfrac = unmirrored_mean(((ratio - 1).abs() > clip).float(), mirrored)
    return Losses(total, policy_loss, value_loss, entropy, approx_kl, clipfrac)


def unmirrored_mean(per_row: Tensor, mirrored: Tensor | None) -> Tensor:
    if mirrored is None:
        return per_row.mean()
    return per_row.masked_fill(mirrored, 0.0).sum() / (~mirrored).sum().clamp(min=1)


def loss_of(
    forward: Forward, terms: Sequence[Term], minibatch: Rows, hparams: PPOHparams
) -> tuple[Tensor, Rows]:
    """Return the loss of a minibatch, all terms included, and its metrics."""
    recurrent = STEP in minibatch
    heads = forward_segments(forward, minibatch) if recurrent else forward(minibatch["obs"])
    losses = ppo_loss(
        heads["policy"],
        heads["value"],
        mask=minibatch["mask"],
        action=minibatch["action"],
        old_log_prob=minibatch["log_prob"],
        old_value=minibatch["value"],
        advantage=minibatch["advantage"],
        returns=minibatch["returns"],
        hparams=hparams,
        mirrored=minibatch.get(MIRRORED),
    )
    total, metrics = losses.total, {name: getattr(losses, name) for name in PPO_METRICS}
    for term in terms:
        if term.weight:
            metrics |= losses_of(term, forward, heads, minibatch)
            total = total + term.weight * metrics[term.name]
    return total, metrics


class PPO:
    """The learner: self-play, a network and optimizer per role, and the terms of the loss."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: PPOConfig | Sequence[RolePlan],
        net: NetConfig | None = None,
        *,
        turns: Turns | None = None,
        heads: HeadsConfig | None = None,
        process_group: ProcessGroup = SINGLE,
        correction: VTrace | None = None,
        **options: Any,
    ) -> None:
        """Play and learn from the games of a pool.

        config: settings of a shared network, or one plan per role in the order of the game's roles.
        turns: which roles learn in which update. process_group: data-parallel replicas. correction:
        V-trace, for rollouts of actors that lag behind. options: of `SelfPlay`.
        """
        if isinstance(config, PPOConfig):
            config = [RolePlan("", net or NetConfig(), (config,))]
        self.roles, columns = tuple(config), ("log_prob", "value")
        nets = {plan.role: plan.net for plan in config if plan.role}
        actor = partial(Sampling, seed=options.get("seed", 0))
        options = {**options, "heads": heads, "roles": nets}
        playing = SelfPlay(pool, collect, self.roles[0].net.played, actor, columns, **options)
        self.playing, self.pool, self.rules, self.net = playing, pool, playing.rules, playing.net
        self.forward, self.phases, self.seed = playing.forward, playing.phases, playing.seed
        self.collector, self.transforms = playing.collector, playing.transforms
        self.device, self.slots, self.put = playing.device, playing.slots, playing.put
        self.set_mixes, self.seated, self.exact = playing.set_mixes, playing.seated, playing.exact
        self.turns, self.correction = turns or Turns(), correction
        examples = [hindsight.term() for hindsight in playing.transforms.relabeling]
        self.terms: list[Term] = [*head_terms(playing.rules, heads), *examples]
        native = type(self).loss is PPO.loss  # native code knows no loss of a subclass
        self.learners = role_learners.make(playing, self.roles, collect, self.terms, native=native)
        self.recurrent, self.normalizes = self.net.config.recurrent, normalizes(self.net)
        self.process_group, self.critic = process_group, playing.critic
        self.updates = self.samples = 0

    def iterate(self, progress: float) -> list[Report]:
        """Collect a rollout and learn from it."""
        moment = Moment(int(self.process_group.total(self.collector.decisions)), progress)
        hparams = self.hparams_at(moment)
        for term in (term for learner in self.learners.values() for term in learner.terms):
            term.set_weight(moment)
        with self.playing.best_matmul():
            rollout_stats = self.collector.collect(self.updates)
            stats = self.update(hparams)
        return [self.playing.report({**stats, **rollout_stats}, self.samples)]

    def hparams_at(self, moment: Moment) -> dict[str, PPOHparams]:
        return {
            role: PPOHparams.at(learner.settings, moment) for role, learner in self.learners.items()
        }

    def update(self, hparams: Mapping[str, PPOHparams]) -> dict[str, float]:
        with self.phases("advantage"):
            samples, targets = self.targets(hparams)
        stats, steps, num_samples = dict[str, float](), 0.0, 0.0
        by_role = {"": samples}
        if "" not in self.learners:
            by_role = samples_by_role(self.collector, samples, self.turns, self.updates)
        for role, role_samples in by_role.items():
            try:
                role_stats = self.learn(role, role_samples, targets, hparams[role])
            except DivergedError as error:
                raise DivergedError(f"update {self.updates}: {error}") from None
            steps += role_stats["learning/optimizer_steps"]
            num_samples += role_stats["learning/samples"]
            stats |= {f"{name}/{role}" if role else name: x for name, x in role_stats.items()}
        if self.normalizes:  # only now, so that old and new log-probs see the same observations
            update_normalizer(self.net, self.collector, self.process_group)
        self.samples, self.updates = self.samples + int(num_samples), self.updates + 1
        stats["learning/optimizer_steps"], stats["learning/samples"] = steps, num_samples
        stats["learning/decisions"] = float(self.collector.rollout.decisions())
        stats["charts/forced"] = float(self.collector.rollout.skipped.sum())
        with self.phases("stepping"):
            self.collector.keep_pending()
        return stats

    def targets(self, hparams: Mapping[str, PPOHparams]) -> tuple[Indices, Arrays]:
        """Return the places of the samples, and GAE advantages and returns of all places."""
        collector, rollout, shared = self.collector, self.collector.rollout, hparams.get("")
        if rollout.truncations.obs:
            bootstrap_truncated(self.playing, by_role=shared is None)
        if self.critic:
            self.critic.fill(self)
        if shared:
            gamma_into = self.learners[""].settings.gamma_into
            linking: dict[str, Any] = {"gamma": shared.gamma, "gamma_into": gamma_into}
            traces: dict[str, Any] = {"gae_lambda": shared.gae_lambda}
        else:
            linking, traces = linking_by_role(self.roles, hparams, rollout.role)
        samples = collector.link(**linking, required=False)
        if not self.process_group.any(len(samples) > 0):
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        if self.correction:
            return samples, self.correction.targets(self.playing, samples, **traces)
        value = rollout.columns["value"]
        advantage = collector.transitions.advantages(value, **traces)
        return samples, {"advantage": advantage, "returns": advantage + value}

    @np.errstate(over="ignore", invalid="ignore")  # a backend raises if the loss is not finite
    def learn(
        self, role: str, samples: Indices, targets: Arrays, hparams: PPOHparams
    ) -> dict[str, float]:
        """Train one network in epochs of minibatches; return its metrics."""
        learner, number = self.learners[role], list(self.learners).index(role)
        terms, backend = [term for term in learner.terms if term.weight], learner.backend
        backend.metric_names = (*PPO_METRICS, *metric_names(terms)) if terms else PPO_METRICS
        with self.phases("advantage"):
            samples, arrays = self.batch(learner, samples, targets)
            extra = extra_rows_of(self, terms, samples, number)
        with self.phases("transfer"):
            data = {name: torch.from_numpy(a).to(self.device) for name, a in arrays.items()}
        with self.phases("update"):
            loss = partial(self.loss, role=role) if role else self.loss
            order, size = shuffle_rng(self.seed, self.updates, number), learner.settings.minibatch
            transforms, group = self.transforms.in_place, self.process_group
            step = self.critic.beside(learner) if self.critic else backend.step
            rollout = RolloutSamples(data, size, order, [*extra.values()], transforms)
            metrics: list[Metrics] = []
            for epoch in range(learner.settings.epochs):
                minibatches = rollout.epoch(self.updates, epoch, group)
                steps = [step(mb, hparams, loss, group) for mb in minibatches]
                metrics += steps
                if hparams.target_kl and mean_metrics(steps)["approx_kl"] > hparams.target_kl:
                    break
        stats = {f"losses/{name}": mean for name, mean in mean_metrics(metrics).items()}
        stats |= {f"learning/{name}": float(len(rows)) for name, rows in extra.items()}
        returns = targets["returns"][samples]
        error = returns - self.rows()["value"][samples]
        residual, variance = float(group.var(error)), float(group.var(returns))
        stats |= self.correction.figures if self.correction else {}
        return stats | {
            "losses/explained_variance": 1 - residual / variance if variance > 0 else 0.0,
            "learning/lr": hparams.lr,
            "learning/entropy_weight": hparams.entropy,
            "learning/value_scale": float(learner.net.value_scale),
            "learning/optimizer_steps": float(len(metrics)),
            "learning/samples": float(len(samples)),
            "learning/native": float(learner.forward.native is not None),
        }

    def batch(
        self, learner: RoleLearner, samples: Indices, targets: Arrays
    ) -> tuple[Indices, Arrays]:
        """Return rows and targets of samples, with advantages normalized over all of them.

        The value head predicts value / `value_scale`. The scale follows the RMS of returns, and the
        head is rescaled with it, so that its predictions stay (PopArt).
        """
        sequence: Arrays = {}
        if self.recurrent:
            links, seat = self.collector.transitions, self.collector.rollout.seat
            samples, sequence = cut_segments(links, seat, samples, self.net.config.bptt_steps)
        advantage, returns = (targets[name][samples] for name in ("advantage", "returns"))
        group = self.process_group
        if group.any(bool(self.collector.transitions.paid[samples].any())):
            rms, known = float(np.sqrt(np.float32(group.mean(returns**2)))), learner.has_value_scale
            learner.has_value_scale |= learner.net.update_return_scale(rms, known=known)
        for column in columns_of(self.terms) if self.terms else ():
            column.fill(self, samples, returns)
        scale, mean = float(learner.net.value_scale), float(group.mean(advantage))
        std = float(group.std(advantage)) + 1e-8
        arrays = gather_rows(self.rows(), samples, by_place=learner.backend.by_place)
        arrays["value"] = arrays["value"] / scale
        arrays["returns"] = (returns / scale).astype(np.float32)
        arrays["advantage"] = ((advantage - mean) / std).astype(np.float32)
        if "rho" in targets:  # importance weights of decisions that older weights made
            arrays["advantage"] *= targets["rho"][samples]
        for term in learner.terms:
            arrays |= term.columns(self, samples) if term.weight else {}
        return samples, {**arrays, **sequence}

    def loss(self, minibatch: Rows, hparams: PPOHparams, role: str = "") -> tuple[Tensor, Rows]:
        learner = self.learners[role]
        return loss_of(learner.forward, learner.terms, minibatch, hparams)

    def rows(self) -> Arrays:
        """Rows of all places; with V-trace, log_prob and value are the current network's."""
        rows = self.collector.rollout.rows() | (self.critic.columns if self.critic else {})
        return {**rows, **self.correction.present} if self.correction else rows

    def dry_run(self) -> list[Report]:
        return [self.playing.dry_run(self, self.hparams_at(Moment(self.collector.decisions, 0.0)))]

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        apply_game_overrides(self.pool, overrides)
        for role, settings in {"": overrides.settings, **(overrides.role_settings or {})}.items():
            if settings is not None and role in self.learners:
                self.learners[role].use(settings)
        if overrides.clear_replay:
            raise ConfigError("clear_replay: PPO has no replay; leave it out")

    def policy(self, member: int = 0) -> Policy:
        return self.playing.policy(self.updates)

    def snapshot(self, member: int = 0) -> Snapshot:
        saved = self.playing.snapshot(self.updates, self.samples)
        states, scales = role_learners.save(self.learners)
        late = self.correction.blobs() if self.correction and self.exact else {}
        tensors, blobs = {**saved.tensors, **states}, {**saved.blobs, **late}
        return replace(saved, tensors=tensors, blobs=blobs, meta={**saved.meta, **scales})

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.playing.restore(snapshot, fresh=not self.updates)
        self.load(snapshot)
        if self.correction:
            self.correction.load(snapshot.blobs)

    def load(self, snapshot: Snapshot) -> None:
        role_learners.load(self.learners, snapshot)
        self.updates, self.samples = snapshot.meta["update"], snapshot.meta["samples"]
