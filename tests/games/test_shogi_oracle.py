"""Shogi against independent programs on positions of new random games.

cshogi is asked where it is installed, since it is fast; otherwise python-shogi. The one known fault
of python-shogi: it allows a pawn drop that mates when the only pieces that could take the pawn are
pinned. Such a drop is accepted as a difference if the program itself sees a mate.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator

import pytest

from sparring import State
from sparring.games import shogi

HAS_CSHOGI = importlib.util.find_spec("cshogi") is not None
HAS_PYTHON_SHOGI = importlib.util.find_spec("shogi") is not None
needs_cshogi = pytest.mark.skipif(not HAS_CSHOGI, reason="needs cshogi")
needs_python_shogi = pytest.mark.skipif(not HAS_PYTHON_SHOGI, reason="needs python-shogi")
QUICK_POSITIONS, SLOW_POSITIONS = 1_000, 200_000
SLOW_TIMEOUT_S = 7200


def random_positions(count: int, seed: int) -> Iterator[str]:
    """Every third position of random games with a taste for checks, captures and drops."""
    draw = random.Random(seed)
    found = 0
    state = shogi.load_sfen()
    while found < count:
        if state.over:
            state = shogi.load_sfen()
        state.apply(chosen(state, draw))
        if not state.over and draw.random() < 1 / 3:
            found += 1
            yield shogi.read_sfen(state)


def chosen(state: State, draw: random.Random) -> int:
    legal = state.legal()
    sharp = [action for action in legal if action >= 810]  # promotions and drops
    return draw.choice(sharp if sharp and draw.random() < 0.4 else legal)


def is_the_known_fault(board: object, move: str) -> bool:
    if not move.startswith("P*"):
        return False
    board.push_usi(move)  # type: ignore[attr-defined]
    mated = board.is_checkmate()  # type: ignore[attr-defined]
    board.pop()  # type: ignore[attr-defined]
    return bool(mated)


def is_in_check(sfen: str) -> bool:
    return bool(shogi.load_sfen(sfen).fields()["in_check"][0])


def compare_with_python_shogi(sfen: str) -> None:
    import shogi as oracle

    board = oracle.Board(sfen)
    theirs = {move.usi() for move in board.legal_moves}
    ours = set(shogi.legal_moves(sfen))
    assert ours <= theirs, sfen
    assert all(is_the_known_fault(board, move) for move in theirs - ours), sfen
    assert board.is_check() == is_in_check(sfen), sfen


def compare_with_cshogi(sfen: str) -> None:
    import cshogi

    board = cshogi.Board(sfen)
    theirs = {cshogi.move_to_usi(move) for move in board.legal_moves}
    assert set(shogi.legal_moves(sfen)) == theirs, sfen
    assert board.is_check() == is_in_check(sfen), sfen


@needs_python_shogi
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_python_shogi_finds_the_same_legal_moves(seed: int) -> None:
    for sfen in random_positions(QUICK_POSITIONS // 2, seed):
        compare_with_python_shogi(sfen)


@needs_cshogi
def test_cshogi_finds_the_same_legal_moves() -> None:
    for sfen in random_positions(QUICK_POSITIONS, seed=2):
        compare_with_cshogi(sfen)


@pytest.mark.slow
@pytest.mark.timeout(SLOW_TIMEOUT_S)
@pytest.mark.skipif(not (HAS_CSHOGI or HAS_PYTHON_SHOGI), reason="needs cshogi or python-shogi")
def test_legal_moves_of_many_positions() -> None:
    compare = compare_with_cshogi if HAS_CSHOGI else compare_with_python_shogi
    seen = dict.fromkeys(("positions", "checks", "hands", "late"), 0)
    for sfen in random_positions(SLOW_POSITIONS, seed=99):
        compare(sfen)
        _, _, hands, number = sfen.split()
        seen["positions"] += 1
        seen["checks"] += is_in_check(sfen)
        seen["hands"] += hands != "-"
        seen["late"] += int(number) > 200
    print(seen)
    assert seen["positions"] == SLOW_POSITIONS
    assert min(seen.values()) > SLOW_POSITIONS // 100


@needs_python_shogi
def test_the_known_fault_is_still_there() -> None:
    import shogi as oracle

    sfen = "4R2gk/9/7G1/9/9/9/9/9/K8 b P 1"
    theirs = {move.usi() for move in oracle.Board(sfen).legal_moves}
    assert theirs - set(shogi.legal_moves(sfen)) == {"P*1b"}


@needs_python_shogi
def test_fourfold_repetition() -> None:
    import shogi as oracle

    board, state = oracle.Board(), shogi.load_sfen()
    for move in ["2h3h", "8b7b", "3h2h", "7b8b"] * 3:
        assert not state.over
        assert not board.is_fourfold_repetition()
        board.push_usi(move)
        shogi.play(state, move)
    assert board.is_fourfold_repetition()
    assert state.end == "repetition"
