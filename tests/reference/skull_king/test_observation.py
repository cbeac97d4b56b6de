"""What a seat of the slow Skull King sees (section 16), and what it must not see."""

from __future__ import annotations

import copy
import random

from reference.philox import CHANCE, Philox
from reference.skull_king.game import SkullKing
from reference.skull_king.helpers import loaded, play, random_config, random_step


def test_spot_checks_of_section_16_5() -> None:
    hands = ["G5 Pi1 E1", "G6 G7 G8", "Y1 Y2 Y3", "P1 P2 P3"]
    vector = loaded(3, hands, 1).observe(0)
    assert len(vector) == 531
    nonzero = {index: value for index, value in enumerate(vector) if value}
    expected = {5: 1.0, 28: 1.0, 66: 1.0, 430: 1.0, 432: 1.0, 436: 1.0, 444: 0.3, 446: 0.3}
    # Relative seat 1 leads and is to act (features 12 and 15).
    assert nonzero == {**expected, 489: 1.0, 492: 1.0}


def test_observation_within_a_trick() -> None:
    hands = ["G5 L1", "TE B14", "E1 P3", "Y1 Y2"]
    game = loaded(2, hands, 0, [1, 1, 0, 0], history=1, phase_embed=1)
    play(game, "L1 B14 E1 Y1  TE")
    # Seat 1 took Loot 1 with the black 14; now it leads the Tigress as escape. Observer 3.
    vector = game.observe(3)
    assert vector[:74] == [float(card == 53) for card in range(74)]
    for relative, cards in ((0, {52}), (1, {72}), (2, {23, 71}), (3, {66})):
        block = vector[74 + 74 * relative :][:74]
        assert {index for index, value in enumerate(block) if value} == cards
    tigress = vector[370 + 2 * 14 :][:14]
    assert {index for index, value in enumerate(tigress) if value} == {0, 9, 13}
    assert sum(vector[370:426]) == 3
    assert vector[426:434] == [0, 0, 0, 0, 1, 0, 0, 1]
    assert vector[444:459] == [0.2, 0.1, 0.1, 1] + [0] * 11
    seat1 = vector[459 + 2 * 18 :][:18]
    assert seat1 == [1, 0.1, 0.1, 0, 1, 0, 0, 0.2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    own = vector[459:][:18]
    assert own == [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert vector[531:534] == [1, 0, 0]
    assert vector[534:542] == [53, 73, 24, 67, 0, 0, 75, 0]
    assert vector[542:574] == [0] * 32
    assert vector[574:] == [1, 2] + [-1] * 8
    # Loot 1 allies seats 0 and 1, which each of them sees on the other.
    assert [game.observe(0)[459 + 18 * s + 14] for s in range(4)] == [0, 0.5, 0, 0]
    assert [game.observe(1)[459 + 18 * s + 14] for s in range(4)] == [0, 0, 0, 0.5]


def test_x09_bids_stay_hidden_until_complete() -> None:
    for open_bids in (0, 1):
        game = loaded(2, ["G1 G2", "G3 G4", "G5 G6", "G7 G8"], 1, open_bids=open_bids)
        bids = [2, 0, 1, 2]
        for placed in range(5):
            done = [(1 + i) % 4 for i in range(placed)]
            for observer in range(4):
                vector = game.observe(observer)
                for relative in range(4):
                    seat = (observer + relative) % 4
                    features = vector[459 + 18 * relative :][:18]
                    known = seat in done and (seat == observer or open_bids or placed == 4)
                    assert features[0] == float(known)
                    assert features[1] == (bids[seat] / 10 if known else 0)
                assert vector[458] == ((5 - 2) / 10 if placed == 4 else 0)
            if placed < 4:
                game.step(bids[game.seat])


def scrambled(game: SkullKing, observer: int, rng: random.Random) -> SkullKing:
    """A copy in which everything that the observer must not see is different (section 16.5)."""
    other = copy.deepcopy(game)
    others = [seat for seat in range(game.seats) if seat != observer]
    hidden = [card for seat in others for card in other.hands[seat]] + other.stock
    hidden += [card for card in other.discards if card not in other.priv[observer]]
    rng.shuffle(hidden)
    for seat in others:
        size = len(other.hands[seat])
        other.hands[seat], hidden = sorted(hidden[:size]), hidden[size:]
        if seat == other.ghost:
            other.ghost_order = rng.sample(other.hands[seat], size)
    other.stock, other.discards = sorted(hidden[: len(game.stock)]), hidden[len(game.stock) :]
    other.chance = Philox(rng.getrandbits(64), 0, 0, CHANCE)
    for player in range(game.num_players):
        if player == observer:
            continue
        other.priv[player] = set(rng.sample(game.deck, 3))
        hide_bid = game.phase == "BID" and not game.config["open_bids"]
        if hide_bid and game.bid[player] != -1:
            other.bid[player] = rng.randint(0, game.cards)
        if game.phase == "CANNON":
            other.cannon[player] = 1 - game.cannon[player]
    return other


def test_observations_leak_nothing() -> None:
    rng = random.Random(31)
    for number in range(30):
        game = SkullKing({**random_config(rng), "history": 1}, Philox(3, number, 0, CHANCE))
        game.reset()
        while not game.terminated:
            if rng.random() < 0.25:
                observer = rng.randrange(game.num_players)
                assert scrambled(game, observer, rng).observe(observer) == game.observe(observer)
            random_step(game, rng)
