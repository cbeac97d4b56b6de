"""Kuhhandel as text: it shows what a seat may know and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparring import State, new_state
from sparring.games.kuhhandel import (
    KINDS,
    count_noun,
    load_position,
    pile_value,
    read,
    show_animals,
    show_pile,
)


def positions(config: dict[str, Any], seeds: range) -> list[State]:
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        state = new_state("kuhhandel", seed=seed, config=config)
        while not state.over:
            found.append(state.clone())
            state.apply(int(rng.choice(state.legal())))
        found.append(state)
    return found


@pytest.mark.parametrize(
    "config",
    [
        {"num_players": 4, "bluff": "CAP", "auto_forced": 0},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param(
            {"num_players": 5, "bluff": "FORBID", "open_pay": 1, "empty_offer": 1},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_view_does_not_depend_on_what_is_hidden(config: dict[str, Any]) -> None:
    different = 0
    for at, state in enumerate(positions(config, range(2))[::9]):
        for viewer in range(state.rules.seats):
            other = state.clone()
            other.resample_hidden(viewer, seed=at)
            different += other.text() != state.text()
            assert other.text(viewer) == state.text(viewer)
            assert other.audit() == ""
    assert different > 50


def test_the_whole_view_shows_all_money_and_the_deck() -> None:
    for state in positions({"num_players": 4}, range(1)):
        at, text = read(state), state.text()
        for seat, hand in enumerate(at.money):
            line = text.splitlines()[2 + seat]
            assert f"  {pile_value(hand)}: {show_pile(hand)}  " in line
            assert line.endswith(show_animals(at.animals[seat]))
        assert text.endswith(f"deck    {' '.join(KINDS[kind] for kind in at.deck) or '-'}")


def test_a_trade_seen_from_every_seat() -> None:
    state = load_position([{"cow": 2}, {"cow": 2}, {"horse": 4}], deck=["pig"])
    state.apply(9)
    for count in (1, 0, 1):
        state.apply(47 + count)
    head = "Trade for 2 cows (800), "
    assert state.text(0).startswith(f"{head}you against seat 1: seat 1 answers\n")
    assert state.text(1).startswith(f"{head}seat 0 against you: you answer\n")
    assert "offer   2 cards: 50 0" in state.text(0)
    for viewer in (1, 2):
        assert state.text(viewer).endswith("offer   2 cards")
    assert "you       1000  90: 50 4x10 2x0  horse 4*" in state.text(2)
    state.apply(46)
    assert "you lay down a counter-offer" in state.text(1)
    assert "how many of 50?" in state.text(1)
    assert "how many" not in state.text(0)


def test_an_auction_seen_from_a_bidder() -> None:
    state = load_position([{}, {}, {}], deck=["goose"])
    for action in (0, 49, 50, 41, 43):  # seat 1 bluffs 230 and is caught
        state.apply(action)
    assert state.text(2) == (
        "seat 0 auctions a goose (40): you bid or pass\n"
        "        points  money            animals\n"
        "seat 0       0  90: 50 4x10 2x0  -\n"
        "seat 1       0  90: 50 4x10 2x0  -\n"
        "you          0  90: 50 4x10 2x0  -\n"
        "bids    none yet; bluffed: seat 1"
    )


def test_small_words() -> None:
    assert show_pile((0, 0, 0, 0, 0, 0)) == "-"
    assert show_pile((3, 1, 0, 2, 0, 0)) == "2x100 10 3x0"
    assert [count_noun(2, kind) for kind in ("goose", "sheep", "cow")] == [
        "2 geese",
        "2 sheep",
        "2 cows",
    ]
    assert count_noun(1, "goose") == "1 goose"
