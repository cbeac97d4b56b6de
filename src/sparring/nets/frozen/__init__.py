"""Frozen networks of one shape, whose rows are answered together."""
