"""Limits of a USI `go`: simulations, and seconds from the clock. No clock is read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparring.errors import ConfigError

NUMBERS = ("nodes", "movetime", "btime", "wtime", "binc", "winc", "byoyomi", "depth")
"""Words of `go` that a number follows."""
MAX_NUMBER = 2**31 - 1
MOVES_LEFT = 40
"""Moves for which the remaining time is shared out."""
MARGIN_S = 0.15
"""Time that is left over at every move: the way to the program and back, and a busy machine."""
MIN_SHARE = 0.4
"""At least this part of a short limit is used."""


@dataclass(frozen=True)
class GoLimits:
    """How long a move may take."""

    simulations: int = 0
    """0: no limit."""
    seconds: float = 0.0
    """Time until the answer, without the margin; 0: no limit."""
    until_stop: bool = False
    """The answer waits for `stop` or `ponderhit`."""

    def __bool__(self) -> bool:
        return bool(self.simulations or self.seconds or self.until_stop)


def read_go(words: Sequence[str], seat: int) -> GoLimits:
    """Read the words of a `go`. seat: 0 for Black, whose time is btime."""
    given = read_numbers(words)
    color = "bw"[seat]
    left, byoyomi = given.get(f"{color}time", 0), given.get("byoyomi", 0)
    timed = any(name in given for name in ("btime", "wtime", "byoyomi"))
    seconds = given.get("movetime", 0) / 1000
    if timed and "movetime" not in given:
        seconds = share_of_clock(left, given.get(f"{color}inc", 0), byoyomi) / 1000
    until_stop = any(word in words for word in ("infinite", "ponder"))
    if until_stop:
        seconds = 0.0
    elif timed or "movetime" in given:
        seconds = with_margin(seconds)
    return GoLimits(given.get("nodes", 0), seconds, until_stop)


def read_numbers(words: Sequence[str]) -> dict[str, int]:
    """Return the numbers of `go` by their words; negative ones, as of a lost clock, are 0."""
    given = {}
    for at, word in enumerate(words):
        if word not in NUMBERS:
            continue
        number = words[at + 1] if at + 1 < len(words) else ""
        digits = number.lstrip("-")
        if not (digits.isascii() and digits.isdecimal()):
            raise ConfigError(f"go {word} needs a number, not {number[:20]!r}")
        given[word] = max(0, min(int(digits[:12]), MAX_NUMBER)) if number == digits else 0
    return given


def share_of_clock(left: int, increment: int, byoyomi: int) -> float:
    """Return milliseconds for a move: a share of the time left, and what comes back every move.

    It never takes more than there is, whether or not the increment is already on the clock.
    """
    return min(left / MOVES_LEFT + increment + byoyomi, left + byoyomi)


def with_margin(seconds: float) -> float:
    """Return the time to search for; a limit of 0, as in a lost clock, leaves next to none."""
    return max(seconds - MARGIN_S, MIN_SHARE * seconds, 0.001)
