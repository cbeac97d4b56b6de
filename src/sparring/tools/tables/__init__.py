"""How each game is shown to a person who plays it."""
