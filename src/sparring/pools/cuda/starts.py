"""Start positions on a GPU: tensors whose addresses are part of the games' settings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.pools.starts import PackedStarts


class DeviceStarts:
    """Start positions on the device. Without any, games start as usual."""

    def __init__(
        self, packed: PackedStarts | None = None, device: torch.device | None = None
    ) -> None:
        self.count = len(packed.side_of) if packed else 0
        self._held: list[Tensor] = []
        """In the order of `Starts` in csrc/core/env.hpp. Kernels read them as long as a setting
        names them."""
        if packed is None or self.count == 0:
            return
        sides = packed.sides or b"\0"
        for raw in (packed.up_to.tobytes(), packed.games, packed.side_of.tobytes(), sides):
            self._held.append(torch.frombuffer(bytearray(raw), dtype=torch.uint8).to(device))

    def write(self, setting: npt.NDArray[np.uint8], offset: int) -> None:
        """Put the addresses into the bytes of a setting."""
        addresses = [tensor.data_ptr() for tensor in self._held] or [0] * 4
        words = np.array([*addresses, self.count], np.uint64).view(np.uint8)
        setting[offset : offset + len(words)] = words
