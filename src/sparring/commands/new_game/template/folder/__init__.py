"""My game for people: its terminal, and how it is trained."""
