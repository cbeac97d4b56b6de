"""The parts of train_vs_peers.py: who takes part, the contest, and its figures."""
