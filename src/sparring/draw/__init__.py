"""Everything that is drawn: curves of runs, and games as pictures."""
