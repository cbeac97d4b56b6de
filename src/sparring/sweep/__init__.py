"""Hyperparameter search: `sparring sweep` over whole trainings, `sparring tune` from a preset."""
