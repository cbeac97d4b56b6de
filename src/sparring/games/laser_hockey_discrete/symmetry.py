"""Laser hockey with discrete actions in a mirror: as with continuous ones."""

from sparring.games.laser_hockey.symmetry import mirror

__all__ = ["mirror"]
