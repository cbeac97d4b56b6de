"""Phantom tic-tac-toe: shown by the header's texts."""
