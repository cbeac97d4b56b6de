"""What a person types and reads where a game has no terminal of its own."""

from __future__ import annotations

import pytest

from sparring import State, new_state
from sparring.games.terminal import ActionChoice, Terminal, match_choices

CHOICES = [
    ActionChoice(1, "G1", "Green 1"),
    ActionChoice(2, "G10", "Green 10"),
    ActionChoice(3, "Pi1", "Pirate Rosie"),
    ActionChoice(4, "TP", "Tigress as pirate"),
    ActionChoice(5, "TE", "Tigress as escape"),
]


@pytest.mark.parametrize(
    ("typed", "actions"),
    [
        ("g1", [1]),
        ("G10", [2]),
        ("g", [1, 2]),
        ("pi", [3]),
        ("3", [3]),
        ("5", [5]),
        ("6", []),
        ("t", [4, 5]),
        ("te", [5]),
        ("green 10", [2]),
        ("ros", [3]),
        ("esc", [5]),
        ("", []),
        ("x", []),
    ],
)
def test_what_a_word_means(typed: str, actions: list[int]) -> None:
    assert [choice.action for choice in match_choices(typed, CHOICES)] == actions


def test_a_number_that_is_not_listed_is_no_word_of_a_name() -> None:
    choices = [ActionChoice(1, "G1", "Green 1", number=4), ActionChoice(2, "10x", "Ten", number=5)]
    assert match_choices("1", choices) == []
    assert match_choices("4", choices) == choices[:1]


def test_any_turn_game_has_a_plain_terminal() -> None:
    state = new_state("tic_tac_toe")
    terminal = Terminal(state.rules, 0)
    assert [choice.short for choice in terminal.choices(state)][:3] == ["a1", "b1", "c1"]
    before: State = state.clone()
    state.apply(4)
    assert terminal.narrate(before, 4, state) == ["you: b2"]
