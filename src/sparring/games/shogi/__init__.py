"""Shogi: SFEN positions, USI moves, perft, and the board as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparring import _native
from sparring.errors import ConfigError, IllegalActionError, suggestion
from sparring.games.state import State, new_state

SHARES = ("captures", "drops", "promotions", "checks")
"""Statistics that are shares, from 0 to 1."""
START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
DECLARATIONS = ("OFF", "POINTS27", "POINTS24")
CLAIMS = (None, "win", "draw")
BOT_NAMES = {"ab1": "greedy", "greedy1": "greedy"}
"""Aliases of bots: alpha-beta with one ply plays like greedy."""
LABELS, SQUARES = 27, 81
MAX_DEPTH = 64
"""Maximum depth of perft, whose counts have 64 bits."""
MIRRORED_LABELS = (0, 2, 1, 4, 3, 5, 7, 6, 9, 8)
"""The ten directions of a move with left and right exchanged."""


@dataclass(frozen=True)
class Camp:
    """Entering-king count of the side to move."""

    pieces: int
    """Its pieces in the other's camp, without the king."""
    points: int
    """Of these pieces and of those in hand: 5 for a rook or bishop, 1 for any other."""
    claim: str | None
    """"win", "draw", or None if the side to move may not declare."""


def ascii_text(sfen: str) -> str:
    """Return an SFEN after checking that it is ASCII text."""
    if not isinstance(sfen, str):
        raise ConfigError(f"shogi: an SFEN is text, not {sfen!r}")
    if not sfen.isascii():
        raise ConfigError(f"shogi: an SFEN is made of ASCII characters: {sfen!r}")
    return sfen


def legal_moves(sfen: str) -> dict[str, int]:
    """Return the legal moves of a position, USI text to action."""
    try:
        return dict(_native.shogi_moves(ascii_text(sfen)))
    except ValueError as error:
        raise ConfigError(f"shogi: {error}") from None


def perft(sfen: str = START, depth: int = 1) -> int:
    """Count the legal sequences of `depth` moves, ignoring repetition and declaration."""
    if not 0 <= depth <= MAX_DEPTH:
        raise ConfigError(f"shogi: depth={depth} is outside 0..{MAX_DEPTH}")
    try:
        return int(_native.shogi_perft(ascii_text(sfen), depth))
    except ValueError as error:
        raise ConfigError(f"shogi: {error}") from None


def divide(sfen: str, depth: int) -> dict[str, int]:
    counts = {}
    start = load_sfen(sfen, config={"declaration": "OFF"})
    for move, action in legal_moves(sfen).items():
        after = start.clone()
        after.apply(action)
        counts[move] = perft(read_sfen(after), depth - 1)
    return counts


def camp(sfen: str, declaration: str = "POINTS27") -> Camp:
    """Return the entering-king count of the side to move, and whether it may declare."""
    if declaration not in DECLARATIONS:
        raise ConfigError(
            f"declaration={declaration!r} is unknown{suggestion(declaration, DECLARATIONS)}"
        )
    try:
        pieces, points, claim = _native.shogi_camp(
            ascii_text(sfen), DECLARATIONS.index(declaration)
        )
    except ValueError as error:
        raise ConfigError(f"shogi: {error}") from None
    return Camp(pieces, points, CLAIMS[claim])


def load_sfen(
    sfen: str = START, *, config: Mapping[str, Any] | None = None, seed: int = 0
) -> State:
    """Start a game from a position, which counts as the first of the game."""
    return new_state("shogi", seed=seed, config=config, sfen=sfen)


def set_sfen(state: State, sfen: str) -> None:
    """Continue from a position without history. An invalid SFEN changes nothing."""
    error = state.set_up([ord(letter) for letter in ascii_text(sfen)])
    if error:
        raise ConfigError(f"shogi: {error}")


STARTS = {"sfen": set_sfen}
"""Keyword arguments of `sparring.new_state` for this game, and their setters."""


def read_sfen(state: State) -> str:
    """Return the position as SFEN."""
    return state.native.text(-1)


def moves(state: State) -> dict[str, int]:
    """Return the legal moves of a game, USI text to action; none when it is over."""
    return {} if state.over else legal_moves(read_sfen(state))


def usi(state: State, action: int) -> str:
    """Return a legal action as a USI move."""
    for move, number in moves(state).items():
        if number == action:
            return move
    raise IllegalActionError(f"shogi: action {action} is not legal here")


def action_of(state: State, move: str) -> int:
    """Return the action of a legal USI move."""
    known = moves(state)
    if move not in known:
        raise IllegalActionError(f"shogi: {move} is not legal here{suggestion(move, known)}")
    return known[move]


def play(state: State, *line: str) -> None:
    for move in line:
        state.apply(action_of(state, move))


def mirrored_square(square: int) -> int:
    """Return a square with left and right exchanged."""
    file, rank = divmod(square, 9)
    return (8 - file) * 9 + rank


def mirrored_action(action: int) -> int:
    """Return an action with left and right exchanged."""
    label, to = divmod(action, SQUARES)
    if label < 20:
        label = label - label % 10 + MIRRORED_LABELS[label % 10]
    return label * SQUARES + mirrored_square(to)


def text_view(state: State, viewer: int | None = None) -> str:
    """Return the board as Black sees it, with hands, as text. Nothing is hidden."""
    board, _, hands, _ = read_sfen(state).split()
    lines = ["   9  8  7  6  5  4  3  2  1"]
    for rank, row in zip("abcdefghi", board.split("/"), strict=True):
        lines.append(f" {''.join(f'{cell:>3}' for cell in cells(row))}  {rank}")
    held = {"Black": hands_of(hands, str.isupper), "White": hands_of(hands, str.islower)}
    shown = [headline(state), f"White holds {held['White']}", *lines]
    return "\n".join([*shown, f"Black holds {held['Black']}"])


def headline(state: State) -> str:
    """Return the side to move, or the end of the game, as one line."""
    _, side, _, number = read_sfen(state).split()
    if state.over:
        return f"over after {int(number) - 1} moves: {state.end}"
    return f"move {number}, {'Black' if side == 'b' else 'White'} to move"


def board_of(state: State) -> dict[str, str]:
    """Return the SFEN piece on each square, "." for empty ones."""
    rows = read_sfen(state).split()[0].split("/")
    return {
        f"{9 - column}{rank}": cell
        for rank, row in zip("abcdefghi", rows, strict=True)
        for column, cell in enumerate(cells(row))
    }


def cells(row: str) -> list[str]:
    """Return the nine squares of one rank of an SFEN."""
    squares: list[str] = []
    promoted = ""
    for letter in row:
        if letter == "+":
            promoted = "+"
        elif letter.isdigit():
            squares += ["."] * int(letter)
        else:
            squares.append(promoted + letter)
            promoted = ""
    return squares


def hands_of(hands: str, mine: Any) -> str:
    """Return one side's pieces of the hands field of an SFEN."""
    shown, count = [], ""
    for letter in hands:
        if letter.isdigit():
            count += letter
        elif letter != "-":
            if mine(letter):
                shown.append(count + letter.upper())
            count = ""
    return " ".join(shown) or "nothing"
