"""Curricula: a run as a sequence of phases, each with its settings."""
