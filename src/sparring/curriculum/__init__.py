"""Curricula: a run as a sequence of phases, each with terms of its own."""
