"""Settings that suit a machine, found by measuring: for speed, or for time to a strength."""
