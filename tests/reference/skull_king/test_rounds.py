"""Whole rounds of the slow Skull King: deals, leaders, legal actions, the ghost, flags."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reference.philox import CHANCE, Philox
from reference.skull_king.game import SkullKing
from reference.skull_king.helpers import loaded, new_game, play, random_step
from reference.skull_king.rules import DECKS
from vectors import skull_king as vectors


def test_illegal_configurations_are_refused() -> None:
    refused: list[dict[str, Any]] = [
        {"players": 4},
        {"num_players": 9},
        {"cannonball": 1},
        {"rounds": []},
        {"rounds": [11]},
        {"deck": "FULL73"},
        {"episode": "ROUND", "rounds": [1, 2], "start_round": 3},
    ]
    for config in refused:
        with pytest.raises(ValueError, match=r"unknown|not one of|needs|must"):
            SkullKing(config)


def test_round_draw_follows_the_weights() -> None:
    weights = [0.0] * 10
    weights[3], weights[8] = 1.0, 3.0
    config = {"episode": "ROUND", "round_weights": weights}
    found = []
    for episode in range(200):
        game = SkullKing(config, Philox(2, 0, episode, CHANCE))
        game.reset()
        x = Philox(2, 0, episode, CHANCE).u32()
        assert game.round == (4 if x < 2**30 else 9)
        found.append(game.round)
    assert 30 < found.count(4) < 70


def test_deal_order_of_section_14_4() -> None:
    rng = Philox(9, 1, 2, CHANCE)
    game = SkullKing({"rounds": [3], "deck": "STANDARD70"}, rng)
    game.reset()
    twin = Philox(9, 1, 2, CHANCE)
    assert game.first == twin.below(4)
    deck = DECKS["STANDARD70"][:]
    for i in range(12):
        j = i + twin.below(70 - i)
        deck[i], deck[j] = deck[j], deck[i]
    assert game.hands == [sorted(deck[3 * seat : 3 * seat + 3]) for seat in range(4)]
    assert game.stock == sorted(deck[12:])


@pytest.mark.parametrize("vector", vectors.ROUNDS, ids=lambda vector: vector["name"])
def test_rounds(vector: dict[str, Any]) -> None:
    config = {**vector.get("config", {}), "num_players": vector["num_players"], "history": 1}
    game = loaded(vector["round"], vector["hands"], vector["leader"], vector["bids"], **config)
    actors, score_delta = [], [0.0] * game.num_players
    for word in vector["plays"].split():
        actors.append(game.seat)
        score_delta = game.step(vectors.action(word))["score_delta"]
    assert game.terminated
    state = game.state()
    assert state["won"] == vector["won"]
    assert state["last_round"]["points"] == vector["points"] == state["score"]
    assert score_delta == [points / 100 for points in vector["points"]]
    if "actors" in vector:
        assert actors == vector["actors"]
    if "loot" in vector:
        assert state["loot"] == vector["loot"]
    if "leaders" in vector:
        assert game.history_leaders[: len(vector["leaders"])] == vector["leaders"]


def test_x07_first_leaders() -> None:
    players, first, leaders = vectors.FIRST_LEADERS
    game = SkullKing({"num_players": players}, Philox(3, 0, 0, CHANCE))
    game.load_round(1, [[10], [11], [12], [13]], first)
    rng = random.Random(1)
    found: dict[int, int] = {}
    while not game.terminated:
        found.setdefault(game.round, game.leader)
        random_step(game, rng)
    assert [found[number] for number in range(1, 11)] == leaders


@pytest.mark.parametrize(("deck", "players", "number", "dealt", "stock"), vectors.DEAL_SIZES)
def test_x08_deals(deck: str, players: int, number: int, dealt: int, stock: int) -> None:
    game = new_game(num_players=players, deck=deck, episode="ROUND", start_round=number)
    assert sum(len(hand) for hand in game.hands) == dealt
    assert len(game.stock) == stock


def test_x10_shown_void() -> None:
    hands = ["G1 G2", "G3 G4", "Y3 Pi1", "G5 G6"]
    for card, shown in (("Y3", True), ("Pi1", False)):
        game = loaded(2, hands, 0, [0] * 4)
        play(game, f"G1 G3 {card}")
        assert game.void[2] == [False, shown, False, False]
    game = loaded(2, ["G1 G2", "G3 G4", "B3 Pi1", "G5 G6"], 0, [0] * 4, follow_rule="SEED")
    play(game, "G1 G3 B3")
    assert game.void[2] == [False] * 4


@pytest.mark.parametrize(("name", "led", "hand", "legal"), vectors.LEGAL_ACTIONS)
def test_x13_x14_legal_actions(name: str, led: str | None, hand: str, legal: list[int]) -> None:
    size = len(hand.split())
    first = [*[10, 11, 12, 13][: size - 1], vectors.card(led or "G5")[0]]
    game = SkullKing({"num_players": 2, "ghost": 0, "episode": "ROUND"})
    game.load_round(size, [first, vectors.ids(hand)], 0 if led else 1)
    game.step(0)
    game.step(0)
    if led:
        game.step(vectors.action(led))
    assert game.seat == 1
    assert game.legal() == legal


def test_ghost_wins_and_captures_without_a_score() -> None:
    config = {"num_players": 2, "abilities": 1}
    game = loaded(2, ["M1 G1", "G2 G3", "Pi1 G5"], 0, [0, 0], **config)
    play(game, "M1 G2")
    # Rosie belongs to the ghost: no ability, and it leads its second card at once.
    assert (game.phase, game.seat, game.leader) == ("PLAY", 1, 2)
    assert game.trick == [(2, 28, False)]
    assert (game.won, game.bonus) == ([0, 0, 1], [0, 0, 20])
    ghost = game.observe(0)[107 + 88 * 3 + 36 :][:18]
    assert ghost == [0, 0, 0.1, 0, 0, 0, 0, 0.2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    play(game, "G3 G1")
    assert game.state()["score"] == [20, 20]


@pytest.mark.parametrize("players", [2, 3, 5, 8])
def test_decisions_per_game(players: int) -> None:
    counts = {}
    for skip in (0, 1):
        game, rng = new_game(players, num_players=players, skip_forced=skip), random.Random(1)
        counts[skip] = 0
        while not game.terminated:
            random_step(game, rng)
            counts[skip] += 1
    assert counts[0] == (496 if players == 8 else 65 * players)
    assert counts[1] < counts[0]
