"""What this machine can do at best, and how much of that a run does."""
