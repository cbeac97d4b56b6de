"""What a verdict is, and the causes that it may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CANNOT_TELL = "cannot tell"
LEARNING = "the learning itself"
"""Nothing is wrong: the time goes into what a run is for."""


@dataclass(frozen=True)
class Verdict:
    """A cause, and what following the advice is expected to bring."""

    cause: str
    """In a word or two, such as "slow environment"; or `CANNOT_TELL`."""
    text: str
    """One sentence: where the time goes, why, what to do."""
    share: float
    """Of the time."""
    gain: float | None = None
    """Expected: 0.45 for 45 % more decisions per second; None where nobody knows."""
    timed: bool = False
    """Whether that was timed with the change in place; otherwise it is reckoned from the share."""
    do: str = ""
    """What to type, or to change in your own code."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """The settings that would be another, as `merged` takes them; empty where it is code."""


def percent(share: float) -> str:
    """A share as people say it."""
    return f"{100 * share:.0f} %"


def counted(number: int, what: str) -> str:
    """So many of something: "1 worker", "2 workers"."""
    return f"{number} {what}{'s' * (number != 1)}"


def expected(gain: float, *, timed: bool) -> str:
    """What is to be hoped for, in words, and where that comes from."""
    return f"expected +{100 * gain:.0f} %" + (" (timed here)" if timed else " (reckoned)")


def without(share: float, part: float = 1.0) -> float:
    """The gain when a part of a share of the time goes, as Amdahl reckons it."""
    gone = min(max(share * part, 0.0), 0.98)
    return gone / (1 - gone)


def typed(change: Mapping[str, Any]) -> str:
    """A change of settings as options of `sparring train`."""
    words = []
    for key, value in change.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        for name, one in inner:
            words.append(f"--{option(key.replace('_', '-'), name.replace('_', '-'), one)}")
    return " ".join(words)


def option(key: str, name: str, value: Any) -> str:
    """One setting as an option; switches are pairs."""
    if isinstance(value, bool):
        word = (name or key) if value else f"no-{name or key}"
        return f"{key}.{word}" if name else word
    shown = " ".join(map(str, value)) if isinstance(value, tuple | list) else value
    return f"{key}.{name} {shown}" if name else f"{key} {shown}"
