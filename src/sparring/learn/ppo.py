"""PPO by self-play: rollout, advantages, loss and update, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn.collect import Actor, Sampling
from sparring.learn.descent import Descent
from sparring.learn.forward import Forward
from sparring.learn.hosted import HostedLearner
from sparring.learn.knobs import Knobs
from sparring.learn.learner import Snapshot
from sparring.learn.mirror import MIRRORED
from sparring.learn.native_steps import NativeSteps
from sparring.learn.on_policy import Arrays, OnPolicy
from sparring.learn.sequences import STEP, in_sequence, say_in_sequence
from sparring.learn.steps import PLACE, Shown
from sparring.learn.terms import OwnRows, Term, columns_of, measure, own_rows, shown_of, weighing
from sparring.learn.units import next_unit
from sparring.nets.distribution import evaluate_actions
from sparring.nets.native_net import NativeNet
from sparring.nets.net import Heads
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

EPS = 1e-5
"""Adam's."""


@dataclass(frozen=True)
class Losses:
    """The terms of the PPO loss on one minibatch."""

    total: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clipfrac: Tensor


LOGGED = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac")
"""The losses that curves show."""


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
    knobs: Knobs,
    mirrored: Tensor | None = None,
) -> Losses:
    """The clipped surrogate, the squared value error and the entropy bonus.

    mirrored: rows that are images of what was played; others say how far the policy has moved.
    """
    clip, value_clip = knobs.clip, knobs.value_clip
    log_prob, entropy_each = evaluate_actions(logits, mask, action)
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    value = value.float()
    if value_clip:
        near = old_value + (value - old_value).clamp(-value_clip, value_clip)
        value_loss = torch.max((value - returns) ** 2, (near - returns) ** 2).mean()
    else:
        value_loss = ((value - returns) ** 2).mean()
    entropy = entropy_each.mean()
    total = policy_loss + knobs.value_weight * value_loss - knobs.entropy * entropy
    with torch.no_grad():
        approx_kl = plain_mean((ratio - 1) - log_ratio, mirrored)
        clipfrac = plain_mean(((ratio - 1).abs() > clip).float(), mirrored)
    return Losses(total, policy_loss, value_loss, entropy, approx_kl, clipfrac)


def plain_mean(each: Tensor, mirrored: Tensor | None) -> Tensor:
    """The mean over rows as they were played."""
    if mirrored is None:
        return each.mean()
    return each.masked_fill(mirrored, 0.0).sum() / (~mirrored).sum().clamp(min=1)


