"""Learning from games that others have played, before a run plays itself."""
