"""Learning from fresh rollouts: what PPO and PQN have in common.

An update plays a rollout, makes targets of it, and passes over it in shuffled minibatches a few
times. Then the rollout is forgotten.
"""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.config import CollectConfig, DQNConfig, NetConfig, PPOConfig
from sparring.learn.hosted import HostedLearner
from sparring.learn.learner import DivergedError, Report, Snapshot
from sparring.learn.mirror import Mirroring, coins
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

Arrays = dict[str, npt.NDArray[Any]]


class Rates(Protocol):
    """What all knobs have."""

    @property
    def lr(self) -> float: ...
    @property
    def max_grad_norm(self) -> float: ...


K = TypeVar("K", bound=Rates)
"""The knobs of a kind: the numbers that schedules may change, as they are in one update."""


class OnPolicy(HostedLearner, Generic[K]):
    """Adds the optimiser, and minibatches of a rollout; kinds add the loss."""

    samples = 0
    """Decisions that were learned from so far."""
    eps: float
    """Adam's."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: PPOConfig | DQNConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Take over a pool. options: those of `HostedLearner`."""
        super().__init__(pool, collect, net, **options)
        self.epochs, self.minibatch = config.epochs, config.minibatch
        lr = config.lr.at(Moment(0, 0.0))
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=lr, eps=self.eps, fused=True)
        self.mirroring = Mirroring.of(pool, collect, self.device)

    def set_settings(self, settings: Any) -> None:
        """Go on with other settings of the algorithm."""
        super().set_settings(settings)
        self.epochs, self.minibatch = settings.epochs, settings.minibatch

    # What kinds add

    @abstractmethod
    def knobs_at(self, moment: Moment) -> K:
        """Read every schedule."""

    @abstractmethod
    def targets(self, knobs: K) -> tuple[npt.NDArray[np.intp], Arrays]:
        """Link the rollout; return the places that are learned from, and targets of each."""

    @abstractmethod
    def tensors(self, samples: npt.NDArray[np.intp], targets: Arrays) -> Arrays:
        """Return what minibatches are picked from: rows and targets."""

    @abstractmethod
    def loss(self, minibatch: Mapping[str, Tensor], knobs: K) -> tuple[Tensor, dict[str, Tensor]]:
        """Return what is descended on, and what curves show."""

    @abstractmethod
    def stats(self, samples: npt.NDArray[np.intp], targets: Arrays, knobs: K) -> dict[str, float]:
        """What curves show besides losses."""

    def far_enough(self, epoch: Sequence[Mapping[str, Tensor]], knobs: K) -> bool:
        """Whether to stop after an epoch."""
        return False

    # Learning

    def iterate(self, progress: float) -> list[Report]:
        """Play a rollout and learn from it; returns what was earned and learned."""
        knobs = self.knobs_at(Moment(self.collector.decisions, progress))
        with self.forward.best_matmul():
            earned = self.collector.collect(self.updates)
            stats = self.update(knobs)
        return [self._report({**stats, **earned})]

    def update(self, knobs: K) -> dict[str, float]:
        """Learn from the rollout."""
        with self.phases("advantage"):
            samples, targets = self.targets(knobs)
        for group in self.optimiser.param_groups:
            group["lr"] = knobs.lr
        with self.phases("transfer"):
            arrays = self.tensors(samples, targets).items()
            data = {name: torch.from_numpy(array).to(self.device) for name, array in arrays}
        logged: list[dict[str, Tensor]] = []
        with self.phases("update"):
            key = np.array([self.seed % 2**64, self.updates], np.uint64)  # a list loses digits
            order = np.random.Generator(np.random.Philox(key=key))
            for number in range(self.epochs):
                if self.mirroring:
                    data["mirrored"] = self._mirrored(len(samples), number)
                shuffled = torch.from_numpy(order.permutation(len(samples))).to(self.device)
                split = torch.split(shuffled, self._minibatch(len(samples)))
                epoch = [self._descend(data, picked, knobs) for picked in split]
                logged += epoch
                if self.far_enough(epoch, knobs):
                    break
        self.samples += len(samples)
        self.updates += 1
        stats = {
            f"losses/{name}": float(torch.stack([x[name].detach() for x in logged]).mean())
            for name in logged[0]
        }
        stats |= self.stats(samples, targets, knobs)
        stats["learning/lr"] = knobs.lr
        stats["learning/optimiser_steps"] = float(len(logged))
        stats["learning/samples"] = float(len(samples))
        stats["learning/decisions"] = float(self.collector.rollout.decisions())
        stats["charts/forced"] = float(self.collector.rollout.skipped.sum())
        with self.phases("stepping"):
            self.collector.carry()
        return stats

    def _mirrored(self, samples: int, epoch: int) -> Tensor:
        """Which samples an epoch sees in the mirror: all that the one before saw plain."""
        return coins(self.seed, self.updates, samples).to(self.device) ^ bool(epoch % 2)

    def _minibatch(self, samples: int) -> int:
        """Equal minibatches, as near to the configured size as the samples allow."""
        return -(-samples // max(1, round(samples / self.minibatch)))

    def _descend(self, data: Mapping[str, Tensor], picked: Tensor, knobs: K) -> dict[str, Tensor]:
        """One optimiser step. A loss that is not finite is never stepped on."""
        minibatch = {name: tensor[picked] for name, tensor in data.items()}
        if self.mirroring:
            self.mirroring.turn(minibatch, minibatch["mirrored"])
        loss, shown = self.loss(minibatch, knobs)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), knobs.max_grad_norm)
        if not torch.isfinite(norm + loss.detach()):
            raise DivergedError(
                f"update {self.updates}: the loss is {loss.item()} and the gradient norm "
                f"{float(norm)} with a learning rate of {knobs.lr:g}"
            )
        self.optimiser.step()
        return {**shown, "grad_norm": norm}

    # Saving

    def notes(self) -> dict[str, Any]:
        """Plain values that a snapshot holds besides its counts."""
        return {}

    def read_notes(self, snapshot: Snapshot) -> None:
        """Go on with `notes` of another moment."""

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what the next update depends on: weights, optimiser, games, open decisions."""
        saved = self._saved()
        tensors = {**saved.tensors, "optimiser": optimiser_tensors(self.optimiser)}
        return replace(saved, tensors=tensors, meta={**saved.meta, **self.notes()})

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""
        self._put_saved(snapshot)
        groups = self.optimiser.state_dict()["param_groups"]
        state = optimiser_state(snapshot)
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.samples = snapshot.meta["samples"]
        self.read_notes(snapshot)

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        collector, kept = self.collector, self.snapshot()
        net, optimiser = (copy.deepcopy(x.state_dict()) for x in (self.net, self.optimiser))
        front = collector.front()
        knobs = self.knobs_at(Moment(collector.decisions, 0.0))
        started = time.perf_counter()
        with self.forward.best_matmul():
            collector.rehearse(self.updates)
            report = self._report(self.update(knobs))
        left = time.perf_counter() - started - sum(self.phases.seconds.values())
        self.phases.seconds["other"] = max(left, 0.0)
        self.net.load_state_dict(net)
        self.optimiser.load_state_dict(optimiser)
        collector.put_front(*front)
        self.updates, self.samples = kept.meta["update"], kept.meta["samples"]
        self.read_notes(kept)
        return [report]


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Copy Adam's memory of every parameter."""
    return {
        f"{index}.{name}": value.detach().cpu().clone()
        for index, kept in optimiser.state_dict()["state"].items()
        for name, value in kept.items()
    }


def optimiser_state(snapshot: Snapshot) -> dict[int, dict[str, Tensor]]:
    """Adam's memory of every parameter, in the order of the parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in snapshot.tensors["optimiser"].items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state