class PolicyDescent(Descent):
    """One network that PPO improves: the unit of its values, what it learns from, and the loss."""

    shown = LOGGED

    def __init__(
        self,
        forward: Forward,
        config: PPOConfig,
        native: NativeNet | None = None,
        terms: Sequence[Term] = (),
    ) -> None:
        """Improve the network that this runs.

        native: the same one, if it is computed natively. terms: of the loss, beside PPO's own; the
        list may grow later.
        """
        steps = NativeSteps(native, eps=EPS, shown=LOGGED, terms=terms) if native else None
        super().__init__(forward.net, config, eps=EPS, steps=steps)
        self.forward, self.terms = forward, terms
        self.has_unit = False
        """Whether a rollout has paid anything yet; the first that does sets the unit of values."""

    def passes(self, *given: Any, **options: Any) -> list[Shown]:
        """Go over the samples; others who learn as one with this sum the losses of terms too."""
        self.steps.shown = (*LOGGED, *shown_of(weighing(self.terms)))
        return super().passes(*given, **options)

    @np.errstate(over="ignore", invalid="ignore")  # a loss that is not finite is told instead
    def choose_unit(self, returns: npt.NDArray[np.float32]) -> None:
        """Measure values in the size of the returns; without any payment there is none."""
        size = float(np.sqrt(np.float32(self.together.mean(returns**2))))
        if not np.isfinite(size):
            return  # the loss will not be finite either, and the weights are to stay
        size = max(size, 1e-6)
        before = float(self.net.value_scale)
        self.net.rescale_values(next_unit(before, size) if self.has_unit else size)
        self.has_unit = True

    @np.errstate(over="ignore", invalid="ignore")
    def arrays(self, rows: Arrays, samples: npt.NDArray[np.intp], targets: Arrays) -> Arrays:
        """Rows and targets; advantages normalised, values in units of the value scale.

        Decisions of older policies have a weight `rho` besides.
        """
        scale, advantage = float(self.net.value_scale), targets["advantage"]
        middle = self.together.mean(advantage)
        spread = self.together.spread(advantage) + 1e-8
        arrays = self.rows(rows, samples)
        arrays["value"] = arrays["value"] / scale
        arrays["returns"] = (targets["returns"] / scale).astype(np.float32)
        arrays["advantage"] = ((advantage - middle) / spread).astype(np.float32)
        if "rho" in targets:
            arrays["advantage"] *= targets["rho"]
        return arrays

    def rows(self, rows: Arrays, samples: npt.NDArray[np.intp]) -> Arrays:
        """Rows of samples; the widest stay where they were played if steps read them there."""
        if not self.steps.by_place:
            return {name: array[samples] for name, array in rows.items()}
        wide = {"obs": rows["obs"], "mask": rows["mask"], PLACE: samples}
        return wide | {name: array[samples] for name, array in rows.items() if name not in wide}

    def loss(
        self, minibatch: Mapping[str, Tensor], knobs: Knobs
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The clipped surrogate and what belongs to it."""
        in_a_row = STEP in minibatch
        heads = (
            say_in_sequence(self.forward, minibatch) if in_a_row else self.forward(minibatch["obs"])
        )
        losses = ppo_loss(
            heads["policy"],
            heads["value"],
            mask=minibatch["mask"],
            action=minibatch["action"],
            old_log_prob=minibatch["log_prob"],
            old_value=minibatch["value"],
            advantage=minibatch["advantage"],
            returns=minibatch["returns"],
            knobs=knobs,
            mirrored=minibatch.get(MIRRORED),
        )
        total, shown = losses.total, {name: getattr(losses, name) for name in LOGGED}
        for term in weighing(self.terms):
            shown |= self.found_by(term, heads, minibatch)
            total = total + term.weight * shown[term.name]
        return total, shown

    def found_by(self, term: Term, heads: Heads, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The loss of a term on a minibatch, and what else curves show of it."""
        if isinstance(term, OwnRows):
            rows = own_rows(term, rows)
            if not len(rows["obs"]):
                return {
                    name: torch.zeros((), device=self.forward.device) for name in shown_of([term])
                }
            heads = self.forward(rows["obs"])
        return {term.name: term.each(heads, rows).mean(), **measure(term, heads, rows)}

    def far_enough(self, epoch: Sequence[Shown], knobs: Knobs) -> bool:
        """Whether the policy moved as far as it may in one update."""
        if not knobs.target_kl:
            return False
        return float(np.mean([float(losses["approx_kl"]) for losses in epoch])) > knobs.target_kl

    def stats(
        self, returns: npt.NDArray[np.float32], value: npt.NDArray[np.float32], knobs: Knobs
    ) -> dict[str, float]:
        """How well values were known, and in which unit."""
        left = self.together.variance(returns - value)
        variance = self.together.variance(returns)
        return {
            "losses/explained_variance": 1 - left / variance if variance > 0 else 0.0,
            "learning/entropy_weight": knobs.entropy,
            "learning/value_scale": float(self.net.value_scale),
        }


class PPO(OnPolicy[Knobs]):
    """The learner: advantages, the unit of values, and the loss."""

    columns = ("log_prob", "value")
    eps = EPS
    recurrent = True
    descent: PolicyDescent

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: PPOConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Take over a pool. options: those of `OnPolicy`."""
        super().__init__(pool, collect, config, net, **options)
        self.config = config
        self._sequence: Arrays = {}
        """Where the samples of an update lie in segments, if the network has a state."""

    def make_descent(self, config: Any) -> Descent:
        """PPO's; natively, unless somebody has given it a loss of their own."""
        own = type(self).loss is not PPO.loss
        return PolicyDescent(
            self.forward,
            config,
            None if own else self.forward.go_native(self.threads),
            self.terms,
        )

    def make_actor(self) -> Actor:
        """Draws actions."""
        return Sampling(self.forward, self.seed)

    def knobs_at(self, moment: Moment) -> Knobs:
        """Read every schedule."""
        return Knobs.at(self.config, moment)

    def targets(self, knobs: Knobs) -> tuple[npt.NDArray[np.intp], Arrays]:
        """Advantages and returns of every decision that is complete, and the value unit."""
        value_cuts(self)
        samples = self.collector.link(knobs.gamma, self.config.gamma_into, demand=False)
        if not self.together.any(len(samples) > 0):
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        if self.net.config.recurrent:
            transitions, seat = self.collector.transitions, self.collector.rollout.seat
            length = self.net.config.segment
            samples, self._sequence = in_sequence(transitions, seat, samples, length)
        targets = self.estimates(samples, knobs)
        if self.together.any(bool(self.collector.transitions.paid[samples].any())):
            self.descent.choose_unit(targets["returns"])
        for column in columns_of(self.terms):
            column.fill(self, samples, targets["returns"])
        return samples, targets

    def estimates(self, samples: npt.NDArray[np.intp], knobs: Knobs) -> Arrays:
        """Advantages and returns of some decisions; the rollout is linked."""
        value = self.rows()["value"]
        advantage = self.collector.transitions.advantages(value, knobs.gae_lambda)[samples]
        return {"advantage": advantage, "returns": advantage + value[samples]}

    def rows(self) -> Arrays:
        """What is known of every place of the rollout."""
        return self.collector.rollout.rows()

    def tensors(self, samples: npt.NDArray[np.intp], targets: Arrays) -> Arrays:
        """Rows and targets."""
        return {**self.descent.arrays(self.rows(), samples, targets), **self._sequence}

    def loss(
        self, minibatch: Mapping[str, Tensor], knobs: Knobs
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The clipped surrogate and what belongs to it."""
        return self.descent.loss(minibatch, knobs)

    def far_enough(self, epoch: Sequence[Shown], knobs: Knobs) -> bool:
        """Whether the policy moved as far as it may in one update."""
        return self.descent.far_enough(epoch, knobs)

    def stats(
        self, samples: npt.NDArray[np.intp], targets: Arrays, knobs: Knobs
    ) -> dict[str, float]:
        """How well values were known, and in which unit."""
        value = self.rows()["value"][samples]
        return self.descent.stats(targets["returns"], value, knobs)

    def notes(self) -> dict[str, Any]:
        """Whether values have a unit."""
        return {"has_unit": self.descent.has_unit}

    def read_notes(self, snapshot: Snapshot) -> None:
        """Go on with it."""
        self.descent.has_unit = has_unit(snapshot)


@torch.no_grad()
def value_cuts(learner: HostedLearner, *, by_role: bool = False) -> None:
    """Estimate what cut games would still have paid the seats that were to move.

    by_role: it is told in which role.
    """
    rollout = learner.collector.rollout
    if rollout.cuts.obs:
        obs = np.concatenate(rollout.cuts.obs)
        heads = learner.forward(torch.from_numpy(obs))
        value = learner.net.true_values(heads).cpu().numpy()
        role = learner.rules.role_of(obs) if by_role else None
        rollout.cuts.settle(rollout, value, role)


def has_unit(snapshot: Snapshot) -> bool:
    """Whether values have a unit yet; older checkpoints had one from the first update on."""
    return bool(snapshot.meta.get("has_unit", snapshot.meta["update"] > 0))
