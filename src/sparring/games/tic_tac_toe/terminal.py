"""Terminal view of tic-tac-toe."""

from __future__ import annotations

from sparring.games.state import State
from sparring.games.terminal import HELP, Terminal


class TicTacToeTerminal(Terminal):
    """A board with coordinates."""

    styles = ((r"\bX\b", "bold cyan"), (r"\bO\b", "bold yellow"))

    def show(self, state: State) -> str:
        rows = state.text().split("\n")
        board = [f"  {at + 1} {row}" for at, row in enumerate(rows[:3])]
        return "\n".join(["    a b c", *board, f"you are {'XO'[self.person]}"])

    def result(self, state: State) -> str:
        mine = state.scores[self.person]
        verdict = "you win" if mine > 0 else "you lose" if mine < 0 else "a draw"
        return f"{self.show(state)}\n{state.end}: {verdict}"

    def help(self) -> str:
        return f"Three in a row win: across, down or diagonal. b3 is column b, row 3.\n{HELP}"


TERMINAL = TicTacToeTerminal
