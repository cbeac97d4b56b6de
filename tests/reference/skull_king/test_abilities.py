"""The pirates' abilities and the cannonball in the slow Skull King."""

from __future__ import annotations

import copy

from reference.skull_king.game import SkullKing
from reference.skull_king.helpers import loaded, play
from vectors import skull_king as vectors


def test_x08_bendt_without_stock_opens_no_phase() -> None:
    config = {"num_players": 7, "deck": "STANDARD70", "abilities": 1, "episode": "ROUND"}
    game = SkullKing({**config, "start_round": 10})
    game.reset()
    # Only the king beats a led Bendt, so seat 0 gets both and keeps the king back.
    cards = sorted(game.deck, key=lambda card: card not in vectors.ids("SK Pi2"))
    hands, holder = [cards[10 * seat : 10 * seat + 10] for seat in range(7)], 0
    game.load_round(10, hands, holder)
    while game.phase == "BID":
        game.step(0)
    game.step(vectors.action("Pi2"))
    while game.tricks_done == 0:
        game.step(game.legal()[-1])
    assert game.won[holder] == 1
    assert (game.phase, game.pending, game.seat) == ("PLAY", 0, holder)


def test_bendt_draws_and_discards() -> None:
    hands = ["Pi2 G1 G2", "G4 G5 G6", "Y1 Y2 Y3"]
    game = loaded(3, hands, 0, [1, 0, 0], abilities=1)
    twin = copy.deepcopy(game.chance)
    stock = list(game.stock)
    drawn = [stock.pop(twin.below(len(stock))) for _ in range(2)]
    play(game, "Pi2 G4 Y1")
    assert (game.phase, game.seat, game.pending) == ("DISCARD", 0, 2)
    assert game.stock == stock
    assert game.hands[0] == sorted([24, 25, *drawn])
    assert 11 + 24 in game.legal()
    assert 85 not in game.legal()
    # Need is 0 and green 1 has strength .225.
    assert game.step(11 + 24)["ability_nudge"] == [-0.05, 0, 0]
    assert (game.phase, game.pending) == ("DISCARD", 1)
    assert game.observe(0)[107 + 106 * 3 + 79] == 0.5
    game.step(11 + 25)
    assert (game.phase, game.seat, game.hands[0]) == ("PLAY", 0, sorted(drawn))
    assert game.priv == [{24, 25}, set(), set()]


def test_x15_rosie() -> None:
    hands = ["G1 G2 G3 G4 G5", "Pi1 G9 G10 G11 G12", "Y1 Y2 Y3 Y4 Y5", "P1 P2 P3 P4 P5"]
    game = loaded(5, hands, 0, [0] * 4, abilities=1)
    play(game, "G1 G9 Y1 P1")
    play(game, "Pi1 Y2 P2 G2")
    assert (game.phase, game.seat, game.role) == ("ROSIE", 1, 1)
    assert game.legal() == [86, 87, 88, 89]
    assert game.leader == 1
    parts = game.step(89)
    assert parts["ability_nudge"] == [0, -0.05, 0, 0]
    assert (game.phase, game.seat, game.leader) == ("PLAY", 0, 0)

    game = loaded(1, ["G1", "Pi1", "Y1", "P1"], 0, [0, 1, 0, 0], abilities=1)
    play(game, "G1 Pi1 Y1 P1")
    assert game.terminated


def test_jade_sees_the_stock_of_the_moment() -> None:
    game = loaded(2, ["Pi4 G1", "G4 G5", "Y1 Y2"], 0, [1, 0, 0], abilities=1)
    play(game, "Pi4 G4 Y1")
    assert game.phase == "PLAY"
    assert game.priv == [set(game.stock), set(), set()]
    block = game.observe(0)[107 + 106 * 3 + 5 :][:74]
    assert {index for index, value in enumerate(block) if value} == set(game.stock)


def test_rascal_and_harry_decide_the_score() -> None:
    hands = ["Pi3 Pi5 G1", "G4 G5 G6", "Y1 Y2 Y3"]
    game = loaded(3, hands, 0, [1, 0, 0], abilities=1)
    play(game, "Pi3 G4 Y1")
    assert (game.phase, game.legal()) == ("WAGER", [94, 95, 96])
    # The bid is reached, so that the wager looks safe.
    assert game.step(96)["ability_nudge"] == [0.1, 0, 0]
    play(game, "Pi5 G5 Y2")
    assert (game.phase, game.harry) == ("PLAY", 0)
    play(game, "G1 G6 Y3")
    assert (game.phase, game.seat, game.legal()) == ("HARRY", 0, [97, 98, 99])
    parts = game.step(99)
    assert parts["ability_nudge"] == [0.3, 0, 0]
    assert game.terminated
    assert game.last_round is not None
    assert game.last_round["bid"] == [2, 0, 0]
    assert game.last_round["points"] == [60, -30, 30]


def test_rascal_on_the_last_trick() -> None:
    for rascal_last, phase in ((0, "END"), (1, "WAGER")):
        config = {"abilities": 1, "rascal_last": rascal_last}
        game = loaded(1, ["Pi3", "G4", "Y1"], 0, [1, 0, 0], **config)
        play(game, "Pi3 G4 Y1")
        assert game.phase == phase


def test_harry_keeps_the_bid_in_range() -> None:
    game = loaded(1, ["Pi5", "G4", "Y1"], 0, [1, 0, 0], abilities=1)
    play(game, "Pi5 G4 Y1")
    assert (game.phase, game.legal()) == ("HARRY", [97, 98])


def test_cannonball_is_hidden_until_all_are_in() -> None:
    config = {"scoring": "RASCAL", "cannonball": 1}
    game = loaded(1, ["G9", "G4", "Y1"], 2, [1, 0, 0], **config)
    offset = 107 + 106 * 3 + 80
    assert (game.phase, game.seat, game.role, game.legal()) == ("CANNON", 2, 0, [100, 101])
    game.step(101)
    assert [game.observe(2)[offset + 3 * s + 2] for s in range(3)] == [1, 0, 0]
    assert [game.observe(0)[offset + 3 * s + 2] for s in range(3)] == [0, 0, 0]
    game.step(101)
    game.step(100)
    assert [game.observe(0)[offset + 3 * s + 2] for s in range(3)] == [1, 0, 1]
    play(game, "Y1 G9 G4")
    assert game.last_round is not None
    assert game.last_round["points"] == [0, 10, 0]
