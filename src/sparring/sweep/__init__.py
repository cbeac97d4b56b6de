"""A search over settings by whole trainings."""
