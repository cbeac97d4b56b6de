"""Hidden information of dark hex: the other's stones, as in phantom tic-tac-toe."""

from sparring.games.phantom_tic_tac_toe.hidden import hidden

__all__ = ["hidden"]
