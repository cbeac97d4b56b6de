"""My game as a person plays it."""

from __future__ import annotations

from sparring.games.terminal import HELP, Terminal


class MyGameTerminal(Terminal):
    """The text of the position, with the rules in short behind h."""

    def help(self) -> str:
        """Return the rules in short and the keys."""
        return f"Take one to three by turns. Who takes the last one wins.\n{HELP}"


TERMINAL = MyGameTerminal
