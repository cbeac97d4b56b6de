"""Goofspiel: shown by the header's texts."""
