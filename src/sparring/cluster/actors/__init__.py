"""Actors: processes that play for a learner, and the learner that learns from their rollouts."""
