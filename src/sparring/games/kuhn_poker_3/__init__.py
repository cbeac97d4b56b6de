"""Kuhn poker for three: shown by the header's texts."""
