"""Curricula of the original hockey project are the same for both kinds of actions."""

from sparring.games.laser_hockey.curriculum import read

__all__ = ["read"]
