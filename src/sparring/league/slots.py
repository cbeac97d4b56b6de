"""Which archived policies sit in which slots of a learner, and what is in the mixes.

A learner has room for K frozen networks. With more in the archive than that, the slots hold some of
them, drawn so that over time everybody is met as often as the matchmaking wants; see `Slots.assign`
and `mixes`.
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
"""Keeps these lots apart from everything else that a seed decides."""
EXCHANGE_SHARE = 0.25
"""Share of the slots that are exchanged at a time, so that most keep collecting results."""


@dataclass
class Slot:
    """Room for one frozen network."""

    hash: str | None = None
    greedy: bool = False
    draining: bool = False
    """No new game seats it; once the running ones are over, it is free."""
    fixed: bool = False
    """Holds a policy that the line-ups name, for good."""
    chance: float = 1.0
    """How probable it was that its policy was drawn into a slot."""


class Slots:
    """The slots of a learner, numbered from 1 on as policy ids are."""

    def __init__(self, count: int) -> None:
        self.slots = [Slot() for _ in range(count)]

    def __getitem__(self, number: int) -> Slot:
        if not 1 <= number <= len(self.slots):
            raise SparringError(f"slot {number} is outside 1..{len(self.slots)}")
        return self.slots[number - 1]

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def held(self) -> set[str]:
        """The policies that sit in slots or still drain: an archive must not remove them."""
        return {slot.hash for slot in self.slots if slot.hash is not None}

    @property
    def room(self) -> int:
        """How many slots past selves share."""
        return sum(not slot.fixed for slot in self.slots)

    def active(self) -> dict[int, Slot]:
        """The past selves that may be drawn now, by slot."""
        return {
            number: slot
            for number, slot in enumerate(self.slots, start=1)
            if slot.hash is not None and not slot.draining and not slot.fixed
        }

    def hold(self, number: int, policy: str, *, greedy: bool = False) -> None:
        if self[number].hash is not None:
            raise SparringError(f"slot {number} is taken by {self[number].hash}")
        self.slots[number - 1] = Slot(policy, greedy, fixed=True)

    def assign(
        self,
        known: Sequence[ArchivedPolicy],
        wanted: Weights,
        seated: npt.ArrayLike,
        *,
        seed: int,
        update: int,
        always: Collection[str] = (),
        exchanged: float = EXCHANGE_SHARE,
        greedy: bool = False,
    ) -> dict[int, str]:
        """Decide who leaves and who comes in; return the slots to be filled now, with what.

        Whoever leaves drains: it is drawn no more, and its slot is filled by a later call, when no
        game seats it. Who is in the slots in the end was drawn with a probability in proportion to
        `wanted`; the newest is always among them. Everything follows from the arguments and the
        state before.

        known, wanted: who may be met, and how often (`matchmaking.weights`).
        seated: seats that each policy id holds in running games [slots + 1].
        always: others that are to be in a slot, such as the best one.
        exchanged: share of the slots that may drain at a time, at least one; 0 only fills what is
            free and lets the newest in. Slots of policies that are not known any more always drain.
        greedy: how those that come in are to play.
        """
        count = np.asarray(seated)
        known_hashes = {one.hash for one in known}
        for slot in self.active().values():
            slot.draining = slot.hash not in known_hashes
        self._release(count)
        if not known:
            return {}
        lots = make_rng(seed, SLOTS_STREAM, update)
        must = self._must(known, always)
        chance = inclusion_probabilities(
            wanted, self.room, np.array([one.hash in must for one in known])
        )
        drawn = systematic_sample(chance, lots)
        likely = {one.hash: float(p) for one, p in zip(known, chance, strict=True)}
        order = [*must, *(known[at].hash for at in lots.permutation(drawn))]
        target = list(dict.fromkeys(order))[: self.room]
        self._keep(target if exchanged > 0 else must, likely)
        self._drain(target, must, count, lots, exchanged)
        self._release(count)
        return self._fill(target, likely, greedy=greedy)

    def _must(self, known: Sequence[ArchivedPolicy], always: Collection[str]) -> list[str]:
        """Who is in a slot in any case, the newest first; no more than there is room for."""
        by_age = sorted(known, key=lambda one: one.number, reverse=True)
        wanted = [by_age[0].hash, *(one.hash for one in by_age if one.hash in always)]
        return list(dict.fromkeys(wanted))[: self.room]

    def _release(self, seated: npt.NDArray[Any]) -> None:
        """Empty the slots that drain and that no game seats any more."""
        for number, slot in enumerate(self.slots, start=1):
            if slot.draining and seated[number] == 0:
                self.slots[number - 1] = Slot()

    def _keep(self, target: Sequence[str], likely: Mapping[str, float]) -> None:
        """Let those stay that were drawn again, also if they were about to leave."""
        for slot in self.slots:
            if slot.hash is not None and slot.hash in target and not slot.fixed:
                slot.draining = False
                slot.chance = likely[slot.hash]

    def _drain(
        self,
        target: Sequence[str],
        must: Sequence[str],
        seated: npt.NDArray[Any],
        lots: np.random.Generator,
        exchanged: float,
    ) -> None:
        """Begin to empty slots for those that are to come in, as far as that is allowed."""
        leaving = [number for number, slot in self.active().items() if slot.hash not in target]
        lots.shuffle(leaving)
        leaving.sort(key=lambda number: int(seated[number] > 0))  # empty ones cost no waiting
        free = sum(slot.hash is None or slot.draining for slot in self.slots)
        draining = sum(slot.draining for slot in self.slots)
        held = {slot.hash for slot in self.slots if not slot.fixed}
        waiting = sum(policy not in held for policy in target)
        urgent = sum(policy not in held for policy in must)
        allowed = max(1, int(exchanged * self.room)) - draining if exchanged > 0 else 0
        going = max(min(waiting - free, allowed), urgent - free, 0)
        for number in leaving[:going]:
            self[number].draining = True

    def _fill(
        self, target: Sequence[str], likely: Mapping[str, float], *, greedy: bool
    ) -> dict[int, str]:
        """Seat those that wait in the slots that are free."""
        inside = {slot.hash for slot in self.slots if not slot.fixed}
        waiting = [policy for policy in target if policy not in inside]
        empty = [number for number in range(1, len(self) + 1) if self[number].hash is None]
        filled = dict(zip(empty, waiting, strict=False))
        for number, policy in filled.items():
            self.slots[number - 1] = Slot(policy, greedy, chance=likely[policy])
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


def inclusion_probabilities(wanted: Weights, room: int, must: npt.NDArray[np.bool_]) -> Weights:
    """Return how probable it is that each is in a slot: in proportion to `wanted`, at most 1.

    The sum is the number of slots, or less where fewer are wanted at all. Those of `must` are in.
    """
    chance = must.astype(np.float64)
    open_ = ~must & (wanted > 0)
    while open_.any():
        left = room - chance.sum()
        share = normalized(np.where(open_, wanted, 0.0)) * left
        sure = open_ & (share >= 1)
        if not sure.any():
            return np.where(open_, share, chance)
        chance[sure] = 1.0
        open_ &= ~sure
    return chance


def systematic_sample(chance: Weights, lots: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw a set in which each is with exactly its probability, spread over the order they have.

    One lot decides all: where the running sum of the chances passes a whole number from there on.
    """
    passed = np.floor(np.cumsum(chance) + lots.random() + 1e-9)
    return np.flatnonzero(np.diff(passed, prepend=0.0) >= 1)


