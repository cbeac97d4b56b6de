"""What combines with what: a table, and the questions that are answered from it."""
