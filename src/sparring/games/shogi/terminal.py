"""Terminal view of Shogi: moves in USI, the board in letters or kanji."""

from __future__ import annotations

from collections.abc import Sequence

from sparring.games import Rules, State, shogi
from sparring.games.shogi.kanji import kanji_text
from sparring.games.terminal import HELP, ActionChoice, Terminal

PIECES = {
    **{"P": "pawn", "L": "lance", "N": "knight", "S": "silver", "G": "gold", "B": "bishop"},
    **{"R": "rook", "K": "king", "+P": "tokin", "+L": "promoted lance", "+N": "promoted knight"},
    **{"+S": "promoted silver", "+B": "horse", "+R": "dragon"},
}
RULES = """\
Mate the king. Moves are USI: 7g7f goes from 7g to 7f, 8h2b+ promotes, P*5e drops a pawn on 5e.
Files count from the right, ranks go down from a. Capital letters are Black's, + is promoted.
Type a move or its beginning.
  v  the board with kanji, or with letters again"""
KEYS = HELP.partition("\n")[2]
"""The help without its first line, which explains numbered choices."""


class ShogiTerminal(Terminal):
    """The board, and the legal moves by piece."""

    styles = ((r"\b(Black|White) to move\b", "bold"),)

    def __init__(self, rules: Rules, person: int) -> None:
        super().__init__(rules, person)
        self.kanji = False

    def show(self, state: State) -> str:
        return kanji_text(state) if self.kanji else state.text()

    def next_view(self) -> bool:
        """Switch between letters and kanji."""
        self.kanji = not self.kanji
        return True

    def name(self, seat: int) -> str:
        color = ("Black", "White")[seat]
        return f"you ({color})" if seat == self.person else color

    def choices(self, state: State) -> list[ActionChoice]:
        """Return the legal moves in USI, sorted by piece."""
        squares = shogi.board_of(state)
        found = [
            ActionChoice(action, move, f"{move} {piece_of(move, squares)}")
            for move, action in shogi.moves(state).items()
        ]
        order = list(PIECES.values())
        return sorted(found, key=lambda choice: (order.index(piece_name(choice)), choice.short))

    def list_choices(self, choices: Sequence[ActionChoice]) -> str:
        """Return a line per kind of piece."""
        by_piece: dict[str, list[str]] = {}
        for choice in choices:
            by_piece.setdefault(piece_name(choice), []).append(choice.short)
        return "\n        ".join(f"{piece}: {' '.join(found)}" for piece, found in by_piece.items())

    def match(
        self, state: State, typed: str, choices: Sequence[ActionChoice]
    ) -> list[ActionChoice]:
        """Match a move or its prefix; there are too many moves to number them."""
        word = typed.strip().lower()
        exact = [choice for choice in choices if choice.short.lower() == word]
        return exact or [choice for choice in choices if choice.short.lower().startswith(word)]

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        move = shogi.usi(before, action)
        return [f"{self.name(before.seat)}: {move} {piece_of(move, shogi.board_of(before))}"]

    def help(self) -> str:
        return f"{RULES}\n{KEYS}"

    def result(self, state: State) -> str:
        mine = state.scores[self.person]
        verdict = "you win" if mine > 0 else "you lose" if mine < 0 else "a draw"
        return f"{self.show(state)}\n{state.end}: {verdict}"


def piece_of(move: str, squares: dict[str, str]) -> str:
    return PIECES[move[0] if "*" in move else squares[move[:2]].upper()]


def piece_name(choice: ActionChoice) -> str:
    return choice.name.partition(" ")[2]


TERMINAL = ShogiTerminal
