"""Masked PPO by self-play: rollout, advantages, loss and update, in the order in which they run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.config import NetConfig, PPOConfig
from sparring.errors import ConfigError, SparringError
from sparring.learn.advantage import Assembler
from sparring.nets.distribution import Sampler, entropy_of, log_prob_of, masked_log_probs
from sparring.nets.mlp import PolicyNet
from sparring.pools.native import LEARNER
from sparring.pools.protocol import GamePool

SCALE_MEMORY = 0.99
"""Share of the old value scale that an update keeps."""


class DivergedError(SparringError):
    """A loss that is not a number. The weights are those before it."""


@dataclass
class Phases:
    """Seconds spent, by phase. Always on: two clock reads per phase."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Any:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Return what was counted and start anew."""
        taken, self.seconds = self.seconds, {}
        return taken


class Rollout:
    """The rows of a rollout, behind the decisions carried over from the one before."""

    def __init__(self, pool: GamePool, assembler: Assembler, steps: int) -> None:
        rules, places = pool.rules, assembler.places
        games, rows = pool.num_games, pool.num_games * pool.rules.rows
        self.obs = np.zeros((places, rules.obs_bytes), np.uint8)
        self.mask = np.zeros((places, rules.actions), np.uint8)
        self.action = np.zeros(places, np.int32)
        self.log_prob = np.zeros(places, np.float32)
        self.value = np.zeros(places, np.float32)
        self.seat = np.zeros((steps, rows), np.int8)
        self.role = np.zeros((steps, rows), np.int8)
        self.policy = np.zeros((steps, rows), np.int16)
        self.reward = np.zeros((steps, games, rules.seats, len(rules.roles)), np.float32)
        self.skipped = np.zeros((steps, games, rules.seats), np.uint16)
        self.terminated = np.zeros((steps, games), np.bool_)
        self.truncated = np.zeros((steps, games), np.bool_)
        self.final_value = np.full((steps, games, rules.seats), np.nan, np.float32)

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that have one entry per place."""
        names = ("obs", "mask", "action", "log_prob", "value")
        return {name: getattr(self, name) for name in names}

    def carry(self, assembler: Assembler) -> None:
        """Move the rows of decisions that are still open to the front."""
        rows = assembler.open_rows()
        kept = rows >= 0
        for array in self.rows().values():
            array[: assembler.carried][kept] = array[rows[kept]]


@dataclass(frozen=True)
class Losses:
    """The terms of the PPO loss on one minibatch."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


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
    clip: float,
    value_clip: float,
    value_weight: float,
    entropy_weight: float,
) -> Losses:
    """The clipped surrogate, the squared value error and the entropy bonus."""
    log_probs = masked_log_probs(logits, mask)
    log_ratio = log_prob_of(log_probs, action) - old_log_prob
    ratio = log_ratio.exp()
    policy = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    value = value.float()
    if value_clip:
        near = old_value + (value - old_value).clamp(-value_clip, value_clip)
        value_loss = torch.max((value - returns) ** 2, (near - returns) ** 2).mean()
    else:
        value_loss = ((value - returns) ** 2).mean()
    entropy = entropy_of(log_probs).mean()
    total = policy + value_weight * value_loss - entropy_weight * entropy
    with torch.no_grad():
        approx_kl = ((ratio - 1) - log_ratio).mean()
        clip_fraction = ((ratio - 1).abs() > clip).float().mean()
    return Losses(total, policy, value_loss, entropy, approx_kl, clip_fraction)


