"""Settings of a training timed: round by round, side by side, in a process of their own."""
