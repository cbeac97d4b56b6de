"""The path that a network is computed on, as a run announces it: plain data and one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sparring.errors import printable

SHARES = {
    0.25: "a quarter",
    0.33: "a third",
    0.5: "half",
    0.67: "two thirds",
    0.75: "three quarters",
}
"""Fractions in words; a measured share is told by the nearest one."""


@dataclass(frozen=True)
class ComputePath:
    """How one network is computed."""

    network: str
    """What it is: perceptron 531-256-256-87."""
    name: str
    """Of the path: native bf16."""
    because: str = ""
    """What keeps the network from a faster path; "" on the fastest one that there is."""
    speed: float | None = None
    """Share of the faster path's samples per second; None where nobody has measured it."""
    role: str = ""
    """Whose network it is, where every role has its own."""

    @property
    def way(self) -> str:
        """The path with its reason and its price."""
        reason = f" because {self.because}" if self.because else ""
        price = f": about {share_words(self.speed)} of the speed" if self.speed else ""
        return f"{self.name}{reason}{price}"

    def plain(self) -> dict[str, Any]:
        """As JSON has it; `ComputePath(**plain)` is the same again."""
        return asdict(self)


def share_words(share: float) -> str:
    """Return a share as people say it."""
    return SHARES[min(SHARES, key=lambda known: abs(known - share))]


@dataclass(frozen=True)
class Announced:
    """The paths of a run."""

    algo: str
    paths: tuple[ComputePath, ...]
    """One per role, where every role has a network; none of a learner of somebody's own."""

    @property
    def line(self) -> str:
        """All of it in one line: ppo, perceptron 531-256-256-87, native bf16.

        Roles whose networks take the same path share its words.
        """
        if not self.paths:
            return printable(f"{self.algo}, a learner of your own")
        ways: dict[str, dict[str, list[str]]] = {}
        for path in self.paths:
            ways.setdefault(path.way, {}).setdefault(path.network, []).append(path.role)
        told = (f"{named(networks)}, {way}" for way, networks in ways.items())
        return printable(f"{self.algo}, {'; '.join(told)}")

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"path": self.line, "paths": [path.plain() for path in self.paths]}


def named(networks: Mapping[str, Sequence[str]]) -> str:
    """List networks with the roles that have them."""
    told = (
        f"{' and '.join(roles)}: {network}" if any(roles) else network
        for network, roles in networks.items()
    )
    return ", ".join(told)
