"""Gumbel AlphaZero on one page: self-play with search, and learning from what it finds.

An update in the order of execution: simulations, rollout with a search for every decision,
lambda-returns over the roots' values, epochs of minibatches, loss, report. A share of the decisions
is searched fully; the improved policy of those roots is the target of the policy head. The others
get few simulations and give no policy target: games end sooner, and the value head sees more
outcomes (playout cap randomization).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, GumbelConfig, HeadsConfig, NetConfig
from sparring.errors import ConfigError
from sparring.learn.advantages import bootstrap_truncated
from sparring.learn.backends import Backend
from sparring.learn.backends.native import NativeAutograd
from sparring.learn.backends.torch import OPTIMIZER, TorchBackend
from sparring.learn.head_terms import head_terms
from sparring.learn.learner import DivergedError, Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.minibatches import Metrics, RolloutSamples, mean_metrics, shuffle_rng
from sparring.learn.plan import ScheduledValues
from sparring.learn.playing import SelfPlay, update_normalizer
from sparring.learn.process_group import SINGLE
from sparring.learn.searching import FULL, Searching
from sparring.learn.terms import Term, columns_of, losses_of, truth_of
from sparring.learn.transforms import IMPROVED
from sparring.nets.distribution import entropy_of, masked_log_probs
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.policy import Policy
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

EPS = 1e-8
"""Of Adam."""
HAS_VALUE_SCALE = "has_value_scale"
Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]
Rows = Mapping[str, Tensor]


@dataclass(frozen=True)
class GumbelHparams(ScheduledValues):
    """Scheduled values of `GumbelConfig` in one update."""

    simulations: float
    eta: float
    alpha: float
    lr: float
    td_lambda: float
    value_weight: float
    max_grad_norm: float


def gumbel_loss(
    logits: Tensor,
    value: Tensor,
    *,
    mask: Tensor,
    improved: Tensor,
    full: Tensor,
    returns: Tensor,
    value_weight: float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Cross-entropy with the improved policy where the search was full, and squared value error."""
    log_probs, target = masked_log_probs(logits, mask), improved.float()
    finite = log_probs.masked_fill(mask == 0, 0.0)
    searched = full.sum().clamp(min=1)
    policy_loss = -(full * (target * finite).sum(-1)).sum() / searched
    value_loss = ((value.float() - returns) ** 2).mean()
    with torch.no_grad():
        target_entropy = (full * entropy_of(target.log())).sum() / searched
        changed = (full * (target.argmax(-1) != log_probs.argmax(-1))).sum() / searched
    total = policy_loss + value_weight * value_loss
    return total, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "target_entropy": target_entropy,
        "search_changed": changed,
    }


