"""PPO by self-play: rollout, advantages, loss and update, in the order in which they run."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.config import NetConfig, PPOConfig
from sparring.errors import ConfigError, SparringError
from sparring.learn.advantage import Assembler
from sparring.learn.rollout import Earned, Part, Phases, Rollout, parts_of
from sparring.nets.distribution import Sampler, played, weigh
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.pools.native import LEARNER
from sparring.pools.protocol import GamePool

SCALE_MEMORY = 0.9
"""Share of the old value scale that an update keeps. Returns may shrink tenfold in the first
seconds of a run; values that are measured in the old unit meanwhile hardly learn."""


class DivergedError(SparringError):
    """A loss that is not a number. The weights are those before it."""


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
    log_prob, entropy_each = weigh(logits, mask, action)
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    policy = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    value = value.float()
    if value_clip:
        near = old_value + (value - old_value).clamp(-value_clip, value_clip)
        value_loss = torch.max((value - returns) ** 2, (near - returns) ** 2).mean()
    else:
        value_loss = ((value - returns) ** 2).mean()
    entropy = entropy_each.mean()
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
        self.net = make_net(pool.rules, net, threads=threads).to(self.device)
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.assembler = Assembler(pool.rules, config.games, config.steps, learner=LEARNER)
        self.rollout = Rollout(pool, self.assembler, config.steps, self.device)
        self.sampler = Sampler(seed)
        self.opponents: dict[int, Net] = {}
        """Frozen networks by policy id; every line-up member above 0 needs one."""
        self.updates = 0
        self.decisions = 0
        self.samples = 0
        self.phases = Phases()
        self.bf16 = config.bf16 and self.device.type == "cuda"
        self.compiled: Any = self.net
        if config.compile and self.device.type == "cuda":
            self.compiled = torch.compile(self.net, dynamic=True)
        pool.reset()
        self.parts = parts_of(pool)

    def iterate(self, progress: float) -> list[dict[str, float]]:
        """Play a rollout and learn from it; returns what was earned and learned.

        A list of one: the learner on a GPU has several members.
        """
        earned = self.collect()
        return [{**self.update(progress), **{f"charts/{k}": v for k, v in earned.items()}}]

    def counts(self) -> list[tuple[int, int]]:
        """Decisions made and samples learned from so far."""
        return [(self.decisions, self.samples)]

    # Rollout

    def collect(self) -> dict[str, float]:
        """Play `steps` steps and store every row; return what the finished games earned.

        With several slots the games of one step while the network answers those of another.
        """
        self.rollout.final_value.fill(np.nan)
        earned = Earned()
        with best_matmul(self.device, self.net):
            for step in range(self.config.steps):
                for part in self.parts:
                    if step:
                        self._receive(step - 1, part, earned)
                    self._ask(step, part)
            for part in self.parts:
                self._receive(self.config.steps - 1, part, earned)
        return earned.stats()

    def _ask(self, step: int, part: Part) -> None:
        """Store the rows of a part, choose their actions and hand them over."""
        rollout, batch, rows = self.rollout, part.batch, part.rows
        at = self._places(step, part)
        with self.phases("stepping"):
            rollout.obs[at], rollout.mask[at] = batch.obs, batch.mask
            rollout.seat[step, rows], rollout.role[step, rows] = batch.seat, batch.role
            rollout.policy[step, rows] = batch.policy
            self.decisions += int((batch.policy >= 0).sum())
        with self.phases("inference"):
            self._act(step, part)
        if len(self.parts) > 1:
            with self.phases("stepping"):
                self.pool.send(self._played(at), part.slot)

    def _receive(self, step: int, part: Part, earned: Earned) -> None:
        """Wait for the games of a part and store what the step brought."""
        rollout, games = self.rollout, part.games
        with self.phases("stepping"):
            if len(self.parts) > 1:
                batch = self.pool.recv(part.slot)
            else:
                batch = self.pool.step(self._played(self._places(step, part)))
            part.batch = batch
            rollout.reward[step, games], rollout.skipped[step, games] = batch.reward, batch.skipped
            rollout.terminated[step, games] = batch.terminated
            rollout.truncated[step, games] = batch.truncated
            earned.add(batch)
        if batch.truncated.any():
            with self.phases("inference"):
                self._value_cuts(step, part)

    def _played(self, at: slice) -> npt.NDArray[Any]:
        """The actions at these places as the games take them."""
        return played(self.rollout.action[at], squash=self.net.config.squash)

    def _places(self, step: int, part: Part) -> slice:
        """Where the rows of a part lie in the rollout."""
        first = self.assembler.carried + step * self.pool.num_games * self.pool.rules.rows
        return slice(first + part.rows.start, first + part.rows.stop)

    @torch.no_grad()
    def _act(self, step: int, part: Part) -> None:
        """Choose an action for every row: one batched forward per policy."""
        rollout, at = self.rollout, self._places(step, part)
        policy = rollout.policy[step, part.rows]
        for member in np.unique(policy[policy >= 0]):
            chosen = policy == member
            everyone = bool(chosen.all())
            rows = np.arange(len(policy)) if everyone else np.flatnonzero(chosen)
            obs = rollout.obs[at] if everyone else rollout.obs[at][rows]
            mask = rollout.mask[at] if everyone else rollout.mask[at][rows]
            net = self.net if member == LEARNER else self.opponents[int(member)]
            logits, value = self._forward(net, torch.from_numpy(obs))
            action, log_prob = self.sampler.draw(
                logits, mask, rollout=self.updates, step=step, rows=part.rows.start + rows
            )
            places = at.start + rows
            rollout.action[places], rollout.log_prob[places] = action, log_prob
            rollout.value[places] = (value.float() * net.value_scale).cpu().numpy()

    def _forward(self, net: Net, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Run a network on the device; on a GPU in bf16 if the configuration says so."""
        on_device = obs.to(self.device, non_blocking=True)
        run = self.compiled if net is self.net else net
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            out: tuple[Tensor, Tensor] = run(on_device)
        return out

    @torch.no_grad()
    def _value_cuts(self, step: int, part: Part) -> None:
        """Estimate what cut games would still have paid the seats that were to move."""
        batch, rules = part.batch, self.pool.rules
        final_value = self.rollout.final_value[step, part.games]
        cut = np.flatnonzero(batch.truncated[batch.final_game])
        games = batch.final_game[cut]
        movers = movers_of(rules, batch.final_mask[cut])
        place, seat = np.nonzero(movers)
        obs = torch.from_numpy(batch.final_obs[cut[place], seat])
        value = (self._forward(self.net, obs)[1].float() * self.net.value_scale).cpu().numpy()
        final_value[games[place], seat] = value
        over = getattr(batch, "final_over", None)
        if over is not None:  # a foreign env: seats that were out before the cut get nothing
            place, seat = np.nonzero(over[cut])
            final_value[games[place], seat] = 0.0
        elif rules.seats == 2:  # what one seat wins the other loses
            alone = movers.sum(1)[place] == 1
            final_value[games[place][alone], 1 - seat[alone]] = -value[alone]

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
        with self.phases("update"), best_matmul(self.device, self.net):
            key = np.array([self.seed % 2**64, self.updates], np.uint64)  # a list loses digits
            order = np.random.Generator(np.random.Philox(key=key))
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
        logits, value = self._forward(self.net, part["obs"])
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


def movers_of(rules: Any, mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether each seat was to move when games were cut, by their last masks [games, seats, A]."""
    if rules.box:  # there are no masks; known only where all seats move at once
        return np.full(mask.shape[:2], rules.rows == rules.seats)
    moves: npt.NDArray[np.bool_] = np.any(mask, axis=2)
    return moves


def mix(start: float, end: float, progress: float) -> float:
    """A straight line from start to end."""
    return start + (end - start) * min(max(progress, 0.0), 1.0)


@contextmanager
def best_matmul(device: torch.device, net: Net) -> Iterator[None]:
    """On Arm CPUs oneDNN costs products 4 to 6 % here against the BLAS that torch has besides.

    Convolutions are faster with it.
    """
    before = bool(torch.backends.mkldnn.enabled)
    switch = device.type == "cpu" and not net.convolves and platform.machine() == "aarch64"
    if switch:
        set_onednn(False)
    try:
        yield
    finally:
        if switch:
            set_onednn(before)


def set_onednn(enabled: bool) -> None:
    """Switch oneDNN; torch warns about GPUs of another maker on the way, which helps nobody."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.backends.mkldnn.set_flags(enabled)  # type: ignore[no-untyped-call]
