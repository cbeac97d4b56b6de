"""Where matches with discrete actions begin: as with continuous ones."""

from sparring.games.laser_hockey.starts import START_FORMATS, read_starts

__all__ = ["START_FORMATS", "read_starts"]
