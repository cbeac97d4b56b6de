"""`sparring sweep`."""

from __future__ import annotations

from sparring.config import SweepConfig
from sparring.errors import ConfigError


def run(config: SweepConfig) -> int:
    """Say that it is not there yet."""
    raise ConfigError("not there yet")
