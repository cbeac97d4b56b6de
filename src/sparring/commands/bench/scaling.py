"""`sparring bench scaling`."""

from __future__ import annotations

from sparring.config import BenchScalingConfig
from sparring.errors import ConfigError


def run(config: BenchScalingConfig) -> int:
    """Say that it is not there yet."""
    raise ConfigError("not there yet")
