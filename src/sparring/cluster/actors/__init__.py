"""Actors: processes that play rollouts, and the learner that learns from them."""
