"""`sparring bench configs`."""

from __future__ import annotations

from sparring.config import BenchConfigsConfig
from sparring.errors import ConfigError


def run(config: BenchConfigsConfig) -> int:
    """Say that it is not there yet."""
    raise ConfigError("not there yet")
