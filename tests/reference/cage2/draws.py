"""Where CAGE-2's chance comes from: a generator, or a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from reference.cage2.network import GREEN_HOSTS, HOSTS, PREFERENCE
from reference.philox import Philox


class Draws(Protocol):
    def host(self, options: Sequence[str]) -> str:
        """One of several hosts, all alike; options in host order."""

    def port(self, options: Sequence[int]) -> int:
        """A port that red remembers; options in red's order of preference."""

    def noticed(self) -> bool: ...

    def green(self) -> str | None: ...


class Generator:
    """Draws as the native game documents them. Where there is no choice, nothing is drawn."""

    def __init__(self, rng: Philox) -> None:
        self.rng = rng

    def host(self, options: Sequence[str]) -> str:
        return options[0] if len(options) == 1 else options[self.rng.below(len(options))]

    def port(self, options: Sequence[int]) -> int:
        others = len(options) - 1
        if others == 0:
            return options[0]
        at = self.rng.below(4 * others)
        return options[0] if at < 3 * others else options[1 + at - 3 * others]

    def noticed(self) -> bool:
        return self.rng.below(20) != 0

    def green(self) -> str | None:
        at = self.rng.below(16)
        return GREEN_HOSTS[at] if at < 8 else None

    def red(self, weights: Sequence[float]) -> int:
        """Which red attacks: 0 B_line, 1 Meander, 2 sleep."""
        left = np.float32(self.rng.u32() >> 8) / np.float32(1 << 24)
        left *= np.float32(weights[0]) + np.float32(weights[1]) + np.float32(weights[2])
        chosen = 0
        for kind, weight in enumerate(weights):
            if weight > 0:
                chosen = kind
                left -= np.float32(weight)
                if left < 0:
                    break
        return chosen

    def order(self, units: Sequence[int]) -> list[int]:
        shuffled = list(units)
        for i in range(len(shuffled) - 1):
            j = i + self.rng.below(len(shuffled) - i)
            shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
        return shuffled


class Recording:
    """The outcomes of one recorded step; asking for what was not recorded is a mistake."""

    def __init__(self, host: int, port: int, noticed: int, green: int) -> None:
        self._host, self._port, self._noticed, self._green = host, port, noticed, green

    def host(self, options: Sequence[str]) -> str:
        assert HOSTS[self._host] in options
        return HOSTS[self._host]

    def port(self, options: Sequence[int]) -> int:
        assert self._port >= 0 and PREFERENCE[self._port] in options
        return PREFERENCE[self._port]

    def noticed(self) -> bool:
        assert self._noticed in (0, 1)
        return self._noticed == 1

    def green(self) -> str | None:
        return HOSTS[self._green] if self._green >= 0 else None
