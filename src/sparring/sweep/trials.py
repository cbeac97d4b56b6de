"""What a sweep has tried: one record per trial, in a file with a JSON object per line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RUNNING, DONE, PRUNED, FAILED = "running", "done", "pruned", "failed"
SIDES = BEST, PRESET = "best", "preset"
"""Whose settings a run that confirms has: the best trial's, or the file's own."""


@dataclass(frozen=True)
class Trial:
    """Settings that were tried by a training."""

    number: int
    settings: Mapping[str, Any]
    """Values by the name of their range, such as "ppo.lr", "set.order" or "opponents"."""
    state: str = RUNNING
    value: float | None = None
    """What the search raises: strength at the end, or where it was pruned."""
    low: float | None = None
    high: float | None = None
    """The interval of `value`."""
    curve: tuple[tuple[float, float, float], ...] = ()
    """Evaluations on the way: seconds, decisions, strength."""
    seconds: float = 0.0
    decisions: int = 0
    seed: int = 0
    run: str = ""
    """The folder of its run."""
    init: str = ""
    """The run whose weights it began with."""
    why: str = ""
    """Why it was pruned, or what failed."""
    extra: Mapping[str, Any] = field(default_factory=dict)
