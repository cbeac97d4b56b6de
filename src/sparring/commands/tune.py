"""`sparring tune`."""

from __future__ import annotations

from sparring.config import TuneConfig
from sparring.errors import ConfigError


def run(config: TuneConfig) -> int:
    """Say that it is not there yet."""
    raise ConfigError("not there yet")
