"""Shuffled minibatches of the samples of an update; arrays are copied when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.learn.process_group import ProcessGroup
from sparring.learn.sequences import STEP, shuffled_segments
from sparring.learn.terms import Arrays, ExtraRows, Term
from sparring.learn.transforms import RowTransform

PLACE = "place"
"""Column with the row of each sample in "obs" and "mask", if those were left in the rollout."""
EXTRA_ROWS_STREAM = 1 << 10
"""Added to the index of a network, for a separate random stream that shuffles extra rows."""
Metrics = Mapping[str, SupportsFloat]
"""Metrics of a minibatch by name."""


@dataclass(frozen=True)
class Minibatch(Mapping[str, Tensor]):
    """Some samples of an update; each array is copied when it is read."""

    data: Mapping[str, Tensor]
    """Arrays of all samples."""
    picked: Tensor
    """Indices of its samples."""
    extra: Mapping[str, Tensor]
    """Extra rows of loss terms, see `ExtraRowsSampler`."""
    transforms: Sequence[RowTransform] = ()

    def __getitem__(self, name: str) -> Tensor:
        if name in self.extra:
            return self.extra[name]
        by_place = PLACE in self.data and name in ("obs", "mask")
        return self.data[name][self.data[PLACE][self.picked] if by_place else self.picked]

    def __iter__(self) -> Iterator[str]:
        return (name for name in (*self.data, *self.extra) if name != PLACE)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def rows(self) -> dict[str, Tensor]:
        """Copy its rows and apply the transforms."""
        rows = dict(self)
        for transform in self.transforms:
            transform.apply(rows)
        return rows


@dataclass
class RolloutSamples:
    """All samples of an update; every epoch shuffles them into minibatches."""

    data: Mapping[str, Tensor]
    """Arrays with one entry per sample."""
    size: int
    """Approximate number of samples in a minibatch."""
    rng: np.random.Generator
    extra: Sequence[ExtraRowsSampler] = ()
    transforms: Sequence[RowTransform] = ()

    def epoch(self, update: int, number: int, process_group: ProcessGroup) -> list[Minibatch]:
        """Shuffle the samples into minibatches."""
        data, samples = self.data, len(self.data["action"])
        for transform in self.transforms:
            data = {**data, **transform.epoch(update, number, samples)}
        parts = split(self.data, self.size, self.rng, process_group)
        extra: list[dict[str, Tensor]] = [{} for _ in parts]
        for sampler in self.extra:
            for each, rows in zip(extra, sampler.deal(len(parts)), strict=True):
                each.update(rows)
        return [Minibatch(data, *each, self.transforms) for each in zip(parts, extra, strict=True)]


def split(
    data: Mapping[str, Tensor], size: int, rng: np.random.Generator, process_group: ProcessGroup
) -> Sequence[Tensor]:
    """Shuffle samples into equal minibatches, as near to `size` as their number allows.

    Segments of recurrent networks stay whole. Each replica has a share of every minibatch.
    """
    device, samples = data["action"].device, len(data["action"])
    if STEP in data:
        segments = process_group.counts(int((data[STEP] == 0).sum()))
        count = min(round(sum(process_group.counts(samples)) / size), max(segments))
        minibatches = shuffled_segments(data[STEP], max(1, count), rng)
        return [torch.from_numpy(picked).to(device) for picked in minibatches]
    shuffled = torch.from_numpy(rng.permutation(samples)).to(device)
    if process_group.size == 1:
        return torch.split(shuffled, -(-samples // max(1, round(samples / size))))
    counts = process_group.counts(samples)
    return torch.tensor_split(shuffled, max(1, min(round(sum(counts) / size), max(counts))))


def shuffle_rng(seed: int, update: int, network: int = 0) -> np.random.Generator:
    """Return the generator that shuffles an update; `network` selects a stream per network."""
    key = np.array([seed % 2**64, update], np.uint64)  # from a list numpy would make floats
    stream = np.random.Philox(key=key)
    return np.random.Generator(stream.jumped(network) if network else stream)


def gather_rows(rows: Arrays, samples: npt.NDArray[np.intp], *, by_place: bool) -> Arrays:
    """Copy the rows of samples. by_place: leave "obs" and "mask" in the rollout, see `PLACE`."""
    if not by_place:
        return {name: array[samples] for name, array in rows.items()}
    wide = {"obs": rows["obs"], "mask": rows["mask"], PLACE: samples}
    return wide | {name: array[samples] for name, array in rows.items() if name not in wide}


def mean_metrics(logged: Sequence[Metrics]) -> dict[str, float]:
    """Return the mean of every metric over minibatches."""
    return {name: float(np.mean([float(x[name]) for x in logged])) for name in logged[0]}


@dataclass
class ExtraRowsSampler:
    """Extra rows of a loss term, shuffled into the minibatches of every epoch."""

    term: str
    """Name of the term."""
    rows: Mapping[str, Tensor]
    rng: np.random.Generator

    def __len__(self) -> int:
        return len(self.rows["obs"])

    def deal(self, minibatches: int) -> list[dict[str, Tensor]]:
        """Shuffle the rows; minibatch i of n gets those from i/n to (i + 1)/n.

        Names are those that `extra_rows` looks for.
        """
        count = len(self)
        shuffled = torch.from_numpy(self.rng.permutation(count)).to(self.rows["obs"].device)
        bounds = [count * i // minibatches for i in range(minibatches + 1)]
        return [
            {f"{self.term}/{name}": rows[shuffled[first:end]] for name, rows in self.rows.items()}
            for first, end in pairwise(bounds)
        ]


def extra_rows_of(
    learner: Any, terms: Sequence[Term], samples: npt.NDArray[np.intp], network: int = 0
) -> dict[str, ExtraRowsSampler]:
    """Return the extra rows of loss terms, by the name of their count in metrics."""
    samplers = {}
    for term in terms:
        if isinstance(term, ExtraRows):
            rows = term.rows(learner, samples)
            on_device = {name: torch.from_numpy(a).to(learner.device) for name, a in rows.items()}
            rng = shuffle_rng(learner.seed, learner.updates, EXTRA_ROWS_STREAM + network)
            samplers[term.counted] = ExtraRowsSampler(term.name, on_device, rng)
    return samplers
