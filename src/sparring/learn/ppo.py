"""PPO by self-play: rollout, advantages, loss and update, in the order in which they run."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import StateError
from sparring.games.rules import Rules
from sparring.learn.collect import Actor, Collector, Sampling
from sparring.learn.forward import Forward
from sparring.learn.learner import DivergedError, Report, Snapshot
from sparring.learn.mirror import Mirroring, coins
from sparring.learn.opponents import SlotActor, check_slot
from sparring.learn.phases import Phases
from sparring.nets.distribution import evaluate_actions
from sparring.nets.grouped import GroupedNet
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.lineups import Pots
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment, Schedule

SCALE_MEMORY = 0.9
"""Share of the old value scale that an update keeps. Returns may shrink tenfold in the first
seconds of a run; values that are measured in the old unit meanwhile hardly learn."""
MOST_UNITS = 3.0
"""Most units that the returns of a rollout measure. Where rewards are rare, returns may grow a
hundredfold in one update; in the old unit their squares would drown everything else."""


def next_unit(before: float, size: float) -> float:
    """The unit of values behind a rollout whose returns have this size."""
    return max(SCALE_MEMORY * before + (1 - SCALE_MEMORY) * size, size / MOST_UNITS)


@dataclass(frozen=True)
class Knobs:
    """The numbers of `PPOConfig` that a schedule may change, as they are in one update.

    In the order of `Knobs` in csrc/cuda.
    """

    lr: float
    entropy: float
    clip: float
    value_clip: float
    value_weight: float
    max_grad_norm: float
    target_kl: float
    gamma: float
    gae_lambda: float

    @classmethod
    def at(cls, config: PPOConfig, moment: Moment) -> Knobs:
        """Read every schedule."""
        schedules: dict[str, Schedule] = {f.name: getattr(config, f.name) for f in fields(cls)}
        return cls(**{name: schedule.at(moment) for name, schedule in schedules.items()})


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


class PPO:
    """The learner: owns the network, the optimiser and the collector that plays the pool."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: PPOConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        device: str = "cpu",
        by_role: bool = False,
        slots: int = 0,
        actors: Mapping[int, Actor] | None = None,
    ) -> None:
        """Take over a pool.

        slots: room for frozen networks of the same kind, see `learn.opponents`.
        actors: who else plays, by policy id.
        """
        torch.manual_seed(seed)
        self.pool, self.config, self.seed = pool, config, seed
        self.device = torch.device(device)
        self.net = make_net(pool.rules, net, memory=pool.memory_bytes, threads=threads)
        self.net.to(self.device)
        first = Knobs.at(config, Moment(0, 0.0))
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=first.lr, eps=1e-5, fused=True)
        self.phases = Phases()
        self.forward = Forward(self.net, self.device, collect)
        self.mirroring = Mirroring.of(pool, collect, self.device)
        self.collector = Collector(
            pool,
            collect,
            Sampling(self.forward, seed),
            ("log_prob", "value"),
            self.phases,
            squash=net.squash,
            pinned=self.device.type == "cuda",
            by_role=by_role,
        )
        self.collector.actors |= actors or {}
        self._slots: SlotActor | None = None
        if slots:
            frozen = GroupedNet(pool.rules, net, slots, memory=pool.memory_bytes, threads=threads)
            self._slots = self.collector.slots = SlotActor(frozen, slots, seed)
        self.updates = 0
        self.samples = 0
        self.has_unit = False
        """Whether a rollout has paid anything yet; the first that does sets the unit of values."""

    @property
    def rules(self) -> Rules:
        """The game."""
        return self.pool.rules

    @property
    def exact(self) -> bool:
        """Whether a snapshot holds the games in flight."""
        return self.collector.exact

    def iterate(self, progress: float) -> list[Report]:
        """Play a rollout and learn from it; returns what was earned and learned."""
        knobs = Knobs.at(self.config, Moment(self.collector.decisions, progress))
        with self.forward.best_matmul():
            earned = self.collector.collect(self.updates)
            stats = self.update(knobs)
        return [self._report({**stats, **earned})]

    def _report(self, stats: dict[str, float]) -> Report:
        collector = self.collector
        counts = collector.decisions, self.samples, collector.opponent_rows
        earned = collector.earned.episodes()
        return Report(stats, *counts, episodes=earned, met=collector.met())

    def update(self, knobs: Knobs) -> dict[str, float]:
        """Learn from the rollout."""
        with self.phases("advantage"):
            samples, advantage, returns = self._targets(knobs)
        for group in self.optimiser.param_groups:
            group["lr"] = knobs.lr
        with self.phases("transfer"):
            data = self._tensors(samples, advantage, returns)
        logged: list[Losses] = []
        norms: list[Tensor] = []
        with self.phases("update"):
            key = np.array([self.seed % 2**64, self.updates], np.uint64)  # a list loses digits
            order = np.random.Generator(np.random.Philox(key=key))
            for epoch in range(self.config.epochs):
                if self.mirroring:
                    data["mirrored"] = self._mirrored(len(samples), epoch)
                shuffled = torch.from_numpy(order.permutation(len(samples))).to(self.device)
                kl = []
                for picked in torch.split(shuffled, self._minibatch(len(samples))):
                    losses, norm = self._descend(data, picked, knobs)
                    logged.append(losses)
                    norms.append(norm)
                    kl.append(losses.approx_kl)
                if knobs.target_kl and float(torch.stack(kl).mean()) > knobs.target_kl:
                    break
        self.samples += len(samples)
        self.updates += 1
        stats = {
            f"losses/{name}": float(torch.stack([getattr(x, name).detach() for x in logged]).mean())
            for name in LOGGED
        }
        left = float(np.var(returns - self.collector.rollout.columns["value"][samples]))
        variance = float(np.var(returns))
        stats["losses/explained_variance"] = 1 - left / variance if variance > 0 else 0.0
        stats["losses/grad_norm"] = float(torch.stack(norms).mean())
        stats["learning/lr"], stats["learning/entropy_weight"] = knobs.lr, knobs.entropy
        stats["learning/value_scale"] = float(self.net.value_scale)
        stats["learning/optimiser_steps"] = float(len(logged))
        stats["learning/samples"] = float(len(samples))
        stats["learning/decisions"] = float(self.collector.rollout.decisions())
        stats["charts/forced"] = float(self.collector.rollout.skipped.sum())
        with self.phases("stepping"):
            self.collector.carry()
        return stats

    def _targets(self, knobs: Knobs) -> tuple[npt.NDArray[np.intp], Any, Any]:
        """Advantages and returns of every decision that is complete, and the value unit."""
        value = self.collector.rollout.columns["value"]
        self._value_cuts()
        samples = self.collector.link(knobs.gamma, self.config.gamma_into)
        advantage = self.collector.transitions.advantages(value, knobs.gae_lambda)[samples]
        returns = advantage + value[samples]
        if self.collector.transitions.paid[samples].any():
            self._choose_unit(float(np.sqrt(np.mean(returns**2))))
        return samples, advantage, returns

    def _choose_unit(self, size: float) -> None:
        """Measure values in the size of the returns; without any payment there is none."""
        if not np.isfinite(size):
            return  # the loss will not be finite either, and the weights are to stay
        size = max(size, 1e-6)
        before = float(self.net.value_scale)
        self.net.rescale_values(next_unit(before, size) if self.has_unit else size)
        self.has_unit = True

    @torch.no_grad()
    def _value_cuts(self) -> None:
        """Estimate what cut games would still have paid the seats that were to move."""
        rollout = self.collector.rollout
        if rollout.cuts.obs:
            obs = torch.from_numpy(np.concatenate(rollout.cuts.obs))
            value = self.net.true_values(self.forward(obs)).cpu().numpy()
            rollout.cuts.settle(rollout, value)

    def _tensors(
        self, samples: npt.NDArray[np.intp], advantage: Any, returns: Any
    ) -> dict[str, Tensor]:
        """The samples on the device; advantages normalised, values in units of the value scale."""
        scale = float(self.net.value_scale)
        spread = float(advantage.std()) + 1e-8
        arrays = {name: array[samples] for name, array in self.collector.rollout.rows().items()}
        arrays["value"] = arrays["value"] / scale
        arrays["returns"] = (returns / scale).astype(np.float32)
        arrays["advantage"] = ((advantage - advantage.mean()) / spread).astype(np.float32)
        return {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}

    def _mirrored(self, samples: int, epoch: int) -> Tensor:
        """Which samples an epoch sees in the mirror: all that the one before saw plain."""
        return coins(self.seed, self.updates, samples).to(self.device) ^ bool(epoch % 2)

    def _minibatch(self, samples: int) -> int:
        """Equal minibatches, as near to the configured size as the samples allow."""
        return -(-samples // max(1, round(samples / self.config.minibatch)))

    def _descend(
        self, data: Mapping[str, Tensor], picked: Tensor, knobs: Knobs
    ) -> tuple[Losses, Tensor]:
        """One optimiser step. A loss that is not finite is never stepped on."""
        minibatch = {name: tensor[picked] for name, tensor in data.items()}
        if self.mirroring:
            self.mirroring.turn(minibatch, minibatch["mirrored"])
        heads = self.forward(minibatch["obs"])
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
            mirrored=minibatch.get("mirrored"),
        )
        self.optimiser.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), knobs.max_grad_norm)
        if not torch.isfinite(norm + losses.total.detach()):
            raise DivergedError(
                f"update {self.updates}: the loss is {losses.total.item()} and the gradient norm "
                f"{float(norm)} with a learning rate of {knobs.lr:g}"
            )
        self.optimiser.step()
        return losses, norm

    # Frozen opponents, as `learn.opponents.TakesOpponents` has them

    @property
    def slots(self) -> int:
        """How many there are."""
        return self._slots.slots if self._slots else 0

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network of the learner's own kind into a slot."""
        check_slot(slot, self.slots)
        assert self._slots
        self._slots.put(slot, weights, greedy=greedy)

    def set_pots(self, pots: Pots, member: int = 0) -> None:
        """Say who is drawn from every pot from now on, when games begin."""
        self.pool.set_pots(pots)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running."""
        return self.pool.seated(self.slots + 1)

    # Saving and playing

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what the next update depends on: weights, optimiser, games, open decisions."""
        rows, blobs = self.collector.state()
        optimiser = {
            f"{index}.{name}": value.detach().cpu().clone()
            for index, kept in self.optimiser.state_dict()["state"].items()
            for name, value in kept.items()
        }
        net = {name: value.detach().cpu().clone() for name, value in self.net.state_dict().items()}
        return Snapshot(
            tensors={"net": net, "optimiser": optimiser, "carried": rows},
            blobs=blobs,
            meta={
                "update": self.updates,
                "decisions": self.collector.decisions,
                "samples": self.samples,
                "opponent_rows": self.collector.opponent_rows,
                "has_unit": self.has_unit,
                **self.net.describe(),
            },
        )

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""
        try:
            self.net.load_state_dict(snapshot.tensors["net"])
        except RuntimeError as wrong:
            first = str(wrong).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds another network: {first}") from None
        groups = self.optimiser.state_dict()["param_groups"]
        state = optimiser_state(snapshot)
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.collector.load_state(snapshot.tensors["carried"], snapshot.blobs, snapshot.meta)
        self.updates, self.samples = snapshot.meta["update"], snapshot.meta["samples"]
        self.has_unit = has_unit(snapshot)

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        return Policy(self.rules, self.net.twin(), name=f"update {self.updates}")

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        collector, counts = self.collector, (self.updates, self.samples, self.has_unit)
        net, optimiser = (copy.deepcopy(x.state_dict()) for x in (self.net, self.optimiser))
        front = collector.front()
        knobs = Knobs.at(self.config, Moment(collector.decisions, 0.0))
        started = time.perf_counter()
        with self.forward.best_matmul():
            collector.rehearse(self.updates)
            report = self._report(self.update(knobs))
        left = time.perf_counter() - started - sum(self.phases.seconds.values())
        self.phases.seconds["other"] = max(left, 0.0)
        self.net.load_state_dict(net)
        self.optimiser.load_state_dict(optimiser)
        collector.put_front(*front)
        self.updates, self.samples, self.has_unit = counts
        return [report]


def has_unit(snapshot: Snapshot) -> bool:
    """Whether values have a unit yet; older checkpoints had one from the first update on."""
    return bool(snapshot.meta.get("has_unit", snapshot.meta["update"] > 0))


def optimiser_state(snapshot: Snapshot) -> dict[int, dict[str, Tensor]]:
    """Adam's memory of every parameter, in the order of the parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in snapshot.tensors["optimiser"].items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state