class Gumbel:
    """The learner: a network that is trained on what searches with it find."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: GumbelConfig,
        net: NetConfig,
        *,
        heads: HeadsConfig | None = None,
        **options: Any,
    ) -> None:
        """Play and learn from games that can be searched. options: of `SelfPlay`."""
        assert not pool.rules.box and not pool.memory_bytes
        seed, own = options.get("seed", 0), ("first_row", "threads")
        given = {name: options[name] for name in own if name in options}
        columns: dict[str, npt.DTypeLike] = {
            VALUE: "f4",
            FULL: "f4",
            IMPROVED: ("f2", pool.rules.actions),
        }
        playing = self.playing = SelfPlay(
            pool,
            collect,
            net,
            lambda forward: Searching(forward, pool, seed, **given),
            columns,
            heads=heads,
            **options,
        )
        assert isinstance(playing.actor, Searching)
        self.searching, self.seed = playing.actor, seed
        self.searching.phases = playing.phases
        self.pool, self.rules, self.phases = playing.pool, playing.rules, playing.phases
        self.net, self.forward, self.collector = playing.net, playing.forward, playing.collector
        self.slots, self.put = playing.slots, playing.put
        self.set_mixes, self.seated = playing.set_mixes, playing.seated
        self.exact, self.process_group = playing.collector.exact, SINGLE
        self.terms: list[Term] = head_terms(playing.rules, heads)
        self.collector.rollout.track_truth(truth_of(self.terms))
        native = self.forward.go_native(playing.threads)
        self.optimizer: Backend = TorchBackend(self.net, eps=EPS)
        if native:
            self.optimizer = NativeAutograd(self.forward, eps=EPS)
        self.has_value_scale = False
        self.updates = self.samples = 0
        self.configure(config)

    def configure(self, config: GumbelConfig) -> None:
        self.config = config
        self.searching.configure(config)

    def iterate(self, progress: float) -> list[Report]:
        """Collect a rollout and learn from it."""
        moment = Moment(self.collector.decisions, progress)
        hparams = self.hparams_at(moment)
        for term in self.terms:
            term.set_weight(moment)
        with self.playing.best_matmul():
            rollout_stats = self.collector.collect(self.updates)
            stats = self.update(hparams)
        return [self.playing.report({**stats, **rollout_stats}, self.samples)]

    def hparams_at(self, moment: Moment) -> GumbelHparams:
        """Evaluate all schedules, and set those of the search."""
        hparams = GumbelHparams.at(self.config, moment)
        simulations = round(hparams.simulations)
        self.searching.prepare(simulations, eta=hparams.eta, alpha=hparams.alpha)
        return hparams

    def update(self, hparams: GumbelHparams) -> dict[str, float]:
        """Learn from the rollout; pending transitions stay for the next."""
        rollout, phases = self.collector.rollout, self.phases
        with phases("advantage"):
            samples, arrays = self.batch(*self.lambda_returns(hparams))
        with phases("transfer"):
            device = self.playing.device
            data = {name: torch.from_numpy(one).to(device) for name, one in arrays.items()}
        with phases("update"):
            metrics = self.epochs(data, hparams)
        stats = {f"losses/{name}": mean for name, mean in mean_metrics(metrics).items()}
        stats |= {
            "learning/lr": hparams.lr,
            "learning/simulations": float(self.searching.simulations),
            "learning/full_searches": float(rollout.columns[FULL][samples].sum()),
            "learning/value_scale": float(self.net.value_scale),
            "learning/optimizer_steps": float(len(metrics)),
            "learning/samples": float(len(samples)),
            "learning/native": float(self.forward.native is not None),
            "learning/decisions": float(rollout.decisions()),
            "charts/forced": float(rollout.skipped.sum()),
        }
        update_normalizer(self.net, self.collector)  # acting and learning saw the same numbers
        self.samples += len(samples)
        self.updates += 1
        with phases("stepping"):
            self.collector.keep_pending()
        return stats

    def lambda_returns(self, hparams: GumbelHparams) -> tuple[Indices, Floats]:
        """Return the places of complete transitions, and their lambda-returns over root values."""
        rollout, transitions = self.collector.rollout, self.collector.transitions
        if rollout.truncations.obs:
            bootstrap_truncated(self.playing, by_role=False)
        samples = self.collector.link(self.config.gamma, self.config.gamma_into)
        value = rollout.columns[VALUE]
        return samples, (transitions.advantages(value, hparams.td_lambda) + value)[samples]

    def batch(
        self, samples: Indices, returns: Floats
    ) -> tuple[Indices, dict[str, npt.NDArray[Any]]]:
        """Return the rows of samples and their targets; returns are divided by `value_scale`."""
        if self.collector.transitions.paid[samples].any():
            rms, known = float(np.sqrt(np.mean(returns**2))), self.has_value_scale
            self.has_value_scale = self.net.update_return_scale(rms, known=known)
        for column in columns_of(self.terms):
            column.fill(self, samples, returns)
        arrays = {name: array[samples] for name, array in self.rows().items()}
        arrays["returns"] = (returns / float(self.net.value_scale)).astype(np.float32)
        for term in self.terms:
            arrays |= term.columns(self, samples) if term.weight else {}
        return samples, arrays

    def epochs(self, data: Rows, hparams: GumbelHparams) -> list[Metrics]:
        """Train in epochs of shuffled minibatches; return the metrics of every step."""
        rng, transforms = shuffle_rng(self.seed, self.updates), self.playing.transforms.in_place
        samples = RolloutSamples(data, self.config.minibatch, rng, (), transforms)
        metrics: list[Metrics] = []
        for epoch in range(self.config.epochs):
            for minibatch in samples.epoch(self.updates, epoch, SINGLE):
                try:
                    metrics.append(self.optimizer.step(minibatch, hparams, self.loss, SINGLE))
                except DivergedError as error:
                    raise DivergedError(f"update {self.updates}: {error}") from None
        return metrics

    def loss(self, minibatch: Rows, hparams: GumbelHparams) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a minibatch, all terms included, and its metrics."""
        heads = self.forward(minibatch["obs"])
        total, metrics = gumbel_loss(
            heads[POLICY],
            heads[VALUE],
            mask=minibatch["mask"],
            improved=minibatch[IMPROVED],
            full=minibatch[FULL],
            returns=minibatch["returns"],
            value_weight=hparams.value_weight,
        )
        for term in self.terms:
            if term.weight:
                metrics |= losses_of(term, self.forward, heads, minibatch)
                total = total + term.weight * metrics[term.name]
        return total, metrics

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """Rows of all places."""
        return self.collector.rollout.rows()

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.configure(overrides.settings)
        if overrides.clear_replay:
            raise ConfigError("clear_replay: Gumbel AlphaZero has no replay; leave it out")

    def policy(self, member: int = 0) -> Policy:
        return self.playing.policy(self.updates)

    def snapshot(self, member: int = 0) -> Snapshot:
        saved = self.playing.snapshot(self.updates, self.samples)
        tensors = {**saved.tensors, OPTIMIZER: self.optimizer.tensors()}
        meta = {**saved.meta, HAS_VALUE_SCALE: self.has_value_scale}
        return replace(saved, tensors=tensors, meta=meta)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.playing.restore(snapshot, fresh=not self.updates)
        self.load(snapshot)

    def load(self, snapshot: Snapshot) -> None:
        self.optimizer.load(snapshot.tensors.get(OPTIMIZER, {}))
        self.has_value_scale = bool(snapshot.meta[HAS_VALUE_SCALE])
        self.updates, self.samples = snapshot.meta["update"], snapshot.meta["samples"]

    def dry_run(self) -> list[Report]:
        return [self.playing.dry_run(self, self.hparams_at(Moment(self.collector.decisions, 0.0)))]
