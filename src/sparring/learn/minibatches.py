"""Minibatches: the samples of an update, shuffled and cut; rows are copied when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.learn.sequences import STEP, shuffled_segments
from sparring.learn.terms import Arrays, OwnRows, Term
from sparring.learn.together import Together
from sparring.learn.transforms import RowTransform

PLACE = "place"
"""Of every sample: where its "obs" and "mask" lie, if they were left where they were played."""
OWN_ROWS = 1 << 10
"""Rows of terms are shuffled by numbers of their own: as if there were so many networks more."""
Shown = Mapping[str, SupportsFloat]
"""What curves show of a minibatch."""


@dataclass(frozen=True)
class Minibatch(Mapping[str, Tensor]):
    """Some of the samples of an update; each array is copied when it is read."""

    data: Mapping[str, Tensor]
    """Arrays of all samples."""
    picked: Tensor
    """Which of them."""
    own: Mapping[str, Tensor]
    """Rows of terms that bring their own, see `Dealt`."""
    turning: Sequence[RowTransform] = ()
    """Change its rows."""

    def __getitem__(self, name: str) -> Tensor:
        if name in self.own:
            return self.own[name]
        by_place = PLACE in self.data and name in ("obs", "mask")
        return self.data[name][self.data[PLACE][self.picked] if by_place else self.picked]

    def __iter__(self) -> Iterator[str]:
        return (name for name in (*self.data, *self.own) if name != PLACE)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def rows(self) -> dict[str, Tensor]:
        """Copy its rows, changed as transforms want them."""
        rows = dict(self)
        for transform in self.turning:
            transform.turn(rows)
        return rows


@dataclass
class Samples:
    """The samples of an update, which every epoch shuffles anew."""

    data: Mapping[str, Tensor]
    """Arrays with an entry for each."""
    size: int
    """Of a minibatch, about."""
    order: np.random.Generator
    """Shuffles them."""
    own: Sequence[Dealt] = ()
    """Rows of terms that bring their own."""
    turning: Sequence[RowTransform] = ()
    """Change rows of minibatches."""

    def epoch(self, update: int, number: int, together: Together) -> list[Minibatch]:
        """Shuffle and cut them."""
        data, samples = self.data, len(self.data["action"])
        for transform in self.turning:
            data = {**data, **transform.epoch(update, number, samples)}
        parts = split(self.data, self.size, self.order, together)
        extra: list[dict[str, Tensor]] = [{} for _ in parts]
        for dealt in self.own:
            for each, mine in zip(extra, dealt.deal(len(parts)), strict=True):
                each.update(mine)
        return [Minibatch(data, *each, self.turning) for each in zip(parts, extra, strict=True)]


def split(
    data: Mapping[str, Tensor], size: int, order: np.random.Generator, together: Together
) -> Sequence[Tensor]:
    """Shuffle samples into equal minibatches, as near to `size` as their number allows.

    Decisions in a row stay together. Of several learners each has a share of every minibatch.
    """
    device, samples = data["action"].device, len(data["action"])
    if STEP in data:
        several = [together.counts(n) for n in (samples, int((data[STEP] == 0).sum()))]
        parts = min(round(sum(several[0]) / size), max(several[1]))
        dealt = shuffled_segments(data[STEP], max(1, parts), order)
        return [torch.from_numpy(picked).to(device) for picked in dealt]
    shuffled = torch.from_numpy(order.permutation(samples)).to(device)
    if together.size == 1:
        return torch.split(shuffled, -(-samples // max(1, round(samples / size))))
    counts = together.counts(samples)
    parts = min(round(sum(counts) / size), max(counts))
    return torch.tensor_split(shuffled, max(1, parts))


def shuffling(seed: int, update: int, network: int = 0) -> np.random.Generator:
    """Return what shuffles the samples of an update, for each of several networks another."""
    key = np.array([seed % 2**64, update], np.uint64)  # a list loses digits
    stream = np.random.Philox(key=key)
    return np.random.Generator(stream.jumped(network) if network else stream)


def gathered(rows: Arrays, samples: npt.NDArray[np.intp], *, by_place: bool) -> Arrays:
    """Rows of samples. by_place: the widest are left where they were played."""
    if not by_place:
        return {name: array[samples] for name, array in rows.items()}
    wide = {"obs": rows["obs"], "mask": rows["mask"], PLACE: samples}
    return wide | {name: array[samples] for name, array in rows.items() if name not in wide}


def mean_losses(logged: Sequence[Shown]) -> dict[str, float]:
    """The means over all minibatches, by name."""
    return {name: float(np.mean([float(x[name]) for x in logged])) for name in logged[0]}


@dataclass
class Dealt:
    """A term's own rows of an update, dealt to the minibatches of every epoch."""

    term: str
    """Its name."""
    rows: Mapping[str, Tensor]
    order: np.random.Generator
    """Shuffles them before every epoch."""

    def __len__(self) -> int:
        return len(self.rows["obs"])

    def deal(self, minibatches: int) -> list[dict[str, Tensor]]:
        """Shuffle them; number i of n minibatches gets those from i/n to (i + 1)/n.

        There they are called as `own_rows` finds them.
        """
        count = len(self)
        shuffled = torch.from_numpy(self.order.permutation(count)).to(self.rows["obs"].device)
        cuts = [count * i // minibatches for i in range(minibatches + 1)]
        return [
            {f"{self.term}/{name}": rows[shuffled[first:end]] for name, rows in self.rows.items()}
            for first, end in pairwise(cuts)
        ]


def own_rows_of(
    learner: Any, terms: Sequence[Term], samples: npt.NDArray[np.intp], network: int = 0
) -> dict[str, Dealt]:
    """Rows that terms bring along, by what curves call their number."""
    found = {}
    for term in terms:
        if isinstance(term, OwnRows):
            rows = term.rows(learner, samples)
            on_device = {name: torch.from_numpy(a).to(learner.device) for name, a in rows.items()}
            order = shuffling(learner.seed, learner.updates, OWN_ROWS + network)
            found[term.counted] = Dealt(term.name, on_device, order)
    return found
