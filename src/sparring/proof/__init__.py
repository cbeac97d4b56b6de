"""Proofs that a game is consistent and that a pool plays whole games of it."""
