"""Positions as text: they show what a seat may know and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparring import ConfigError, Rules, SparringError, State, new_state
from sparring.games.skull_king import (
    CARDS,
    card_id,
    card_short_name,
    hand,
    load_round,
    show_card_ranges,
)
from sparring.games.views import observation_view

HANDS = [["G7", "Pi1", "T"], ["SK", "E1", "Y4"], ["M1", "B14", "KR"], ["WW", "L1", "P3"]]


def positions(config: dict[str, Any], seeds: range) -> list[State]:
    rules = Rules("skull_king", config)
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        state = new_state(rules, seed=seed)
        while not state.over:
            found.append(state.clone())
            state.apply(int(rng.choice(state.legal())))
        found.append(state)
    return found


@pytest.mark.parametrize(
    "config",
    [
        {"num_players": 2, "rounds": [3, 6]},
        {"num_players": 3, "open_bids": 1, "rounds": [5]},
        pytest.param({"rounds": [1, 4, 7]}, marks=pytest.mark.slow),
        pytest.param(
            {
                "num_players": 6,
                "abilities": 1,
                "scoring": "RASCAL",
                "cannonball": 1,
                "rounds": [4, 8],
            },
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_view_does_not_depend_on_what_is_hidden(config: dict[str, Any]) -> None:
    different = 0
    for at, state in enumerate(positions(config, range(4))[::3]):
        whole = state.text()
        for viewer in range(state.rules.seats):
            other = state.clone()
            other.resample_hidden(viewer, seed=at)
            different += other.text() != whole
            assert other.text(viewer) == state.text(viewer)
    assert different > 50


def test_the_whole_view_shows_every_card() -> None:
    for state in positions({"num_players": 5, "abilities": 1, "rounds": [6]}, range(3)):
        text = state.text()
        for seat in range(5):
            names = " ".join(card_short_name(card) for card in hand(state, seat)) or "-"
            assert f"hand {seat}  {names}\n" in text
        assert "\nstock   " in text


def test_the_ghost_keeps_its_order_to_itself() -> None:
    hands = [["G7", "B2", "Y1"], ["SK", "E1", "Y4"], ["M1", "T", "G3"]]
    state = load_round(3, hands, 1, config={"num_players": 2})
    assert "ghost   M1 T G3, in this order" in state.text()
    for viewer in (0, 1):
        assert "M1" not in state.text(viewer)
    for action in (0, 0, 11 + card_id("E1")):
        state.apply(action)
    assert "ghost   T G3, in this order" in state.text()
    assert "trick   you E1, ghost M1\n        M1 wins so far, nothing to follow" in state.text(1)


def test_bids_stay_hidden_until_all_are_in() -> None:
    state = load_round(3, HANDS, 0, [10, 20, 30, -40])
    state.apply(2)
    assert state.text(0).splitlines()[2].split()[:2] == ["you", "2"]
    assert state.text(1).splitlines()[2].split()[:3] == ["seat", "0", "?"]
    for bid in (0, 1, 1):
        state.apply(bid)
    assert state.text(1).splitlines()[2].split()[:3] == ["seat", "0", "2"]
    assert [line.split()[-2] for line in state.text(3).splitlines()[3:6]] == ["20", "30", "-40"]


def test_short_names_and_ids_are_one_to_one() -> None:
    names = [card_short_name(card) for card in range(CARDS)]
    assert [card_id(name) for name in names] == list(range(CARDS))
    assert card_id("g7") == 30
    assert names[:10] == ["SK", "WW", "KR", "M1", "M2", "Pi1", "Pi2", "Pi3", "Pi4", "Pi5"]
    assert names[66:] == ["E1", "E2", "E3", "E4", "E5", "T", "L1", "L2"]
    with pytest.raises(ConfigError, match="no card called 'G15'"):
        card_id("G15")


def test_runs_of_cards_are_drawn_together() -> None:
    cards = [card_id(name) for name in ("SK", "Pi4", "Pi5", "B1", "B2", "B3", "G1", "T", "L1")]
    assert show_card_ranges(cards) == "SK Pi4 Pi5 B1-B3 G1 T L1"
    assert show_card_ranges([]) == "-"


def test_load_round_deals_what_was_asked() -> None:
    state = load_round(3, HANDS, 2, [10, 20, 30, -40])
    assert state.seat == 2
    assert state.scores == [10, 20, 30, -40]
    for seat, names in enumerate(HANDS):
        assert hand(state, seat) == sorted(card_id(name) for name in names)
    by_id = load_round(3, [[card_id(name) for name in names] for names in HANDS], 2)
    assert hand(by_id, 3) == hand(state, 3)
    while not state.over:
        state.apply(state.legal()[0])
    assert state.audit() == ""


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"round": 11}, "round must be 1..10"),
        ({"first_leader": 4}, "first_leader must be 0..3"),
        ({"round": 4}, "needs 4 cards"),
        ({"hands": HANDS[:3]}, "needs 4 hands, got 3"),
        ({"hands": [*HANDS[:3], ["G7", "L1", "P3"]]}, "dealt twice"),
        ({"hands": [*HANDS[:3], ["G77", "L1", "P3"]]}, "no card called 'G77'"),
        ({"scores": [1, 2]}, "need 4 scores"),
        ({"config": {"deck": "STANDARD70"}}, "not in the deck"),
    ],
)
def test_load_round_says_what_is_wrong(change: dict[str, Any], complaint: str) -> None:
    given: dict[str, Any] = {"round": 3, "hands": HANDS, "first_leader": 0, **change}
    with pytest.raises(ConfigError, match=complaint):
        load_round(**given)


def test_a_viewer_must_sit_at_the_table() -> None:
    with pytest.raises(SparringError, match=r"seats 0\.\.1, not 2"):
        new_state("tic_tac_toe").text(2)


def test_the_plain_view_of_a_secret_game_is_the_observation() -> None:
    """A game without a view of its own must not show a seat the true fields."""
    for state in positions({"rounds": [3]}, range(2))[::3]:
        for viewer in range(4):
            other = state.clone()
            other.resample_hidden(viewer, seed=1)
            assert observation_view(other, viewer) == observation_view(state, viewer)
    state = load_round(3, HANDS, 0)
    assert "hand.Green 7: 1" in observation_view(state, 0)
    assert "Skull King" not in observation_view(state, 0)
