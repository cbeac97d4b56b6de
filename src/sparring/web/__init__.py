"""In a browser: runs that are watched live, games against agents, agents as one file."""
