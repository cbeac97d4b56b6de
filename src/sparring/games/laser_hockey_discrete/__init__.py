"""Laser hockey with discrete actions: shown as the game with continuous ones is."""

from sparring.games.laser_hockey import SHARES, text_view

__all__ = ["SHARES", "text_view"]
