"""Where matches with discrete actions begin: as with continuous ones."""

from sparring.games.laser_hockey.starts import WORDS, read_starts

__all__ = ["WORDS", "read_starts"]
