"""The weights of a network as one array of bytes, the same in every process."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.errors import StateError


class FlatWeights:
    """Where every parameter and buffer of a network lies in one array."""

    def __init__(self, net: nn.Module) -> None:
        """Lay out the network; any of the same kind fits."""
        self._places: list[tuple[str, slice]] = []
        at = 0
        for name, value in net.state_dict().items():
            size = value.numel() * value.element_size()
            self._places.append((name, slice(at, at + size)))
            at += -(-size // 16) * 16
        self.size = at
        """Bytes."""

    @torch.no_grad()
    def write(self, net: nn.Module, out: npt.NDArray[np.uint8]) -> None:
        """Copy the network into an array."""
        state = net.state_dict()
        for name, place in self._places:
            value: Tensor = state[name].detach().cpu().contiguous()
            out[place] = value.reshape(-1).view(torch.uint8).numpy()

    @torch.no_grad()
    def read(self, net: nn.Module, flat: npt.NDArray[np.uint8]) -> None:
        """Copy an array into the network."""
        if flat.shape != (self.size,):
            raise StateError(f"weights of {flat.shape} bytes, need {(self.size,)}")
        state = net.state_dict()
        for name, place in self._places:
            value = state[name]
            raw = torch.from_numpy(flat[place].copy())
            value.copy_(raw.view(value.dtype).reshape(value.shape))
