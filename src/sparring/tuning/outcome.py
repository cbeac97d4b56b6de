"""What a search saw, and what came out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sparring.tuning.knobs import Point
from sparring.tuning.ratios import Gain, Raced

State = Literal["preset", "faster", "unconfirmed", "slower", "close", "memory", "failed"]
Ended = Literal["done", "time", "interrupted"]


@dataclass
class Look:
    """One point, and what was seen of it."""

    point: Point
    state: State
    at_s: float
    """Seconds into the search."""
    gain: Gain | None = None
    """Over the preset, by way of whoever was the best then."""
    rate: float = 0.0
    """Decisions per second: the preset's own, and the gain on top of it."""
    raced: Raced | None = None
    """Where the gain comes from."""
    why: str = ""
    bytes: int = 0
    """About what it takes."""

    def plain(self, preset: Point) -> dict[str, Any]:
        """As JSON has it."""
        told: dict[str, Any] = {
            "settings": dict(self.point.values),
            "beside_preset": self.point.beside(preset),
            "state": self.state,
            "at_s": round(self.at_s, 2),
        }
        if self.gain:
            told |= {"decisions_per_s": round(self.rate), **plain_gain(self.gain)}
        if self.bytes:
            told["memory_bytes"] = self.bytes
        return told | ({"why": self.why} if self.why else {})


@dataclass
class Outcome:
    """The answer: the preset, or a point that was timed against it in full."""

    preset: Point
    best: Point
    gain: Gain | None = None
    """Of the best over the preset, from timings in turn. None: the best is the preset."""
    rate: float = 0.0
    """Decisions per second of the best."""
    preset_rate: float = 0.0
    confirmed: bool = True
    """False: stopped before the best was timed against the preset once more."""
    ended: Ended = "done"
    seconds: float = 0.0
    """All of it, starting processes included."""
    looks: list[Look] = field(default_factory=list)
    tried_best: Look | None = None
    """What seemed best on the way and did not hold in the end."""
    lost: Gain | None = None
    """What came of it; None: it could not be timed any more, and `why` of its look says it."""

    @property
    def better(self) -> bool:
        """Whether something better than the preset was found."""
        return self.best != self.preset

    def look(self, point: Point) -> Look:
        """What was seen of a point."""
        return next(look for look in self.looks if look.point == point)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        told: dict[str, Any] = {
            "better": self.better,
            "settings": dict(self.best.values),
            "beside_preset": self.best.beside(self.preset),
            "decisions_per_s": round(self.rate),
            "preset": dict(self.preset.values),
            "preset_decisions_per_s": round(self.preset_rate),
            "confirmed": self.confirmed,
            "ended": self.ended,
            "seconds": round(self.seconds, 2),
        }
        if self.gain:
            told |= plain_gain(self.gain)
        if self.tried_best:
            told["did_not_hold"] = {
                "settings": dict(self.tried_best.point.values),
                "why": self.tried_best.why,
                **(plain_gain(self.lost) if self.lost else {}),
            }
        told["looks"] = [look.plain(self.preset) for look in self.looks]
        return told


def plain_gain(gain: Gain) -> dict[str, Any]:
    """A gain as JSON has it; an end that nobody knows is null."""

    def end(value: float) -> float | None:
        return round(value, 4) if -1 < value < 1e9 else None

    told = {"value": round(gain.value, 4), "low": end(gain.low), "high": end(gain.high)}
    return {"gain": told, "turns": gain.turns}
