"""Curves of a run, and ways to draw them."""
