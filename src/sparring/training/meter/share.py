"""Which share of this machine a run reaches, and what keeps it from more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sparring.usage import Crowd

if TYPE_CHECKING:
    from sparring.training.meter.work import Work

WORDS = {
    "stepping": "stepping the games",
    "inference": "inference",
    "rollout": "the rollout",
    "update": "the update",
    "advantage": "advantages",
    "transfer": "moving samples to the device",
    "replay": "filling the replay",
    "sampling": "sampling the replay",
    "other": "what is beside learning",
}
"""What bounds a run, by phase."""
MIN_GAIN = 0.05
NEAR = 0.03
"""Of sizes whose gains are so near to the best the one next to the run's own counts: it learns
most as before."""


@dataclass(frozen=True)
class Advice:
    """Another minibatch that makes a run faster."""

    now: int
    then: int
    gain: float
    """Of the whole run's speed, 0.1 for a tenth more."""

    @property
    def words(self) -> str:
        return f"minibatch {size(self.now)} -> {size(self.then)} gives +{100 * self.gain:.0f} %"


def size(samples: int) -> str:
    """A size as people write it, never rounded."""
    return f"{samples // 1024}k" if samples >= 1024 and samples % 1024 == 0 else f"{samples}"


@dataclass(frozen=True)
class Pace:
    """Seconds per sample by size of minibatch, by those of the run's own size."""

    now: int
    ratios: tuple[tuple[int, float, float], ...]
    """(size, median over rounds, their upper quarter)."""

    def advice(self, update_share: float) -> Advice | None:
        """Return what is worth trying if so much of the time is the update's.

        Nothing is, below a gain of 5 %, or if it might be none as far as the rounds tell.
        """
        gains = [
            (then, gain_of(middle, update_share))
            for then, middle, high in self.ratios
            if then != self.now and gain_of(high, update_share) > 0
        ]
        best = max((gain for _, gain in gains), default=0.0)
        if best < MIN_GAIN:
            return None
        good = [one for one in gains if one[1] >= max(best - NEAR, MIN_GAIN)]
        then, gain = min(good, key=lambda one: abs(math.log(one[0] / self.now)))
        return Advice(self.now, then, gain)

    def plain(self) -> dict[str, Any]:
        return {"now": self.now, "ratios": [list(one) for one in self.ratios]}

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Pace | None:
        """From what `plain` wrote; None if that is damaged."""
        try:
            ratios = tuple((int(a), float(b), float(c)) for a, b, c in entry["ratios"])
            found = cls(int(entry["now"]), ratios)
        except (KeyError, TypeError, ValueError):
            return None
        sound = all(n > 0 and 0 < x < math.inf for n, m, h in ratios for x in (m, h))
        return found if sound else None


def gain_of(ratio: float, update_share: float) -> float:
    """What the whole gains if its update takes `ratio` times as long."""
    return 1 / (1 - update_share + update_share * ratio) - 1


@dataclass(frozen=True)
class Ceilings:
    """What the machine does at best of what a run needs."""

    products: float
    """Multiply-adds per second, in the numbers that the network is computed in."""
    stepping: float | None
    """Decisions per second of the pool alone, None where nobody has measured it."""
    apart: bool = False
    """Games and network are on different devices, which work at the same time."""


@dataclass
class Done:
    """What was done in some time."""

    seconds: float = 0.0
    rows: float = 0.0
    """Answered by the learner's network and frozen ones of its kind."""
    samples: dict[str, float] = field(default_factory=dict)
    """By role."""
    passes: dict[str, float] = field(default_factory=dict)
    """Samples times epochs, by role."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds."""

    @classmethod
    def all(cls, several: Sequence[Done]) -> Done:
        total = cls()
        for one in several:
            total.seconds += one.seconds
            total.rows += one.rows
            for mine, theirs in (
                (total.samples, one.samples),
                (total.passes, one.passes),
                (total.phases, one.phases),
            ):
                for name, value in theirs.items():
                    mine[name] = mine.get(name, 0.0) + value
        return total


@dataclass(frozen=True)
class Reached:
    """How a run stands to its machine."""

    share: float
    """Time that the same work takes at the ceilings, by the time that it took; at most 1."""
    bound: str = ""
    """The phase with the most time beyond what its own work takes at the ceilings."""
    advice: Advice | None = None
    without_stepping: bool = False
    """Stepping is nobody's business here: its time is not counted either."""
    beyond: bool = False
    """It did more than the ceilings allow: those were measured in a bad moment."""
    crowd: Crowd | None = None
    """Who else wants the cores: then neither what bounds the run nor advice is worth a word."""
    unknown: str = ""
    """Why there is no share."""

    @property
    def words(self) -> list[str]:
        if self.unknown:
            return [f"share of this machine unknown: {self.unknown}"]
        told = [f"{percent(self.share)} of this machine"]
        if self.without_stepping:
            told = [f"{percent(self.share)} of this machine without stepping"]
        if self.crowd:
            return [*told, self.crowd.words]
        if self.beyond:
            told.append("faster than was measured: sparring doctor --measure")
        elif self.bound:
            told.append(f"bound by {WORDS.get(self.bound, self.bound)}")
        return told + ([self.advice.words] if self.advice else [])

    @property
    def line(self) -> str:
        return "; ".join(self.words)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.0095 else f"{100 * share:.0f} %"


def ideal_seconds(done: Done, work: Work, ceilings: Ceilings) -> dict[str, float]:
    """Seconds that the same work takes at the ceilings: inference, stepping, update."""
    learned = sum(passes * work.learned[role] for role, passes in done.passes.items())
    return {
        "inference": done.rows * row_work(done, work) / ceilings.products,
        "stepping": done.rows / ceilings.stepping if ceilings.stepping else 0.0,
        "update": learned / ceilings.products,
    }


def row_work(done: Done, work: Work) -> float:
    """Multiply-adds of a row that is answered; of several roles as often as they were learned."""
    known = sum(done.samples.values())
    if not known:
        return sum(work.answered.values()) / len(work.answered)
    return sum(done.samples.get(role, 0.0) * each for role, each in work.answered.items()) / known


def reckon(done: Done, work: Work, ceilings: Ceilings) -> Reached:
    """Hold what was done against what the machine can do."""
    ideal = ideal_seconds(done, work, ceilings)
    played = [ideal["inference"], ideal["stepping"]]
    ideal["rollout"] = max(played) if ceilings.apart else sum(played)
    seconds, blind = done.seconds, ceilings.stepping is None
    if blind:
        seconds -= done.phases.get("stepping", 0.0)
    if seconds <= 0:
        return Reached(math.nan, unknown="nothing was timed")
    share = (ideal["rollout"] + ideal["update"]) / seconds
    return Reached(
        min(share, 1.0),
        bound=bound_of(done.phases, ideal),
        without_stepping=blind,
        beyond=share > 1,
    )


def bound_of(phases: Mapping[str, float], ideal: Mapping[str, float]) -> str:
    """The phase with the most time beyond its own ideal."""
    beyond = {name: took - ideal.get(name, 0.0) for name, took in phases.items()}
    return max(beyond, key=beyond.__getitem__, default="")
