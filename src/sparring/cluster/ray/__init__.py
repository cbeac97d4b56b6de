"""The same on other machines, in Ray: its session, actors, replicas, and many runs at once."""
