"""Connect Four as a person plays it."""

from __future__ import annotations

from sparring.games.state import State
from sparring.games.terminal import HELP, Terminal


class ConnectFourTerminal(Terminal):
    """A board with the letters of its columns."""

    styles = ((r"\bX\b", "bold red"), (r"\bO\b", "bold yellow"))

    def show(self, state: State) -> str:
        """Return the board, its columns and the person's color."""
        return f"{state.text().rstrip()}\na b c d e f g\nyou are {'XO'[self.person]}"

    def result(self, state: State) -> str:
        """Return the last board and the winner."""
        mine = state.scores[self.person]
        outcome = "you win" if mine > 0 else "you lose" if mine < 0 else "a draw"
        return f"{self.show(state)}\n{state.end}: {outcome}"

    def help(self) -> str:
        """Return the rules in short and the keys."""
        return (
            "A stone falls to the lowest empty cell of its column. Four in a row win: across, up "
            f"or diagonal. d is the middle column.\n{HELP}"
        )


TERMINAL = ConnectFourTerminal
