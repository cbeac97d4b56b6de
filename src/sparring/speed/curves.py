"""Speed of a run, read from the metrics that it writes while it trains."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.training.records import metrics

DECISIONS, RATE, SAMPLES = "charts/decisions", "charts/SPS", "charts/samples_per_s"
SIMULATIONS = "charts/simulations_per_s"
GPU, CPU = "charts/gpu_busy", "charts/cpu_share"
PHASES = "phases/"
BETWEEN = "between updates"
"""Phase between updates: metrics, checkpoints, callbacks."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RunSpeed:
    """Rates and phases of a run over some updates."""

    updates: int = 0
    seconds: float = 0.0
    decisions_per_s: float = 0.0
    samples_per_s: float = 0.0
    simulations_per_s: float = 0.0
    """Of the searches; 0 without search."""
    phases: tuple[tuple[str, float], ...] = ()
    """Shares of the time."""
    cpu_cores: float = 0.0
    gpu_busy: float | None = None


class CurveReader:
    """Reads the metrics of a run that is training, and finds out when its clock began."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._began = float("inf")

    def last_update(self) -> int:
        """Return the last update on disk; 0 before the first."""
        try:
            found = metrics.last(self.folder, DECISIONS)
        except SparringError:  # the file is being created
            return 0
        if found is None:
            return 0
        # Metrics come late, never early: the earliest start that they allow is the best estimate.
        self._began = min(self._began, time.monotonic() - found[1])
        return found[0]

    def speed(self, since: float, until: float) -> RunSpeed:
        """Return the speed between two times of the monotonic clock."""
        counted = metrics.read(self.folder, DECISIONS).get(DECISIONS)
        if counted is None:
            return RunSpeed()
        numbers, ends, decisions = counted
        inside = (ends >= since - self._began) & (ends <= until - self._began)
        inside[0] = False  # the start of the first update is unknown
        if not inside.any():
            return RunSpeed()
        # A run of days has millions of values, and it is still training: read only what is needed.
        first = int(numbers[inside][0])
        curves = metrics.read(self.folder, "charts/*", f"{PHASES}*", since=first)
        took = np.diff(ends, prepend=ends[:1])
        made = np.diff(decisions, prepend=decisions[:1])
        whole = float(took[inside].sum())

        def values(name: str) -> Floats:
            """Return a metric at these updates, 0 where it has no value."""
            at, _, found = curves.get(name, (numbers[:0], ends[:0], ends[:0]))
            full = np.zeros(len(numbers))
            full[np.searchsorted(numbers, at[np.isin(at, numbers)])] = found[np.isin(at, numbers)]
            return np.nan_to_num(full)[inside]

        rates = values(RATE)
        worked = np.where(rates > 0, made[inside] / np.maximum(rates, 1e-9), took[inside])
        shares = {
            name.removeprefix(PHASES): float((values(name) * worked).sum()) / whole
            for name in curves
            if name.startswith(PHASES)
        }
        shares[BETWEEN] = max(1 - sum(shares.values()), 0.0)
        busy = float((values(GPU) * worked).sum()) / whole if GPU in curves else None
        return RunSpeed(
            updates=int(inside.sum()),
            seconds=whole,
            decisions_per_s=float(made[inside].sum()) / whole,
            samples_per_s=float((values(SAMPLES) * worked).sum()) / whole,
            simulations_per_s=float((values(SIMULATIONS) * worked).sum()) / whole,
            phases=tuple(sorted(shares.items(), key=lambda pair: -pair[1])),
            cpu_cores=float((values(CPU) * worked).sum()) / whole,
            gpu_busy=busy,
        )
