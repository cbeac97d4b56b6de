"""Rules of games in Python: `sparring.Game`."""

from sparring.pygames.declare import Game
from sparring.pygames.fields import Block, Flag, Float, Int

__all__ = ["Block", "Flag", "Float", "Game", "Int"]
