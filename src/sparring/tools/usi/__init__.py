"""Shogi engines: being one, and playing against others."""