class PPO:
    """The learner: owns the pool, the network, the optimiser and the rollout."""

    def __init__(
        self,
        pool: GamePool,
        config: PPOConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        device: str = "cpu",
    ) -> None:
        if pool.num_games != config.games:
            raise ConfigError(f"the pool has {pool.num_games} games, the config {config.games}")
        torch.manual_seed(seed)
        self.pool, self.config, self.seed = pool, config, seed
        self.device = torch.device(device)
        self.net = PolicyNet(pool.rules, net, threads=threads).to(self.device)
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.assembler = Assembler(pool.rules, config.games, config.steps, learner=LEARNER)
        self.rollout = Rollout(pool, self.assembler, config.steps)
        self.sampler = Sampler(seed)
        self.opponents: dict[int, PolicyNet] = {}
        """Frozen networks by policy id; every line-up member above 0 needs one."""
        self.updates = 0
        self.decisions = 0
        self.samples = 0
        self.phases = Phases()
        self.batch = pool.reset()

    # Rollout

    def collect(self) -> dict[str, float]:
        """Play `steps` steps and store every row; return what the finished games earned."""
        rollout, carried = self.rollout, self.assembler.carried
        rollout.final_value.fill(np.nan)
        rows = self.pool.num_games * self.pool.rules.rows
        scores: list[npt.NDArray[np.float32]] = []
        lengths: list[npt.NDArray[np.int32]] = []
        for step in range(self.config.steps):
            batch = self.batch
            at = slice(carried + step * rows, carried + (step + 1) * rows)
            with self.phases("stepping"):
                rollout.obs[at], rollout.mask[at] = batch.obs, batch.mask
                rollout.seat[step], rollout.role[step] = batch.seat, batch.role
                rollout.policy[step] = batch.policy
            with self.phases("inference"):
                self._act(step, at)
            with self.phases("stepping"):
                batch = self.batch = self.pool.step(rollout.action[at])
                rollout.reward[step], rollout.skipped[step] = batch.reward, batch.skipped
                rollout.terminated[step] = batch.terminated
                rollout.truncated[step] = batch.truncated
                if len(batch.final_game):
                    mine = batch.final_policy == LEARNER
                    scores.append(batch.final_score[mine])
                    lengths.append(batch.final_length.copy())
            if batch.truncated.any():
                with self.phases("inference"):
                    self._value_cuts(step)
            self.decisions += int((batch.policy >= 0).sum())
        stats = {"games": float(sum(len(x) for x in lengths))}
        if scores:
            stats["score"] = float(np.concatenate(scores).mean())
            stats["length"] = float(np.concatenate(lengths).mean())
        return stats

    @torch.no_grad()
    def _act(self, step: int, at: slice) -> None:
        """Choose an action for every row: one batched forward per policy."""
        policy, rollout = self.rollout.policy[step], self.rollout
        for member in np.unique(policy[policy >= 0]):
            chosen = policy == member
            everyone = bool(chosen.all())
            rows = np.arange(len(policy)) if everyone else np.flatnonzero(chosen)
            obs = rollout.obs[at] if everyone else rollout.obs[at][rows]
            mask = rollout.mask[at] if everyone else rollout.mask[at][rows]
            net = self.net if member == LEARNER else self.opponents[int(member)]
            logits, value = net(torch.from_numpy(obs).to(self.device))
            action, log_prob = self.sampler.draw(
                logits, mask, rollout=self.updates, step=step, first_row=int(member) << 20
            )
            places = at.start + rows
            rollout.action[places], rollout.log_prob[places] = action, log_prob
            rollout.value[places] = (value * net.value_scale).cpu().numpy()

    @torch.no_grad()
    def _value_cuts(self, step: int) -> None:
        """Estimate what a cut game would still have paid the seats that were to move."""
        batch, rules = self.batch, self.pool.rules
        for place, game in enumerate(batch.final_game):
            if not batch.truncated[game]:
                continue
            movers = np.flatnonzero(batch.final_mask[place].any(axis=1))
            obs = torch.from_numpy(batch.final_obs[place][movers]).to(self.device)
            value = (self.net(obs)[1] * self.net.value_scale).cpu().numpy()
            self.rollout.final_value[step, game, movers] = value
            over = getattr(batch, "final_over", None)
            if over is not None:  # a foreign env: seats that were out before the cut get nothing
                self.rollout.final_value[step, game, over[place]] = 0.0
            elif rules.seats == 2 and len(movers) == 1:  # what one seat wins the other loses
                self.rollout.final_value[step, game, 1 - movers[0]] = -value[0]

    # Update

    def update(self, progress: float) -> dict[str, float]:
        """Learn from the rollout. `progress` runs from 0 to 1 over the whole run."""
        config = self.config
        with self.phases("advantage"):
            samples, advantage, returns = self._targets()
        lr = config.lr * mix(1.0, config.lr_end, progress)
        entropy_weight = config.entropy * mix(1.0, config.entropy_end, progress)
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        with self.phases("transfer"):
            data = self._tensors(samples, advantage, returns)
        logged: list[Losses] = []
        norms: list[Tensor] = []
        with self.phases("update"):
            order = np.random.Generator(np.random.Philox(key=[self.seed, self.updates]))
            for _ in range(config.epochs):
                shuffled = torch.from_numpy(order.permutation(len(samples))).to(self.device)
                kl = []
                for picked in torch.split(shuffled, self._minibatch(len(samples))):
                    losses, norm = self._descend(data, picked, entropy_weight)
                    logged.append(losses)
                    norms.append(norm)
                    kl.append(losses.approx_kl)
                if config.target_kl and float(torch.stack(kl).mean()) > config.target_kl:
                    break
        self.samples += len(samples)
        self.updates += 1
        stats = {
            f"losses/{name}": float(torch.stack([getattr(x, name).detach() for x in logged]).mean())
            for name in ("policy", "value", "entropy", "approx_kl", "clip_fraction")
        }
        left = float(np.var(returns - self.rollout.value[samples]))
        spread = float(np.var(returns))
        stats["losses/explained_variance"] = 1 - left / spread if spread > 0 else 0.0
        stats["losses/gradient_norm"] = float(torch.stack(norms).mean())
        stats["learning/lr"], stats["learning/entropy_weight"] = lr, entropy_weight
        stats["learning/value_scale"] = float(self.net.value_scale)
        stats["learning/gradient_steps"] = float(len(logged))
        stats["learning/samples"] = float(len(samples))
        with self.phases("stepping"):
            self.rollout.carry(self.assembler)
        return stats

    def _targets(self) -> tuple[npt.NDArray[np.intp], Any, Any]:
        """Advantages and returns of every decision that is complete, and the value unit."""
        rollout = self.rollout
        self.assembler.run(
            seat=rollout.seat,
            role=rollout.role,
            policy=rollout.policy,
            value=rollout.value,
            reward=rollout.reward,
            terminated=rollout.terminated,
            truncated=rollout.truncated,
            final_value=rollout.final_value,
            skipped=rollout.skipped,
            gamma=self.config.gamma,
            lambda_=self.config.lambda_,
            gamma_into=self.config.gamma_into,
        )
        samples = self.assembler.samples()
        if not len(samples):
            raise ConfigError("the rollout completed no decision; raise steps")
        advantage = self.assembler.advantage[samples]
        returns = advantage + rollout.value[samples]
        size = max(float(np.sqrt(np.mean(returns**2))), 1e-6)
        keep = SCALE_MEMORY if self.updates else 0.0
        self.net.rescale_values(keep * float(self.net.value_scale) + (1 - keep) * size)
        return samples, advantage, returns

    def _tensors(
        self, samples: npt.NDArray[np.intp], advantage: Any, returns: Any
    ) -> dict[str, Tensor]:
        """The samples on the device; advantages normalised, values in units of the value scale."""
        scale = float(self.net.value_scale)
        spread = float(advantage.std()) + 1e-8
        arrays = {name: array[samples] for name, array in self.rollout.rows().items()}
        arrays["value"] = arrays["value"] / scale
        arrays["returns"] = (returns / scale).astype(np.float32)
        arrays["advantage"] = ((advantage - advantage.mean()) / spread).astype(np.float32)
        return {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}

    def _minibatch(self, samples: int) -> int:
        """Equal parts, as near to the configured size as the samples allow."""
        return -(-samples // max(1, round(samples / self.config.minibatch)))

    def _descend(
        self, data: Mapping[str, Tensor], picked: Tensor, entropy_weight: float
    ) -> tuple[Losses, Tensor]:
        """One gradient step. A loss that is not finite is never stepped on."""
        part = {name: tensor[picked] for name, tensor in data.items()}
        logits, value = self.net(part["obs"])
        losses = ppo_loss(
            logits,
            value,
            mask=part["mask"],
            action=part["action"],
            old_log_prob=part["log_prob"],
            old_value=part["value"],
            advantage=part["advantage"],
            returns=part["returns"],
            clip=self.config.clip,
            value_clip=self.config.value_clip,
            value_weight=self.config.value_weight,
            entropy_weight=entropy_weight,
        )
        self.optimiser.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), self.config.max_grad_norm)
        if not torch.isfinite(norm + losses.total.detach()):
            raise DivergedError(
                f"update {self.updates}: the loss is {losses.total.item()} and the gradient norm "
                f"{float(norm)}; resume from the last checkpoint with a lower lr "
                f"(now {self.optimiser.param_groups[0]['lr']:g})"
            )
        self.optimiser.step()
        return losses, norm


def mix(start: float, end: float, progress: float) -> float:
    """A straight line from start to end."""
    return start + (end - start) * min(max(progress, 0.0), 1.0)
