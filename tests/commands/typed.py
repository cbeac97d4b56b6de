"""What a person types who takes whatever is offered."""

ANY = "".join(f"{number}\n" for number in range(1, 13))
"""Numbers of which one or the other is a choice; those that are none are asked about again."""
