"""Shogi's scripted players: each beats the one before."""

from __future__ import annotations

import pytest

import sparring
from sparring.games import shogi


def points(first: str, second: str, games: int) -> float:
    """Wins of the first, draws as half, over games with both colours."""
    total = 0.0
    for seed in range(games):
        state = sparring.new_state("shogi", seed=seed)
        seats = [first, second] if seed % 2 == 0 else [second, first]
        while not state.over:
            state.apply(state.ask(seats[state.seat]))
        total += (1 + state.scores[seats.index(first)]) / 2
    return total


@pytest.mark.parametrize(
    ("stronger", "weaker"), [("greedy", "random"), ("ab2", "greedy"), ("ab3", "ab2")]
)
def test_the_ladder(stronger: str, weaker: str) -> None:
    assert points(stronger, weaker, 10) >= 9


@pytest.mark.parametrize("bot", ["greedy", "ab2", "ab3"])
def test_a_win_is_played(bot: str) -> None:
    state = shogi.load_sfen("7nk/9/7G1/9/9/9/9/9/K8 b GR 1")
    state.apply(state.ask(bot))
    assert state.scores == [1, -1]


@pytest.mark.parametrize("bot", ["greedy", "ab2", "ab3"])
def test_a_free_rook_is_taken(bot: str) -> None:
    state = shogi.load_sfen("4k4/9/9/4r4/4G4/9/9/9/4K4 b - 1")
    assert shogi.usi(state, state.ask(bot)) == "5e5d"


def test_who_looks_ahead_leaves_a_guarded_pawn() -> None:
    sfen = "4k4/9/4l4/4p4/9/4R4/9/9/4K4 b - 1"
    greedy, careful = (shogi.load_sfen(sfen) for _ in range(2))
    assert shogi.usi(greedy, greedy.ask("greedy")) == "5f5d"
    assert not shogi.usi(careful, careful.ask("ab2")).startswith("5f5d")
