"""The weights that actors play with: a network as one array of bytes, and shared memory for it.

In shared memory one writes and everybody reads. There is room for two versions. The next is written
where nobody begins to read, and whoever read slowly notices by a checksum that what it has is not
one version, and reads again. Nobody ever waits for anybody, so that an actor that hangs or dies in
the middle of a read harms nobody.
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
    def write(self, net: nn.Module, out: Flat) -> None:
        """Copy the network into an array."""
        state = net.state_dict()
        for name, place in self._places:
            value: Tensor = state[name].detach().cpu().contiguous()
            out[place] = value.reshape(-1).view(torch.uint8).numpy()

    @torch.no_grad()
    def read(self, net: nn.Module, flat: Flat) -> None:
        """Copy an array into the network."""
        if flat.shape != (self.size,):
            raise StateError(f"weights of {flat.shape} bytes, need {(self.size,)}")
        state = net.state_dict()
        for name, place in self._places:
            value = state[name]
            raw = torch.from_numpy(flat[place].copy())
            value.copy_(raw.view(value.dtype).reshape(value.shape))


class Board:
    """A network's flat weights and their version."""

    def __init__(self, size: int, fd: int | None = None) -> None:
        """Make one for weights of `size` bytes, or open what another process made."""
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
        """To be inherited by readers."""
        return self._memory.fd

    def write(self, version: int, flat: Flat) -> None:
        """Show another version. Versions begin at 1."""
        side = 1 - int(self._newest[0])
        self._version[side] = version
        self._flat[side] = flat
        self._checksum[side] = checksum(version, flat)
        self._newest[0] = side

    def newest(self) -> int:
        """The version that would be read now."""
        return int(self._version[int(self._newest[0])])

    def newer(self, version: int) -> tuple[int, Flat] | None:
        """Copy the newest version, unless it is this one."""
        return None if self.newest() == version else self.read()

    def read(self) -> tuple[int, Flat]:
        """Copy the newest version, whole."""
        for _ in range(MAX_TRIES):
            side = int(self._newest[0])
            version, flat = int(self._version[side]), self._flat[side].copy()
            if checksum(version, flat) == int(self._checksum[side]):
                return version, flat
        raise SparringError(f"no whole weights in {MAX_TRIES} tries; publish less often")

    def close(self) -> None:
        """Let go of the memory; nothing can be read afterwards."""
        self._memory.close()
        del self._memory, self._newest, self._version, self._checksum, self._flat


def checksum(version: int, flat: Flat) -> int:
    """Of weights and their version together."""
    return zlib.crc32(flat.data, version & 0xFFFFFFFF)
