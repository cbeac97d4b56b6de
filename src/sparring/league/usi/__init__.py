"""Shogi engines: being one, and playing against others."""

GAME = "shogi"
"""What the protocol is for."""
