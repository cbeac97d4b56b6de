"""Matches between policies and bots, and what they say about strength."""
