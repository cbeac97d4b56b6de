"""Slots of a learner for frozen opponents, and the opponent mixes made of them.

A learner has K slots for frozen networks. If the archive has more, the slots hold a sample that
changes over time, so that each policy is met as often as matchmaking wants; see `Slots.assign` and
`mixes`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.league.matchmaking import ArchivedPolicy, Weights, normalized
from sparring.league.players import make_rng

SLOTS_STREAM = 0x5107
"""Random stream of the sampling of slots."""
EXCHANGE_SHARE = 0.25
"""Share of the slots exchanged at a time, so that most keep collecting results."""


@dataclass
class Slot:
    """A place for one frozen network."""

    hash: str | None = None
    greedy: bool = False
    draining: bool = False
    """New games do not use it; it is free once the running ones have ended."""
    fixed: bool = False
    """Holds a policy that the line-ups name and never changes."""
    probability: float = 1.0
    """With which its policy was drawn into a slot."""


class Slots:
    """The slots of a learner, numbered from 1 like policy ids."""

    def __init__(self, count: int) -> None:
        self.slots = [Slot() for _ in range(count)]

    def __getitem__(self, number: int) -> Slot:
        if not 1 <= number <= len(self.slots):
            raise SparringError(f"slot {number} is outside 1..{len(self.slots)}")
        return self.slots[number - 1]

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def policies(self) -> set[str]:
        """Hashes of the policies in slots, draining ones included: the archive must keep them."""
        return {slot.hash for slot in self.slots if slot.hash is not None}

    @property
    def num_shared(self) -> int:
        """Number of slots that past selves share."""
        return sum(not slot.fixed for slot in self.slots)

    def active(self) -> dict[int, Slot]:
        """Slots of past selves that new games may use, by number."""
        return {
            number: slot
            for number, slot in enumerate(self.slots, start=1)
            if slot.hash is not None and not slot.draining and not slot.fixed
        }

    def fix(self, number: int, policy: str, *, greedy: bool = False) -> None:
        if self[number].hash is not None:
            raise SparringError(f"slot {number} is taken by {self[number].hash}")
        self.slots[number - 1] = Slot(policy, greedy, fixed=True)

    def assign(
        self,
        archive: Sequence[ArchivedPolicy],
        weights: Weights,
        seats_held: npt.ArrayLike,
        *,
        seed: int,
        update: int,
        always: Collection[str] = (),
        exchanged: float = EXCHANGE_SHARE,
        greedy: bool = False,
    ) -> dict[int, str]:
        """Choose the policies of the slots; return those to load now, by slot.

        A policy that leaves drains first: new games do not use it, and a later call fills its slot
        once no game uses it. Policies are drawn with probabilities in proportion to `weights`; the
        newest is always among them. The result depends on the arguments and the current slots
        alone.

        archive, weights: candidates and how often to meet each (`matchmaking.weights`).
        seats_held: [slots + 1], seats of each policy id in running games.
        always: hashes that get a slot in any case, such as the best policy.
        exchanged: share of the slots that may drain at a time, at least one; 0 only fills free
            slots and lets the newest in. Slots of policies that left the archive always drain.
        greedy: whether new policies play greedily.
        """
        counts = np.asarray(seats_held)
        hashes = {policy.hash for policy in archive}
        for slot in self.active().values():
            slot.draining = slot.hash not in hashes
        self._release(counts)
        if not archive:
            return {}
        rng = make_rng(seed, SLOTS_STREAM, update)
        required = self._required(archive, always)
        probabilities = inclusion_probabilities(
            weights, self.num_shared, np.array([policy.hash in required for policy in archive])
        )
        drawn = systematic_sample(probabilities, rng)
        by_hash = {p.hash: float(value) for p, value in zip(archive, probabilities, strict=True)}
        order = [*required, *(archive[i].hash for i in rng.permutation(drawn))]
        target = list(dict.fromkeys(order))[: self.num_shared]
        self._keep(target if exchanged > 0 else required, by_hash)
        self._drain(target, required, counts, rng, exchanged)
        self._release(counts)
        return self._fill(target, by_hash, greedy=greedy)

    def _required(self, archive: Sequence[ArchivedPolicy], always: Collection[str]) -> list[str]:
        """Return the policies that get a slot in any case, newest first."""
        by_age = sorted(archive, key=lambda policy: policy.number, reverse=True)
        hashes = [by_age[0].hash, *(policy.hash for policy in by_age if policy.hash in always)]
        return list(dict.fromkeys(hashes))[: self.num_shared]

    def _release(self, seats_held: npt.NDArray[Any]) -> None:
        """Empty the draining slots that no game uses any more."""
        for number, slot in enumerate(self.slots, start=1):
            if slot.draining and seats_held[number] == 0:
                self.slots[number - 1] = Slot()

    def _keep(self, target: Sequence[str], probabilities: Mapping[str, float]) -> None:
        """Stop draining policies that were drawn again."""
        for slot in self.slots:
            if slot.hash is not None and slot.hash in target and not slot.fixed:
                slot.draining = False
                slot.probability = probabilities[slot.hash]

    def _drain(
        self,
        target: Sequence[str],
        required: Sequence[str],
        seats_held: npt.NDArray[Any],
        rng: np.random.Generator,
        exchanged: float,
    ) -> None:
        """Start draining slots for new policies, as many as `exchanged` allows."""
        candidates = [number for number, slot in self.active().items() if slot.hash not in target]
        rng.shuffle(candidates)
        candidates.sort(key=lambda number: int(seats_held[number] > 0))  # unused ones free at once
        free = sum(slot.hash is None or slot.draining for slot in self.slots)
        draining = sum(slot.draining for slot in self.slots)
        current = {slot.hash for slot in self.slots if not slot.fixed}
        waiting = sum(policy not in current for policy in target)
        urgent = sum(policy not in current for policy in required)
        allowed = max(1, int(exchanged * self.num_shared)) - draining if exchanged > 0 else 0
        count = max(min(waiting - free, allowed), urgent - free, 0)
        for number in candidates[:count]:
            self[number].draining = True

    def _fill(
        self, target: Sequence[str], probabilities: Mapping[str, float], *, greedy: bool
    ) -> dict[int, str]:
        """Put waiting policies into free slots."""
        current = {slot.hash for slot in self.slots if not slot.fixed}
        waiting = [policy for policy in target if policy not in current]
        empty = [number for number in range(1, len(self) + 1) if self[number].hash is None]
        filled = dict(zip(empty, waiting, strict=False))
        for number, policy in filled.items():
            self.slots[number - 1] = Slot(policy, greedy, probability=probabilities[policy])
        return filled

    def state(self) -> dict[str, Any]:
        return {"slots": [asdict(slot) for slot in self.slots]}

    def load(self, state: Mapping[str, Any]) -> None:
        try:
            slots = [Slot(**slot) for slot in state["slots"]]
        except (KeyError, TypeError) as wrong:
            raise SparringError(f"the slots of a league cannot be read: {wrong}") from None
        if len(slots) != len(self.slots):
            raise SparringError(
                f"the league was saved with {len(slots)} slots and has {len(self.slots)} now; "
                f"set league.slots to {len(slots)}"
            )
        self.slots = slots


def inclusion_probabilities(
    weights: Weights, slots: int, required: npt.NDArray[np.bool_]
) -> Weights:
    """Return the probability that each policy is in a slot: in proportion to `weights`, at most 1.

    The sum is the number of slots, or less if fewer policies have a weight. Required ones have 1.
    """
    result = required.astype(np.float64)
    open_ = ~required & (weights > 0)
    while open_.any():
        left = slots - result.sum()
        share = normalized(np.where(open_, weights, 0.0)) * left
        certain = open_ & (share >= 1)
        if not certain.any():
            return np.where(open_, share, result)
        result[certain] = 1.0
        open_ &= ~certain
    return result


def systematic_sample(probabilities: Weights, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw a set that contains each item with exactly its probability (systematic sampling).

    One random offset decides: the running sum of the probabilities passes a whole number there.
    """
    passed = np.floor(np.cumsum(probabilities) + rng.random() + 1e-9)
    return np.flatnonzero(np.diff(passed, prepend=0.0) >= 1)


