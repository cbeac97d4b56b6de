"""Learning from fresh rollouts: what PPO, PQN and hierarchies have in common.

An update plays a rollout, makes targets of it, and passes over it in shuffled minibatches a few
times. Then the rollout is forgotten.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, DQNConfig, HeadsConfig, NetConfig, PPOConfig
from sparring.learn.descent import Descent, K, mean_losses, shuffling
from sparring.learn.hosted import HostedLearner
from sparring.learn.learner import DivergedError, Report, Snapshot
from sparring.learn.normalising import take_in_rows
from sparring.learn.steps import Shown, state_of
from sparring.learn.terms import Dealt, OwnRows, Term, weighing
from sparring.learn.together import ALONE, Together
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

Arrays = dict[str, npt.NDArray[Any]]
OPTIMISER = "optimiser"
"""What snapshots call the memory of an optimiser; of several, with a name behind it."""
OWN_ROWS = 1 << 10
"""Rows of terms are shuffled by numbers of their own: as if there were so many networks more."""
Ks = TypeVar("Ks")
"""All knobs of a learner."""


class FromRollouts(HostedLearner, Generic[Ks]):
    """Plays and learns in turns; saves whatever optimisers it has."""

    samples = 0
    """Decisions that were learned from so far."""
    descents: dict[str, Descent]
    """Networks that are improved, by what snapshots call their optimisers."""
    together: Together = ALONE
    """With whom it learns."""

    # What kinds add

    @abstractmethod
    def knobs_at(self, moment: Moment) -> Ks:
        """Read every schedule."""

    @abstractmethod
    def learn(self, knobs: Ks) -> dict[str, float]:
        """Learn from the rollout; return what curves show."""

    def notes(self) -> dict[str, Any]:
        """Plain values that a snapshot holds besides its counts."""
        return {}

    def read_notes(self, snapshot: Snapshot) -> None:
        """Go on with `notes` of another moment."""

    # Learning

    def join(self, together: Together) -> None:
        """Learn as one with others from now on."""
        self.together = together
        for descent in self.descents.values():
            descent.together = together

    def iterate(self, progress: float) -> list[Report]:
        """Play a rollout and learn from it; returns what was earned and learned."""
        moment = Moment(int(self.together.total(self.collector.decisions)), progress)
        knobs = self.knobs_at(moment)
        for term in self.terms:
            term.turn(moment)
        with self.forward.best_matmul():
            earned = self.collector.collect(self.updates)
            stats = self.update(knobs)
        return [self._report({**stats, **earned})]

    def update(self, knobs: Ks) -> dict[str, float]:
        """Learn from the rollout, and keep the decisions that are still open."""
        try:
            stats = self.learn(knobs)
        except DivergedError as wrong:
            raise DivergedError(f"update {self.updates}: {wrong}") from None
        take_in_rows(self.net, self.collector)  # only now: it was played and learned as it was
        self.samples += int(stats["learning/samples"])
        self.updates += 1
        stats["learning/decisions"] = float(self.collector.rollout.decisions())
        stats["charts/forced"] = float(self.collector.rollout.skipped.sum())
        with self.phases("stepping"):
            self.collector.carry()
        return stats

    def make_terms(self, heads: HeadsConfig | None) -> list[Term]:
        """Those of heads, and of decisions that are seen in hindsight."""
        return [*super().make_terms(heads), *(one.term() for one in self.transforms.anew)]

    def pass_over(
        self,
        descent: Descent,
        samples: npt.NDArray[np.intp],
        arrays: Arrays,
        knobs: Any,
        network: int = 0,
        **options: Any,
    ) -> dict[str, float]:
        """Improve a network with all terms and transforms; return what curves show of it.

        network: its number among several. options: of `Descent.passes`.
        """
        for term in weighing(self.terms):
            arrays |= term.columns(self, samples)
        data, own = self.to_device(arrays), self.own_rows(samples, network)
        with self.phases("update"):
            order = shuffling(self.seed, self.updates, network)
            logged = descent.passes(
                data,
                knobs,
                order,
                update=self.updates,
                turning=self.transforms.turning,
                own=list(own.values()),
                **options,
            )
        stats = {f"losses/{name}": mean for name, mean in mean_losses(logged).items()}
        stats |= {
            "learning/lr": knobs.lr,
            "learning/optimiser_steps": float(len(logged)),
            "learning/samples": float(len(samples)),
        }
        return stats | {f"learning/{name}": float(len(dealt)) for name, dealt in own.items()}

    def own_rows(self, samples: npt.NDArray[np.intp], network: int = 0) -> dict[str, Dealt]:
        """Rows that terms bring along, by what curves call their number."""
        found = {}
        for term in weighing(self.terms):
            if isinstance(term, OwnRows):
                with self.phases("advantage"):
                    rows = term.rows(self, samples)
                order = shuffling(self.seed, self.updates, OWN_ROWS + network)
                found[term.counted] = Dealt(term.name, self.to_device(rows), order)
        return found

    def to_device(self, arrays: Arrays) -> dict[str, Tensor]:
        """What minibatches are picked from, where the network is."""
        with self.phases("transfer"):
            return {name: torch.from_numpy(a).to(self.device) for name, a in arrays.items()}

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what the next update depends on: weights, optimiser, games, open decisions."""
        saved = self._saved()
        memories = {name: descent.tensors() for name, descent in self.descents.items()}
        tensors = {**saved.tensors, **memories}
        return replace(saved, tensors=tensors, meta={**saved.meta, **self.notes()})

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""
        self._put_saved(snapshot)
        for name, descent in self.descents.items():
            descent.load(snapshot.tensors.get(name, {}))
        self.samples = snapshot.meta["samples"]
        self.read_notes(snapshot)

    def rehearse(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        collector, kept = self.collector, self.snapshot()
        front = collector.front()
        knobs = self.knobs_at(Moment(collector.decisions, 0.0))
        started = time.perf_counter()
        with self.forward.best_matmul():
            collector.rehearse(self.updates)
            report = self._report(self.update(knobs))
        left = time.perf_counter() - started - sum(self.phases.seconds.values())
        self.phases.seconds["other"] = max(left, 0.0)
        self.net.load_state_dict(kept.tensors["net"])
        for name, descent in self.descents.items():
            descent.load(kept.tensors[name])
        collector.put_front(*front)
        self.updates, self.samples = kept.meta["update"], kept.meta["samples"]
        self.read_notes(kept)
        return [report]


class OnPolicy(FromRollouts[K]):
    """One network for all decisions; kinds add the targets and the loss."""

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
        self.descent = self.make_descent(config)
        self.descents = {OPTIMISER: self.descent}

    # What kinds add

    def make_descent(self, config: PPOConfig | DQNConfig) -> Descent:
        """Return what improves the network."""
        return Descent(self.net, config, eps=self.eps)

    @abstractmethod
    def targets(self, knobs: K) -> tuple[npt.NDArray[np.intp], Arrays]:
        """Link the rollout; return the places that are learned from, and targets of each."""

    @abstractmethod
    def tensors(self, samples: npt.NDArray[np.intp], targets: Arrays) -> Arrays:
        """Return what minibatches are picked from: rows and targets."""

    @abstractmethod
    def loss(
        self, minibatch: Mapping[str, Tensor], knobs: K
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return what is descended on, and what curves show."""

    @abstractmethod
    def stats(self, samples: npt.NDArray[np.intp], targets: Arrays, knobs: K) -> dict[str, float]:
        """What curves show besides losses."""

    def far_enough(self, epoch: Sequence[Shown], knobs: K) -> bool:
        """Whether to stop after an epoch."""
        return False

    # Learning

    def learn(self, knobs: K) -> dict[str, float]:
        """Learn from the rollout."""
        with self.phases("advantage"):
            samples, targets = self.targets(knobs)
        stats = self.pass_over(
            self.descent,
            samples,
            self.tensors(samples, targets),
            knobs,
            loss=self.loss,
            far_enough=self.far_enough,
        )
        stats |= self.stats(samples, targets, knobs)
        stats["learning/native"] = float(self.forward.native is not None)
        return stats


def optimiser_state(snapshot: Snapshot, name: str = OPTIMISER) -> dict[int, dict[str, Tensor]]:
    """Adam's memory of every parameter, in the order of the parameters."""
    return state_of(snapshot.tensors.get(name, {}))
