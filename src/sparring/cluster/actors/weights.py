"""Weights for actors: a network as one array of bytes, and shared memory for it.

In shared memory the learner writes and all actors read. It holds two versions: the next one is
written where no reader starts, and a slow reader detects by a checksum that it has read a mixture,
and reads again. There are no locks, so that an actor that hangs or dies while reading blocks
nothing.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sparring.errors import SparringError, StateError
from sparring.processes import SharedArrays

Flat = npt.NDArray[np.uint8]
MAX_TRIES = 10_000


class FlatWeights:
    """Layout of a network's parameters and buffers in one array of bytes."""

    def __init__(self, net: nn.Module) -> None:
        """Lay out a network; every network of the same structure fits."""
        self._slices: list[tuple[str, slice]] = []
        offset = 0
        for name, value in net.state_dict().items():
            size = value.numel() * value.element_size()
            self._slices.append((name, slice(offset, offset + size)))
            offset += -(-size // 16) * 16
        self.size = offset
        """Bytes."""

    @torch.no_grad()
    def write(self, net: nn.Module, out: Flat) -> None:
        """Copy the network into an array."""
        state = net.state_dict()
        for name, part in self._slices:
            value: Tensor = state[name].detach().cpu().contiguous()
            out[part] = value.reshape(-1).view(torch.uint8).numpy()

    @torch.no_grad()
    def read(self, net: nn.Module, flat: Flat) -> None:
        """Copy an array into the network."""
        if flat.shape != (self.size,):
            raise StateError(f"weights have shape {flat.shape}, need {(self.size,)} bytes")
        state = net.state_dict()
        for name, part in self._slices:
            value = state[name]
            raw = torch.from_numpy(flat[part].copy())
            value.copy_(raw.view(value.dtype).reshape(value.shape))


class SharedWeights:
    """The flat weights of a network and their version, in shared memory."""

    def __init__(self, size: int, fd: int | None = None) -> None:
        """Allocate memory for weights of `size` bytes, or map what another process allocated."""
        shapes = {
            "newest": (np.int64, (1,)),
            "version": (np.int64, (2,)),
            "checksum": (np.int64, (2,)),
            "flat": (np.uint8, (2, size)),
        }
        self._memory = SharedArrays(shapes, fd)
        self._newest, self._version = self._memory["newest"], self._memory["version"]
        self._checksum, self._flat = self._memory["checksum"], self._memory["flat"]
        self.size = size

    @property
    def fd(self) -> int:
        """File descriptor for readers to inherit."""
        return self._memory.fd

    def write(self, version: int, flat: Flat) -> None:
        """Write another version. Versions begin at 1."""
        side = 1 - int(self._newest[0])
        self._version[side] = version
        self._flat[side] = flat
        self._checksum[side] = checksum(version, flat)
        self._newest[0] = side

    def newest(self) -> int:
        """Version that `read` would return."""
        return int(self._version[int(self._newest[0])])

    def read_newer(self, version: int) -> tuple[int, Flat] | None:
        """Copy the newest version, None if it is this one."""
        return None if self.newest() == version else self.read()

    def read(self) -> tuple[int, Flat]:
        """Copy the newest version."""
        for _ in range(MAX_TRIES):
            side = int(self._newest[0])
            version, flat = int(self._version[side]), self._flat[side].copy()
            if checksum(version, flat) == int(self._checksum[side]):
                return version, flat
        raise SparringError(f"no consistent weights in {MAX_TRIES} reads; publish less often")

    def close(self) -> None:
        """Unmap the memory; nothing can be read afterwards."""
        self._memory.close()
        del self._memory, self._newest, self._version, self._checksum, self._flat


def checksum(version: int, flat: Flat) -> int:
    """Checksum of weights and version."""
    return zlib.crc32(flat.data, version & 0xFFFFFFFF)
