"""My game: what every game promises, and its own rules by hand."""

from __future__ import annotations

import sparring

TEN = {"heap": 10, "vary": 0}
"""Flags of a heap of ten, without chance."""


def test_it_keeps_what_every_game_promises() -> None:
    report = sparring.check("my_game")
    assert report.passed, report


def test_who_takes_the_last_one_wins() -> None:
    state = sparring.new_state("my_game", config=TEN)
    for take in (3, 3, 3, 1):
        assert not state.over
        state.apply(take - 1)
    assert state.over
    assert list(state.scores) == [-1, 1]


def test_nobody_takes_more_than_there_is() -> None:
    state = sparring.new_state("my_game", config=TEN)
    for take in (3, 3, 2):
        state.apply(take - 1)
    assert [state.action_name(action) for action in state.legal()] == ["take 1", "take 2"]