def mixes(
    slots: Slots,
    known: Sequence[ArchivedPolicy],
    wanted: Weights,
    *,
    recent: Collection[int] = (),
    best: str | None = None,
) -> dict[str, dict[int, float]]:
    """Return who is in the mixes `past`, `past:N` for every N, and `best`.

    A mix's weights have the sum 1; a mix in which nobody is stands for the learner itself.
    Those who are rarely in a slot weigh more while they are: over time everybody is met as often as
    wanted. Who is wanted less than when it came in is met less at once.

    recent: every N for which there is a mix `past:N`, the N newest of those in slots.
    best: whom `best` means; it needs a slot.
    """
    must = np.array([False] * len(known))
    chance = inclusion_probabilities(wanted, slots.room, must) if len(known) else must
    facts = {
        one.hash: (one.number, float(weight), float(now))
        for one, weight, now in zip(known, wanted, chance, strict=True)
    }
    inside = {number: slot for number, slot in slots.active().items() if slot.hash in facts}
    by_age = sorted(inside, key=lambda at: facts[str(inside[at].hash)][0], reverse=True)
    weight = {}
    for at, slot in inside.items():
        _, share, now = facts[str(slot.hash)]
        weight[at] = share / max(slot.chance, now) if share > 0 else 0.0
    made = {"past": slot_weights(by_age, weight)}
    for count in recent:
        made[f"past:{count}"] = slot_weights(by_age[:count], weight)
    made["best"] = {at: 1.0 for at in by_age if best is not None and inside[at].hash == best}
    return made


def slot_weights(slots: Sequence[int], weight: Mapping[int, float]) -> dict[int, float]:
    """The weights of some slots with the sum 1; who has none is left out."""
    if not slots:
        return {}
    drawn = normalized(np.array([weight[at] for at in slots]))
    return {at: float(w) for at, w in zip(slots, drawn, strict=True) if w > 0}
