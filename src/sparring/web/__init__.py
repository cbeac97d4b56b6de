"""The web app: live curves of runs, games against agents, and agents as one HTML file."""
