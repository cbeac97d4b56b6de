"""Shogi against python-shogi, an independent program, on positions of new random games.

Its one known fault: it allows a pawn drop that mates when the only pieces that could take the
pawn are pinned. Such a drop is accepted as a difference if the program itself sees a mate.
"""

from __future__ import annotations

import random

import pytest

from sparring import State
from sparring.games import shogi

oracle = pytest.importorskip("shogi", reason="needs python-shogi")
QUICK_POSITIONS, SLOW_POSITIONS = 2_000, 20_000


def random_positions(count: int, seed: int) -> list[str]:
    """Every third position of random games with a taste for checks, captures and drops."""
    draw = random.Random(seed)
    found: list[str] = []
    state = shogi.load_sfen()
    while len(found) < count:
        if state.over:
            state = shogi.load_sfen()
        state.apply(chosen(state, draw))
        if not state.over and draw.random() < 1 / 3:
            found.append(shogi.read_sfen(state))
    return found


def chosen(state: State, draw: random.Random) -> int:
    legal = state.legal()
    sharp = [action for action in legal if action >= 810]  # promotions and drops
    return draw.choice(sharp if sharp and draw.random() < 0.4 else legal)


def is_the_known_fault(board: oracle.Board, move: str) -> bool:
    if not move.startswith("P*"):
        return False
    board.push_usi(move)
    mated = board.is_checkmate()
    board.pop()
    return bool(mated)


def compare(positions: list[str]) -> None:
    for sfen in positions:
        board = oracle.Board(sfen)
        theirs = {move.usi() for move in board.legal_moves}
        ours = set(shogi.legal_moves(sfen))
        assert ours <= theirs, sfen
        assert all(is_the_known_fault(board, move) for move in theirs - ours), sfen
        assert board.is_check() == bool(shogi.load_sfen(sfen).fields()["in_check"][0]), sfen


@pytest.mark.parametrize("seed", range(2))
def test_legal_moves_of_new_positions(seed: int) -> None:
    compare(random_positions(QUICK_POSITIONS // 2, seed))


@pytest.mark.slow
def test_legal_moves_of_many_positions() -> None:
    compare(random_positions(SLOW_POSITIONS, seed=99))


def test_the_known_fault_is_still_there() -> None:
    sfen = "4R2gk/9/7G1/9/9/9/9/9/K8 b P 1"
    theirs = {move.usi() for move in oracle.Board(sfen).legal_moves}
    assert theirs - set(shogi.legal_moves(sfen)) == {"P*1b"}


def test_fourfold_repetition() -> None:
    board, state = oracle.Board(), shogi.load_sfen()
    for move in ["2h3h", "8b7b", "3h2h", "7b8b"] * 3:
        assert not state.over
        assert not board.is_fourfold_repetition()
        board.push_usi(move)
        shogi.play(state, move)
    assert board.is_fourfold_repetition()
    assert state.end == "repetition"
