"""The weights that actors play with, in shared memory: one writes, everybody reads.

There is room for two versions. The next is written where nobody begins to read, and whoever read
slowly notices by a checksum that what it has is not one version, and reads again. Nobody ever waits
for anybody, so that an actor that hangs or dies in the middle of a read harms nobody.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.processes import SharedArrays

Flat = npt.NDArray[np.uint8]
MOST_TRIES = 10_000


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

    def read(self) -> tuple[int, Flat]:
        """Copy the newest version, whole."""
        for _ in range(MOST_TRIES):
            side = int(self._newest[0])
            version, flat = int(self._version[side]), self._flat[side].copy()
            if checksum(version, flat) == int(self._checksum[side]):
                return version, flat
        raise SparringError(f"no whole weights in {MOST_TRIES} tries; publish less often")

    def close(self) -> None:
        """Let go of the memory; nothing can be read afterwards."""
        self._memory.close()
        del self._memory, self._newest, self._version, self._checksum, self._flat


def checksum(version: int, flat: Flat) -> int:
    """Of weights and their version together."""
    return zlib.crc32(flat.data, version & 0xFFFFFFFF)
