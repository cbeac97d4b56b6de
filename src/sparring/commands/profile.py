"""`sparring profile`."""

from __future__ import annotations

from sparring.config import ProfileConfig
from sparring.errors import ConfigError


def run(config: ProfileConfig) -> int:
    """Say that it is not there yet."""
    raise ConfigError("not there yet")
