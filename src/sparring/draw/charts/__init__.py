"""Charts of runs, comparisons and leagues; flame graphs."""
