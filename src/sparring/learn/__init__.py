"""Learning: what turns experience into better policies."""
