"""Matches between policies and bots, ratings, and the league of a run."""
