"""PPO by self-play on one page: rollout, advantages, epochs, minibatches, loss, step, report.

A rollout has a place for every observation on which a seat had to decide. A decision is complete
when its seat decides again or its game is over; the places of complete ones are the samples of an
update, and those still open are carried into the next. One network may decide in all roles of a
game, or every role has its own: `parts` has them by role, and one for all has the role "".
`learn.backends` makes the steps: autograd on `PPO.loss`, or native code held equal to it.
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
from sparring.learn.advantages import VTrace, bootstrap_truncated, linking_by_role, samples_by_role
from sparring.learn.collect import Sampling
from sparring.learn.forward import Forward
from sparring.learn.head_terms import head_terms
from sparring.learn.learner import DivergedError, Report, Snapshot, Terms, adjust_games
from sparring.learn.minibatches import Samples, Shown, gathered, mean_losses, own_rows_of, shuffling
from sparring.learn.parts import LOGGED, Part, load_parts, make_parts, save_parts
from sparring.learn.plan import PPOHparams, RolePlan, Turns
from sparring.learn.playing import Playing, normalizes, take_in_rows
from sparring.learn.sequences import STEP, in_sequence, say_in_sequence
from sparring.learn.terms import Term, columns_of, losses_of, shown_of, truth_of
from sparring.learn.together import ALONE, Together
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
    """The terms of the PPO loss on one minibatch."""

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
    """The clipped surrogate, the squared value error and the entropy bonus.

    mirrored: rows that are images of what was played: losses count them, KL and clip share do not.
    """
    clip, value_clip = hparams.clip, hparams.value_clip
    log_prob, entropy_each = evaluate_actions(logits, mask, action)
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    value = value.float()
    squared = (value - returns) ** 2
    if value_clip:
        near = old_value + (value - old_value).clamp(-value_clip, value_clip)
        squared = torch.max(squared, (near - returns) ** 2)
    value_loss = squared.mean()
    entropy = entropy_each.mean()
    total = policy_loss + hparams.value_weight * value_loss - hparams.entropy * entropy
    with torch.no_grad():
        approx_kl = plain_mean((ratio - 1) - log_ratio, mirrored)
        clipfrac = plain_mean(((ratio - 1).abs() > clip).float(), mirrored)
    return Losses(total, policy_loss, value_loss, entropy, approx_kl, clipfrac)


def plain_mean(each: Tensor, mirrored: Tensor | None) -> Tensor:
    """The mean over rows as they were played."""
    if mirrored is None:
        return each.mean()
    return each.masked_fill(mirrored, 0.0).sum() / (~mirrored).sum().clamp(min=1)


def loss_of(
    forward: Forward, terms: Sequence[Term], minibatch: Rows, hparams: PPOHparams
) -> tuple[Tensor, Rows]:
    """The loss of a network on a minibatch with all terms, and what curves show of it."""
    in_a_row = STEP in minibatch
    heads = say_in_sequence(forward, minibatch) if in_a_row else forward(minibatch["obs"])
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
    total, shown = losses.total, {name: getattr(losses, name) for name in LOGGED}
    for term in terms:
        if term.weight:
            shown |= losses_of(term, forward, heads, minibatch)
            total = total + term.weight * shown[term.name]
    return total, shown


class PPO:
    """The learner. It owns who plays, the networks, their optimizers, and the terms of the loss."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: PPOConfig | Sequence[RolePlan],
        net: NetConfig | None = None,
        *,
        turns: Turns | None = None,
        heads: HeadsConfig | None = None,
        together: Together = ALONE,
        correction: VTrace | None = None,
        **options: Any,
    ) -> None:
        """Take over a pool.

        config: settings of one network for all roles, or plans by role in the order of the game's.
        turns: which roles learn in which update. options: of `Playing`. together: data-parallel
        replicas, whose gradients are averaged. correction: V-trace, if older weights have played.
        """
        if isinstance(config, PPOConfig):
            config = [RolePlan("", net or NetConfig(), (config,))]
        self.roles, columns = tuple(config), ("log_prob", "value")
        nets = {plan.role: plan.net for plan in config if plan.role}
        actor = partial(Sampling, seed=options.get("seed", 0))
        options = {**options, "heads": heads, "roles": nets}
        playing = Playing(pool, collect, self.roles[0].net, actor, columns, **options)
        self.playing, self.pool, self.rules, self.net = playing, pool, playing.rules, playing.net
        self.forward, self.phases, self.seed = playing.forward, playing.phases, playing.seed
        self.collector, self.transforms = playing.collector, playing.transforms
        self.device, self.slots, self.put = playing.device, playing.slots, playing.put
        self.set_mixes, self.seated, self.exact = playing.set_mixes, playing.seated, playing.exact
        self.turns, self.together, self.correction = turns or Turns(), together, correction
        examples = [one.term() for one in playing.transforms.anew]
        self.terms: list[Term] = [*head_terms(playing.rules, heads), *examples]
        """Of the loss, beside PPO's own."""
        self.collector.rollout.want_truth(truth_of(self.terms))
        native = type(self).loss is PPO.loss  # a subclass with another loss is left to torch
        self.parts = make_parts(playing, self.roles, collect, self.terms, native=native)
        self.recurrent, self.normalizes = self.net.config.recurrent, normalizes(self.net)
        self.updates = self.samples = 0
        """Updates made, and decisions that were learned from, so far."""

    def iterate(self, progress: float) -> list[Report]:
        """Play a rollout and learn from it; return what was earned and learned."""
        moment = Moment(int(self.together.total(self.collector.decisions)), progress)
        hparams = self.hparams_at(moment)
        for term in self.terms:
            term.turn(moment)
        with self.playing.best_matmul():
            earned = self.collector.collect(self.updates)
            stats = self.update(hparams)
        return [self.collector.report({**stats, **earned}, self.samples)]

    def hparams_at(self, moment: Moment) -> dict[str, PPOHparams]:
        """Read every schedule of every role."""
        return {role: PPOHparams.at(part.settings, moment) for role, part in self.parts.items()}

    def update(self, hparams: Mapping[str, PPOHparams]) -> dict[str, float]:
        """Learn from the rollout, and keep the decisions that are still open."""
        with self.phases("advantage"):
            samples, targets = self.targets(hparams)
        stats: dict[str, float] = {}
        steps = learned = 0.0
        shares = {"": samples}
        if "" not in self.parts:
            shares = samples_by_role(self.collector, samples, self.turns, self.updates)
        for role, mine in shares.items():
            try:
                found = self.learn(role, mine, targets, hparams[role])
            except DivergedError as wrong:
                raise DivergedError(f"update {self.updates}: {wrong}") from None
            steps += found["learning/optimizer_steps"]
            learned += found["learning/samples"]
            stats |= {f"{name}/{role}" if role else name: one for name, one in found.items()}
        if self.normalizes:  # only now, so that old and new log-probs see the same observations
            take_in_rows(self.net, self.collector)
        self.samples, self.updates = self.samples + int(learned), self.updates + 1
        stats["learning/optimizer_steps"], stats["learning/samples"] = steps, learned
        stats["learning/decisions"] = float(self.collector.rollout.decisions())
        stats["charts/forced"] = float(self.collector.rollout.skipped.sum())
        with self.phases("stepping"):
            self.collector.carry()
        return stats

    def targets(self, hparams: Mapping[str, PPOHparams]) -> tuple[Indices, Arrays]:
        """Return the samples, and GAE advantages and returns by place."""
        collector, rollout, one = self.collector, self.collector.rollout, hparams.get("")
        if rollout.cuts.obs:
            bootstrap_truncated(self.playing, by_role=one is None)
        if one:
            into = self.parts[""].settings.gamma_into
            linking: dict[str, Any] = {"gamma": one.gamma, "gamma_into": into}
            traces: dict[str, Any] = {"gae_lambda": one.gae_lambda}
        else:
            linking, traces = linking_by_role(self.roles, hparams, rollout.role)
        samples = collector.link(**linking, demand=False)
        if not self.together.any(len(samples) > 0):
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        if self.correction:
            return samples, self.correction.targets(self.playing, samples, **traces)
        value = rollout.columns["value"]
        advantage = collector.transitions.advantages(value, **traces)
        return samples, {"advantage": advantage, "returns": advantage + value}

    @np.errstate(over="ignore", invalid="ignore")  # a loss that is not finite is told instead
    def learn(
        self, role: str, samples: Indices, targets: Arrays, hparams: PPOHparams
    ) -> dict[str, float]:
        """Improve one network in epochs of minibatches; return what curves show."""
        part, number = self.parts[role], list(self.parts).index(role)
        terms = [term for term in self.terms if term.weight]
        part.backend.shown = (*LOGGED, *shown_of(terms)) if terms else LOGGED
        with self.phases("advantage"):
            samples, arrays = self.batch(part, samples, targets)
            own = own_rows_of(self, terms, samples, number)
        with self.phases("transfer"):
            data = {name: torch.from_numpy(a).to(self.device) for name, a in arrays.items()}
        with self.phases("update"):
            loss = partial(self.loss, role=role) if role else self.loss
            order, turning = shuffling(self.seed, self.updates, number), self.transforms.turning
            shuffled = Samples(data, part.settings.minibatch, order, [*own.values()], turning)
            logged: list[Shown] = []
            for epoch in range(part.settings.epochs):
                minibatches = shuffled.epoch(self.updates, epoch, self.together)
                done = [part.backend.step(one, hparams, loss, self.together) for one in minibatches]
                logged += done
                if hparams.target_kl and mean_losses(done)["approx_kl"] > hparams.target_kl:
                    break
        stats = {f"losses/{name}": mean for name, mean in mean_losses(logged).items()}
        stats |= {f"learning/{name}": float(len(mine)) for name, mine in own.items()}
        returns = targets["returns"][samples]
        missed = returns - self.rows()["value"][samples]
        left, variance = (float(self.together.var(each)) for each in (missed, returns))
        stats |= self.correction.figures if self.correction else {}
        return stats | {
            "losses/explained_variance": 1 - left / variance if variance > 0 else 0.0,
            "learning/lr": hparams.lr,
            "learning/entropy_weight": hparams.entropy,
            "learning/value_scale": float(part.net.value_scale),
            "learning/optimizer_steps": float(len(logged)),
            "learning/samples": float(len(samples)),
            "learning/native": float(part.forward.native is not None),
        }

    def batch(self, part: Part, samples: Indices, targets: Arrays) -> tuple[Indices, Arrays]:
        """Rows and targets of samples, with advantages normalized over all of them.

        The value head predicts value / `value_scale`, which follows the RMS of returns; when it
        moves, the head is rescaled, so that what it predicts stays.
        """
        sequence: Arrays = {}
        if self.recurrent:
            links, seat = self.collector.transitions, self.collector.rollout.seat
            samples, sequence = in_sequence(links, seat, samples, self.net.config.bptt_steps)
        advantage, returns = (targets[name][samples] for name in ("advantage", "returns"))
        if self.together.any(bool(self.collector.transitions.paid[samples].any())):
            size = np.sqrt(np.float32(self.together.mean(returns**2)))
            part.has_unit |= part.net.update_return_scale(float(size), known=part.has_unit)
        for column in columns_of(self.terms) if self.terms else ():
            column.fill(self, samples, returns)
        scale, middle = float(part.net.value_scale), float(self.together.mean(advantage))
        spread = float(self.together.std(advantage)) + 1e-8
        arrays = gathered(self.rows(), samples, by_place=part.backend.by_place)
        arrays["value"] = arrays["value"] / scale
        arrays["returns"] = (returns / scale).astype(np.float32)
        arrays["advantage"] = ((advantage - middle) / spread).astype(np.float32)
        if "rho" in targets:  # what older policies have decided weighs less
            arrays["advantage"] *= targets["rho"][samples]
        for term in self.terms:
            arrays |= term.columns(self, samples) if term.weight else {}
        return samples, {**arrays, **sequence}

    def loss(self, minibatch: Rows, hparams: PPOHparams, role: str = "") -> tuple[Tensor, Rows]:
        """The clipped surrogate with all terms, and what curves show of it."""
        return loss_of(self.parts[role].forward, self.terms, minibatch, hparams)

    def rows(self) -> Arrays:
        """Rows of every place; under V-trace, log_prob and value are the present network's."""
        rows = self.collector.rollout.rows()
        return {**rows, **self.correction.present} if self.correction else rows

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        return [self.playing.rehearse(self, self.hparams_at(Moment(self.collector.decisions, 0.0)))]

    def adjust(self, terms: Terms, member: int = 0) -> None:
        """Go on under other terms. No running game changes its rules, seats or start."""
        adjust_games(self.pool, terms)
        for role, settings in {"": terms.settings, **(terms.role_settings or {})}.items():
            if settings is not None and role in self.parts:
                self.parts[role].settings = settings
        if terms.clear_replay:
            raise ConfigError("clear_replay: PPO has no replay; leave it out")

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        return self.playing.policy(self.updates)

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what the next update depends on: weights, optimizers, games, open decisions."""
        saved = self.playing.snapshot(self.updates, self.samples)
        states, units = save_parts(self.parts)
        late = self.correction.blobs() if self.correction and self.exact else {}
        tensors, blobs = {**saved.tensors, **states}, {**saved.blobs, **late}
        return replace(saved, tensors=tensors, blobs=blobs, meta={**saved.meta, **units})

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""
        self.playing.restore(snapshot, fresh=not self.updates)
        self.load(snapshot)
        if self.correction:
            self.correction.load(snapshot.blobs)

    def load(self, snapshot: Snapshot) -> None:
        """Go on with the optimizers, units and counts of a snapshot."""
        load_parts(self.parts, snapshot)
        self.updates, self.samples = snapshot.meta["update"], snapshot.meta["samples"]
