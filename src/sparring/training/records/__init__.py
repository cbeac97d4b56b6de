"""What a run leaves behind, written and read."""
