"""Laser hockey with discrete actions: shown as the game with continuous ones is."""

from sparring.games.laser_hockey import text_view

__all__ = ["text_view"]
