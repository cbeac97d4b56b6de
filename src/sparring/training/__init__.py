"""A training run: its loop, and what it leaves on disk."""
