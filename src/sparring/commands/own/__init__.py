"""Commands for environments of somebody's own: played in the terminal, drawn from their frames."""
