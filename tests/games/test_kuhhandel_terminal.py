"""Kuhhandel at the terminal: what is typed, what is told, and what stays secret."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sparring import State, new_state
from sparring.games.kuhhandel import KINDS, load_position, read
from sparring.games.kuhhandel.choices import pile_choice, read_pile
from sparring.games.kuhhandel.terminal import KuhhandelTerminal

H = (2, 4, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("typed", "pile"),
    [
        ("50 2x10 0", (1, 2, 1, 0, 0, 0)),
        ("10 10", (0, 2, 0, 0, 0, 0)),
        ("2x0, 50", (2, 0, 1, 0, 0, 0)),
        ("50+10", (0, 1, 1, 0, 0, 0)),
        ("all", H),
        ("nothing", (0, 0, 0, 0, 0, 0)),
        ("2x50", None),
        ("20", None),
        ("ten", None),
        ("x10", None),
    ],
)
def test_cards_as_they_are_typed(typed: str, pile: tuple[int, ...] | None) -> None:
    assert read_pile(typed, H) == pile


def test_only_piles_that_can_be_laid_are_choices() -> None:
    state = load_position([{"cow": 1}, {"cow": 1}, {}])
    state.apply(9)
    for pile in (H, (1, 0, 0, 0, 0, 0), (0, 4, 1, 0, 0, 0)):
        choice = pile_choice(state, pile)
        assert choice is not None
        copy = state.clone()
        for action in (choice.action, *choice.then):
            copy.apply(action)
        assert read(copy).offer == pile
    assert pile_choice(state, (0, 0, 0, 0, 0, 0)) is None


def test_one_kind_of_card_is_still_a_choice() -> None:
    """A forced move is one without another pile, not one without another card."""
    hands = [[3, 0, 0, 0, 0, 0], H, H]
    for empty_offer, shown in ((0, ["0", "3x0"]), (1, ["-", "0", "3x0"])):
        config = {"empty_offer": empty_offer}
        state = load_position([{"cow": 1}, {"cow": 1}, {}], hands, config=config)
        state.apply(9)
        terminal = KuhhandelTerminal(state.rules, 0)
        choices = terminal.choices(state)
        assert [choice.short for choice in choices] == shown
        assert [c.short for c in terminal.match(state, "2x0", choices)] == ["2x0"]
        assert bool(terminal.match(state, "nothing", choices)) == bool(empty_offer)
        assert ("nothing" in terminal.list_choices(choices)) == bool(empty_offer)


def test_payments_are_offered_as_sets() -> None:
    state = load_position([{}, {}, {}], deck=["horse"])
    terminal = KuhhandelTerminal(state.rules, 1)
    for action in (0, 47, 50, 41, 43):  # seat 1 bids 30 and is sold the horse
        state.apply(action)
    choices = terminal.choices(state)
    assert [choice.short for choice in choices] == ["3x10", "50"]
    assert terminal.match(state, "50", choices) == [choices[1]]
    assert terminal.match(state, "1", choices) == [choices[0]]
    assert terminal.match(state, "50 10", choices) == []


def told(state: State, person: int, actions: list[int]) -> list[str]:
    terminal, lines = KuhhandelTerminal(state.rules, person), []
    for action in actions:
        before = state.clone()
        state.apply(action)
        lines += terminal.narrate(before, action, state)
    return lines


def test_the_story_keeps_secrets() -> None:
    """Who is not part of a trade or payment reads the number of cards only."""
    stories: dict[int, set[tuple[str, ...]]] = {0: set(), 1: set(), 2: set()}
    for offer in ([0, 2, 0], [1, 0, 1], [1, 1, 0]):
        for person, found in stories.items():
            state = load_position([{"cow": 1}, {"cow": 1}, {}])
            actions = [9, *(47 + count for count in offer), 45]
            found.add(tuple(told(state, person, actions)))
    assert [len(found) for found in stories.values()] == [3, 3, 1]
    assert stories[2] == {
        (
            "seat 0 challenges seat 1 for 1 cow (800)",
            "seat 0 lays down 2 cards",
            "seat 1 accepts 2 cards",
            "  seat 0 takes 1 cow",
        )
    }
    paid = [0, 47, 50, 41, 43, 48]  # seat 1 pays 30 with the fifty
    for person, seen in ((0, ": 50"), (1, ": 50"), (2, "")):
        lines = told(load_position([{}, {}, {}], deck=["horse"]), person, paid)
        assert lines[-2].endswith(f"1 card{seen}")


def test_the_story_is_true() -> None:
    """Told takings add up to the animals that everybody has."""
    for seed, config in enumerate(
        [{}, {"num_players": 4, "bluff": "FORBID"}, {"auto_forced": 0, "tie_money": "TAKE_BACK"}]
    ):
        state = new_state("kuhhandel", seed=seed, config=config)
        terminal = KuhhandelTerminal(state.rules, person=-1)
        rng = np.random.default_rng(seed)
        farms = [[0] * len(KINDS) for _ in range(state.rules.seats)]
        while not state.over:
            before, action = state.clone(), int(rng.choice(state.legal()))
            state.apply(action)
            for line in terminal.narrate(before, action, state):
                if found := re.match(r"  seat (\d) takes the (\w+)", line):
                    farms[int(found[1])][KINDS.index(found[2])] += 1
                if found := re.match(r"  seat (\d) takes (\d) ", line):
                    was = read(before)
                    seat, count = int(found[1]), int(found[2])
                    farms[seat][was.traded] += count
                    farms[was.turn + was.target - seat][was.traded] -= count
            assert farms == read(state).animals
