"""Whether the machine is quiet enough to measure on."""

from __future__ import annotations

import warnings

from sparring.errors import SparringWarning
from sparring.machine import cores


def warn_if_busy(load: float | None) -> None:
    """Warn when other work shares the cores."""
    if load is not None and load > max(0.5, 0.1 * cores()):
        warnings.warn(
            f"load average {load:g} on {cores()} cores: other work seems to be running; "
            "rates will be low and vary, compare ratios instead",
            SparringWarning,
            stacklevel=2,
        )
