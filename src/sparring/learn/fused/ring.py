"""The ring of a member on a GPU as `learn.segments` reads and writes it: arrays on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.games.rules import Rules
from sparring.learn.ring import columns_of


class Column:
    """One column. Reading copies rows to the host, in the types that `learn.ring.Ring` has."""

    def __init__(self, tensor: Tensor, kind: Any) -> None:
        self.tensor, self.dtype = tensor, np.dtype(kind)
        self.shape = tuple(tensor.shape)

    def __getitem__(self, at: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Copy the rows at these places."""
        places = torch.from_numpy(at).to(self.tensor.device)
        return as_kind(self.tensor[places].cpu().numpy(), self.dtype)

    def write(self, at: npt.NDArray[np.int64], rows: npt.NDArray[Any]) -> None:
        """Put rows at these places."""
        kind = np.dtype(str(self.tensor.dtype).removeprefix("torch."))
        places = torch.from_numpy(at).to(self.tensor.device)
        values = torch.from_numpy(np.ascontiguousarray(as_kind(rows, kind)))
        self.tensor[places] = values.to(self.tensor.device)


class MemberRing:
    """The columns of one member."""

    def __init__(self, rules: Rules, capacity: int, columns: Mapping[str, Tensor]) -> None:
        """Name the columns as `learn.ring.Ring` does; each has one row per place."""
        self.capacity = capacity
        kinds = columns_of(rules, columns["obs"].shape[1])
        self.columns = {name: Column(columns[name], kind) for name, (kind, _) in kinds.items()}

    def __getitem__(self, name: str) -> Column:
        """A column."""
        return self.columns[name]

    def write(self, first: int, rows: Mapping[str, npt.NDArray[Any]]) -> None:
        """Put rows at serial numbers from `first` on."""
        for name, values in rows.items():
            at = np.arange(first, first + len(values)) % self.capacity
            self.columns[name].write(at, values)


def as_kind(array: npt.NDArray[Any], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """The same numbers in another type; words keep their bits."""
    return array.view(kind) if array.itemsize == kind.itemsize else array.astype(kind)