def mixes(
    slots: Slots,
    archive: Sequence[ArchivedPolicy],
    weights: Weights,
    *,
    recent: Collection[int] = (),
    best: str | None = None,
) -> dict[str, dict[int, float]]:
    """Return the weights of slots in the mixes `past`, `past:N` for every N, and `best`.

    The weights of a mix have the sum 1; an empty mix stands for the learner itself. Policies that
    are rarely in a slot weigh more while they are, so that over time each is met as often as
    wanted. A policy that is wanted less than at its arrival is met less at once.

    recent: every N for which there is a mix `past:N`, the N newest of those in slots.
    best: hash of the policy of the mix `best`; it needs a slot.
    """
    required = np.array([False] * len(archive))
    probabilities = (
        inclusion_probabilities(weights, slots.num_shared, required) if len(archive) else required
    )
    by_hash = {
        policy.hash: (policy.number, float(weight), float(probability))
        for policy, weight, probability in zip(archive, weights, probabilities, strict=True)
    }
    active = {number: slot for number, slot in slots.active().items() if slot.hash in by_hash}
    by_age = sorted(active, key=lambda i: by_hash[str(active[i].hash)][0], reverse=True)
    corrected = {}
    for i, slot in active.items():
        _, weight, probability = by_hash[str(slot.hash)]
        corrected[i] = weight / max(slot.probability, probability) if weight > 0 else 0.0
    result = {"past": slot_weights(by_age, corrected)}
    for count in recent:
        result[f"past:{count}"] = slot_weights(by_age[:count], corrected)
    result["best"] = {i: 1.0 for i in by_age if best is not None and active[i].hash == best}
    return result


def slot_weights(slots: Sequence[int], weights: Mapping[int, float]) -> dict[int, float]:
    """Return the weights of some slots, scaled to the sum 1; zero weights are left out."""
    if not slots:
        return {}
    scaled = normalized(np.array([weights[i] for i in slots]))
    return {i: float(w) for i, w in zip(slots, scaled, strict=True) if w > 0}
