"""What several commands need: the table of them, help, opening, printing, players, pictures."""
