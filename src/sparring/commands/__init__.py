"""The commands of the terminal: one module each, with `run(config)`, and what they share."""
