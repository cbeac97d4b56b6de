"""Tic-tac-toe for people: its terminal, its picture, and how it is trained."""
