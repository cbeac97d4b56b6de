"""Utilization of a run: its share of the machine's peak rates, and the phase that limits it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sparring.phases import TREES
from sparring.training.utilization.advice import MinibatchAdvice
from sparring.usage import Contention

if TYPE_CHECKING:
    from sparring.training.utilization.work import WorkPerSample

PHASE_NAMES = {
    "stepping": "stepping the games",
    "inference": "inference",
    "select": "the trees of the searches",
    "evaluate": "the network of the searches",
    "settle": "the trees of the searches",
    "rollout": "the rollout",
    "update": "the update",
    "advantage": "advantages",
    "transfer": "moving samples to the device",
    "replay": "filling the replay buffer",
    "sampling": "sampling from the replay buffer",
    "other": "work outside of learning",
}
"""Phases of an update, as messages name them."""


@dataclass(frozen=True)
class MinibatchTimings:
    """Seconds per sample of several minibatch sizes, relative to the run's size."""

    now: int
    ratios: tuple[tuple[int, float, float], ...]
    """(size, median over rounds, upper quartile)."""

    def to_json(self) -> dict[str, Any]:
        return {"now": self.now, "ratios": [list(one) for one in self.ratios]}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> MinibatchTimings | None:
        """Return None if the entry is damaged."""
        try:
            ratios = tuple((int(a), float(b), float(c)) for a, b, c in entry["ratios"])
            timings = cls(int(entry["now"]), ratios)
        except (KeyError, TypeError, ValueError):
            return None
        valid = all(n > 0 and 0 < x < math.inf for n, m, h in ratios for x in (m, h))
        return timings if valid else None


@dataclass(frozen=True)
class Peaks:
    """Peak rates of the machine for the work of a run."""

    products: float
    """Multiply-adds per second, in the precision of the network."""
    stepping: float | None
    """Decisions per second of the pool alone; None if it was not measured."""
    apart: bool = False
    """Games and network are on different devices, which work at the same time."""


@dataclass
class WorkDone:
    """Amounts of work and seconds of some updates."""

    seconds: float = 0.0
    rows: float = 0.0
    """Forward passes of the learner and of frozen opponents with its architecture."""
    samples: dict[str, float] = field(default_factory=dict)
    """By role."""
    trained: dict[str, float] = field(default_factory=dict)
    """Samples times epochs, by role."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds by phase."""

    @classmethod
    def total(cls, several: Sequence[WorkDone]) -> WorkDone:
        total = cls()
        for one in several:
            total.seconds += one.seconds
            total.rows += one.rows
            for sums, addends in (
                (total.samples, one.samples),
                (total.trained, one.trained),
                (total.phases, one.phases),
            ):
                for name, value in addends.items():
                    sums[name] = sums.get(name, 0.0) + value
        return total


@dataclass(frozen=True)
class Utilization:
    """Share of the machine that a run uses, and what limits it."""

    share: float
    """Seconds that the same work takes at the peak rates, divided by the seconds it took; at
    most 1."""
    bound: str = ""
    """The phase that loses most time compared to the peak rates."""
    advice: MinibatchAdvice | None = None
    without_stepping: bool = False
    """Stepping cannot be measured, so its time is left out too."""
    exceeds_peaks: bool = False
    """The run was faster than the peaks: they were measured on a busy machine."""
    contention: Contention | None = None
    """Other programs that use the cores; then neither `bound` nor `advice` is shown."""
    unknown_reason: str = ""
    """Why there is no share."""

    @property
    def parts(self) -> list[str]:
        if self.unknown_reason:
            return [f"share of this machine unknown: {self.unknown_reason}"]
        parts = [f"{percent(self.share)} of this machine"]
        if self.without_stepping:
            parts = [f"{percent(self.share)} of this machine without stepping"]
        if self.contention:
            return [*parts, str(self.contention)]
        if self.exceeds_peaks:
            parts.append("faster than the measured peak: run sparring doctor --measure")
        elif self.bound:
            parts.append(f"bound by {PHASE_NAMES.get(self.bound, self.bound)}")
        return parts + ([self.advice.text] if self.advice else [])

    @property
    def line(self) -> str:
        return "; ".join(self.parts)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.0095 else f"{100 * share:.0f} %"


def ideal_seconds(done: WorkDone, work: WorkPerSample, peaks: Peaks) -> dict[str, float]:
    """Seconds that the same work takes at the peak rates: inference, stepping, update."""
    update_macs = sum(trained * work.update[role] for role, trained in done.trained.items())
    return {
        "inference": done.rows * macs_per_row(done, work) / peaks.products,
        "stepping": done.rows / peaks.stepping if peaks.stepping else 0.0,
        "update": update_macs / peaks.products,
    }


def macs_per_row(done: WorkDone, work: WorkPerSample) -> float:
    """Multiply-adds of a forward pass, averaged over roles by their samples."""
    total = sum(done.samples.values())
    if not total:
        return sum(work.inference.values()) / len(work.inference)
    return sum(done.samples.get(role, 0.0) * macs for role, macs in work.inference.items()) / total


def compute_utilization(done: WorkDone, work: WorkPerSample, peaks: Peaks) -> Utilization:
    """Compare the work that was done to the machine's peak rates."""
    ideal = ideal_seconds(done, work, peaks)
    rollout = [ideal["inference"], ideal["stepping"]]
    ideal["rollout"] = max(rollout) if peaks.apart else sum(rollout)
    seconds, without_stepping = done.seconds, peaks.stepping is None
    if without_stepping:
        seconds -= done.phases.get("stepping", 0.0)
    if seconds <= 0:
        return Utilization(math.nan, unknown_reason="nothing was timed")
    share = (ideal["rollout"] + ideal["update"]) / seconds
    return Utilization(
        min(share, 1.0),
        bound=slowest_phase(done.phases, ideal),
        without_stepping=without_stepping,
        exceeds_peaks=share > 1,
    )


def slowest_phase(phases: Mapping[str, float], ideal: Mapping[str, float]) -> str:
    """Return the phase with the largest difference between its seconds and its ideal seconds.

    In searches the network evaluates leaves, and games step to them inside of the trees, whose two
    phases count together.
    """
    if "evaluate" in phases:
        phases = {**phases, "select": sum(phases.get(name, 0.0) for name in TREES), "settle": 0.0}
        names = {"evaluate": "inference", "select": "stepping", "update": "update"}
        ideal = {name: ideal[of] for name, of in names.items()}
    lost = {name: seconds - ideal.get(name, 0.0) for name, seconds in phases.items()}
    return max(lost, key=lost.__getitem__, default="")
