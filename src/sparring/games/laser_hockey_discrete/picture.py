"""The picture of laser hockey."""

from sparring.games.laser_hockey.picture import PICTURE

__all__ = ["PICTURE"]
