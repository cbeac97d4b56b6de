"""Connect Four for people: its terminal, its picture, and how it is trained."""
