"""The reference game against the vectors of section 21 and the properties of section 22."""

from __future__ import annotations

import copy
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from reference.philox import BOTS, CHANCE, Philox, philox4x32
from reference.skull_king import bots, rewards
from reference.skull_king.game import SkullKing, capture_bonus, legal_cards, resolve, round_points
from reference.skull_king.rules import DECKS, KIND, NO_SUIT, SUIT, UNDECIDED, identical_groups
from vectors import skull_king as vectors


def new_game(seed: int = 1, **config: Any) -> SkullKing:
    game = SkullKing(config, Philox(seed, 0, 0, CHANCE))
    game.reset()
    return game


def loaded(
    number: int, hands: list[str], leader: int, bids: list[int] | None = None, **config: Any
) -> SkullKing:
    """A single round with given hands, bids already placed when they are given (per seat)."""
    config = {"episode": "ROUND", "num_players": len(hands), **config}
    game = SkullKing(config, Philox(5, 0, 0, CHANCE))
    game.load_round(number, [vectors.ids(hand) for hand in hands], leader)
    while bids is not None and game.phase == "BID":
        game.step(bids[game.seat])
    return game


def play(game: SkullKing, cards: str) -> dict[str, list[float]]:
    """Play the cards in turn; the summed reward parts."""
    total: dict[str, list[float]] = {name: [0.0] * game.num_players for name in rewards.PARTS}
    for word in cards.split():
        for name, values in game.step(vectors.action(word)).items():
            total[name] = [a + b for a, b in zip(total[name], values, strict=True)]
    return total


def random_config(rng: random.Random) -> dict[str, Any]:
    scoring = rng.choice(["SKULL_KING", "RASCAL"])
    config: dict[str, Any] = {
        "num_players": rng.randint(2, 8),
        "deck": rng.choice(list(DECKS)),
        "ghost": rng.randint(0, 1),
        "scoring": scoring,
        "cannonball": rng.randint(0, 1) if scoring == "RASCAL" else 0,
        "abilities": rng.randint(0, 1),
        "dedupe": rng.randint(0, 1),
        "skip_forced": rng.randint(0, 1),
        "episode": rng.choice(["GAME", "ROUND"]),
        "rounds": [rng.randint(1, 10) for _ in range(rng.randint(1, 6))],
        "kraken_lead": rng.choice(["WOULD_HAVE_WON", "LEFT_OF_KRAKEN"]),
        "follow_rule": rng.choice(["OFFICIAL", "FIRST_SUIT", "SEED"]),
        "whale_loot": rng.randint(0, 1),
        "tigress_bonus": rng.randint(0, 1),
        "cap8": rng.choice([8, 9]),
        "rascal_last": rng.randint(0, 1),
        "open_bids": rng.randint(0, 1),
        "obs": rng.choice(["FULL", "COMPACT"]),
        "phase_embed": rng.randint(0, 1),
        "history": rng.randint(0, 1),
        "round_weights": [rng.random() for _ in range(10)],
    }
    if rng.random() < 0.3:
        config["start_round"] = rng.randint(1, len(config["rounds"]))
    return config


def random_step(game: SkullKing, rng: random.Random) -> dict[str, list[float]]:
    return game.step(rng.choice(game.legal()))


def test_philox_known_answers() -> None:
    assert philox4x32((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = 0xFFFFFFFF
    known = (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    assert philox4x32((ones,) * 4, (ones, ones)) == known
    pi_counter = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    known = (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    assert philox4x32(pi_counter, (0xA4093822, 0x299F31D0)) == known


def test_philox_draws_walk_through_the_blocks() -> None:
    rng = Philox(0x0123456789ABCDEF, game=7, episode=3, stream=BOTS)
    drawn = [rng.u32() for _ in range(9)]
    key = (0x89ABCDEF, 0x01234567)
    expected = [word for block in range(3) for word in philox4x32((block, BOTS, 3, 7), key)]
    assert drawn == expected[:9]
    assert rng.drawn == 9
    assert rng.below(1) == 0
    assert rng.drawn == 10
    assert {rng.below(6) for _ in range(200)} == set(range(6))


@pytest.mark.parametrize(("name", "cards", "winner", "leader", "bonus"), vectors.TRICKS)
def test_tricks(name: str, cards: str, winner: int | None, leader: int, bonus: int) -> None:
    plays = vectors.cards(cards)
    assert resolve(plays) == (winner, leader)
    assert capture_bonus(plays, winner) == bonus


@pytest.mark.parametrize(("cards", "deck", "tigress_bonus", "bonus"), vectors.OTHER_BONUSES)
def test_other_bonuses(cards: str, deck: str, tigress_bonus: int, bonus: int) -> None:
    plays = vectors.cards(cards)
    winner, _ = resolve(plays)
    assert capture_bonus(plays, winner, deck, tigress_bonus) == bonus


@pytest.mark.parametrize(("cards", "leader"), vectors.LEFT_OF_KRAKEN)
def test_left_of_kraken(cards: str, leader: int) -> None:
    assert resolve(vectors.cards(cards), "LEFT_OF_KRAKEN") == (None, leader)


@pytest.mark.parametrize("rule", ["OFFICIAL", "FIRST_SUIT", "SEED"])
@pytest.mark.parametrize(("name", "trick", "hand", "legal"), vectors.LEGALITY)
def test_legality(name: str, trick: str, hand: str, legal: str, rule: str) -> None:
    other = {"FIRST_SUIT": vectors.LEGALITY_FIRST_SUIT, "SEED": vectors.LEGALITY_SEED}
    expected = other.get(rule, {}).get(name, legal)
    found = legal_cards(vectors.cards(trick), vectors.ids(hand), rule)
    assert found == sorted(vectors.ids(expected))


@pytest.mark.parametrize("vector", vectors.ROUND_SCORES, ids=lambda vector: vector["name"])
def test_round_scores(vector: dict[str, Any]) -> None:
    points = round_points(
        vector["bid"] + vector["harry"],
        vector["won"],
        vector["cards"],
        vector["capture"],
        vector["loot"],
        vector["scoring"],
        bool(vector["cannonball"]),
        vector["wager"],
    )
    assert points == vector["points"]


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


def test_x10_shown_void() -> None:
    hands = ["G1 G2", "G3 G4", "Y3 Pi1", "G5 G6"]
    for card, shown in (("Y3", True), ("Pi1", False)):
        game = loaded(2, hands, 0, [0] * 4)
        play(game, f"G1 G3 {card}")
        assert game.void[2] == [False, shown, False, False]
    game = loaded(2, ["G1 G2", "G3 G4", "B3 Pi1", "G5 G6"], 0, [0] * 4, follow_rule="SEED")
    play(game, "G1 G3 B3")
    assert game.void[2] == [False] * 4


@pytest.mark.parametrize(("scores", "rank", "win"), vectors.RANKS)
def test_x12_final_ties(scores: list[int], rank: list[float], win: list[float]) -> None:
    assert [float(x) for x in rewards.rank_rewards(scores)] == pytest.approx(rank)
    assert [float(x) for x in rewards.win_rewards(scores)] == pytest.approx(win)
    assert rewards.flat_ranks(scores) == [6.5, 6.5, -2, -5]


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


@pytest.mark.parametrize(("bid", "won", "cards", "capture", "manager", "delta"), vectors.HINDSIGHT)
def test_x16_hindsight(
    bid: int, won: int, cards: int, capture: int, manager: float, delta: float
) -> None:
    assert rewards.manager_reward(bid, won, cards) == manager
    assert round_points(bid, won, cards, capture) / 100 == delta


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


def test_reward_parts_of_a_round() -> None:
    game = loaded(1, ["B14", "Pi1", "M1"], 0)
    bid_parts = [game.step(bid)["flat_shaped"] for bid in (0, 1, 0)]
    # Estimates are 1, 1 and 0.
    assert bid_parts == [[0.1, 0, 0], [0, 2.1, 0], [0, 0, 2.1]]
    assert game.step(vectors.action("B14"))["flat_shaped"] == [pytest.approx(-0.2), 0, 0]
    assert game.step(vectors.action("Pi1"))["flat_shaped"] == [0, 1.1, 0]
    parts = game.step(vectors.action("M1"))
    assert parts["score_delta"] == [0.1, 0.6, 0.1]
    assert parts["score_delta_zs"] == [-0.25, 0.5, -0.25]
    assert parts["rank"] == [-0.5, 1, -0.5]
    assert parts["win"] == [pytest.approx(-1 / 3), pytest.approx(2 / 3), pytest.approx(-1 / 3)]
    assert parts["score_final"] == pytest.approx([10 / 300, 60 / 300, 10 / 300])
    assert parts["manager"] == [5.5, 5, 5.5]
    assert parts["worker"] == [5.5, 8, 5.5]
    # Trick 1.5 / 3 / 1.5, captures .5 + .5, round 5, rank .5 / 10 / .5, own card .5 + .1.
    assert parts["flat_shaped"] == pytest.approx([7, 19, 7.6])
    assert parts["ability_nudge"] == [0, 0, 0]


def test_worker_tests_the_need_before_the_trick() -> None:
    table = {(1, True, 0): 3, (0, True, 0): -1.5, (-1, True, 2): -2, (0, False, 0): 0.5}
    table |= {(2, False, 2): 0.5, (3, False, 2): 0, (4, False, 2): -1, (-1, False, 0): 0.5}
    for arguments, expected in table.items():
        assert rewards.worker_trick(*arguments) == expected
    flat = {(1, True, 0): 3, (0, False, 3): 1.5, (0, True, 3): -2, (2, False, 2): -1}
    flat |= {(3, False, 2): 0, (-1, True, 2): 0, (-1, False, 2): 0}
    for arguments, expected in flat.items():
        assert rewards.flat_trick(*arguments) == expected
    assert [rewards.manager_reward(*x) for x in ((0, 3, 5), (3, 2, 5), (0, 0, 7))] == [-3.5, 1, 8.5]


@pytest.mark.parametrize(
    ("hand", "estimate"),
    [
        ("SK", 1),  # .95 + .2
        ("E1 E2", 0),  # .1 - .8, not below zero
        ("G2 G4 G6", 1),  # .25 + .3 + .35 + .5 for the long suit = 1.4
        ("M1 Pi1 Pi2", 1),  # .35 + 1.6 - .5 = 1.45
        ("Pi1 Pi2 G1 P1 Y1", 3),  # 1.6 + .675 + .3 = 2.575
        ("G12 P12", 1),  # 2 * .5 = 1
        ("B8 P12 Y12 TP", 2),  # .7 + .5 + .5 + .55 = 2.25
        ("G12 G4 G8 TP WW", 3),  # .5 + .3 + .4 + .55 + .4 + .5 for 3 of 5 = 2.65
        ("SK M1 B8 B4", 3),  # .95 + .35 + .7 + .6 + .2 = 2.8; .7 is not above .7
        ("G12 P4 TP E1 E2", 1),  # .5 + .3 + .55 + .1 - .8 = .65
        ("B4 G8 P8 L1 L2", 2),  # .6 + .4 + .4 + .16 = 1.56
    ],
)
def test_flat_estimate(hand: str, estimate: int) -> None:
    cards = vectors.ids(hand)
    assert rewards.flat_estimate(cards, len(cards)) == estimate


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


def test_rule_bot_by_hand() -> None:
    class Middle:
        def u32(self) -> int:
            return 2**31

        def below(self, m: int) -> int:
            raise AssertionError("no such draw")

    # .9 + .6 + .4 + .3 + 0 = 2.2; then .7 + .4 + .4 = 1.5 rounds to the even 2; .2 + .3 = .5 to 0.
    for hand, bid in (("SK Pi1 M1 G12 E1", 2), ("B10 B6 M1", 2), ("B1 G12", 0)):
        size = len(hand.split())
        filler = " ".join(f"P{n}" for n in range(1, size + 1))
        game = loaded(size, [hand, filler], 0, ghost=0)
        assert game.bot("rule_medium", Middle()) == bid

    hands = ["SK WW G12 P13 E1 T", "Y1 Y2 Y3 Y4 Y5 Y6"]
    # Ascending: E1, G12 .357, P13 .379, T .55, WW .6, SK; MEDIUM takes index 3, the Tigress.
    expected = {0: "E1", 6: "E1", 5: "SK", 3: "SK", 2: "TP", 1: "TP"}
    for bid, card in expected.items():
        game = loaded(6, hands, 0, [bid, 0], ghost=0)
        assert game.bot("rule_hard", Middle()) == vectors.action(card)
    game = loaded(2, ["T SK", "Y1 Y2"], 0, [0, 0], ghost=0)
    assert game.bot("rule_medium", Middle()) == 85


def test_captain_by_hand() -> None:
    rng = Philox(0, 0, 0, BOTS)
    # King: (1 - 4/73)^1 = .945; 0.95 * .945 + .5 floors to 1. Escape alone: 0.
    for hand, bid in (("SK", 1), ("E1", 0), ("G14", 0), ("B14", 1)):
        assert loaded(1, [hand, "P1"], 0, ghost=0).bot("captain", rng) == bid
    # Last to act with need below left: the cheapest card that surely wins.
    game = loaded(3, ["G5 P1 P2", "G9 G12 SK"], 0, [0, 1], ghost=0)
    play(game, "G5")
    assert game.bot("captain", rng) == vectors.action("G9")
    # Without need: the most valuable card that loses; winning is certain with the king.
    game = loaded(3, ["G5 P1 P2", "G3 G4 SK"], 0, [0, 0], ghost=0)
    play(game, "G5")
    assert game.bot("captain", rng) == vectors.action("G4")
    # Need equals the tricks left: the surest card, and the cheapest of these.
    game = loaded(3, ["G5 P1 P2", "G3 Pi1 SK"], 0, [0, 3], ghost=0)
    play(game, "G5")
    assert game.bot("captain", rng) == vectors.action("Pi1")


def test_captain_threat() -> None:
    deck = DECKS["FULL74"]
    threats = {"SK": 2, "Pi1": 1, "TP": 1, "M1": 5.5, "B14": 8.5, "B10": 12.5}
    threats |= {"G14": 8.4 + 8.5, "G10": 4 + 8.4 + 8.5}
    for card, threat in threats.items():
        found = bots.captain_threat(vectors.card(card)[0], deck, ())
        assert float(found) == pytest.approx(threat)
    seen = vectors.ids("SK Pi1 T B14 G12")
    assert bots.captain_threat(vectors.card("G10")[0], deck, seen) == 3 + 13 * Fraction(3, 5) + 6


def test_extension_phases_of_bots() -> None:
    rng = Philox(0, 0, 0, BOTS)
    hands = ["Pi1 Pi2 Pi5", "G4 G5 G6", "Y1 Y2 Y3"]
    for name in ("rule_easy", "captain"):
        game = loaded(3, hands, 0, [2, 0, 0], abilities=1)
        play(game, "Pi1 G4 Y1")
        assert game.bot(name, rng) == 86
        game.step(86)
        play(game, "Pi2 G5 Y2")
        # Need is 0: the strongest card goes.
        strongest = min(game.hands[0], key=lambda card: (-bots.captain_value(card), card))
        if name == "captain":
            assert game.bot(name, rng) == 11 + strongest
        while game.phase == "DISCARD":
            drop = [card for card in game.hands[0] if card != 9]
            game.step(11 + drop[0])
        play(game, "Pi5 G6 Y3")
        assert game.phase == "HARRY"
        assert game.bot(name, rng) == 99
    assert rng.drawn == 0


def test_bots_always_choose_legal_actions() -> None:
    rng = random.Random(77)
    for number in range(80):
        config = random_config(rng)
        game = SkullKing(config, Philox(77, number, 0, CHANCE))
        game.reset()
        draws = Philox(77, number, 0, BOTS)
        while not game.terminated:
            action = game.bot(rng.choice(bots.NAMES), draws)
            assert action in game.legal()
            game.step(action)


def test_better_bots_score_better() -> None:
    totals = [0] * 4
    for number in range(8):
        game = SkullKing(None, Philox(8, number, 0, CHANCE))
        game.reset()
        draws = Philox(8, number, 0, BOTS)
        lineup = ["captain", "random", "rule_medium", "random"]
        while not game.terminated:
            game.step(game.bot(lineup[game.seat], draws))
        totals = [a + b for a, b in zip(totals, game.score, strict=True)]
    assert min(totals[0], totals[2]) > max(totals[1], totals[3])


def check_state(game: SkullKing) -> None:
    everywhere = [card for hand in game.hands for card in hand]
    everywhere += [card for cards in game.played for card in cards]
    everywhere += game.stock + game.discards
    assert sorted(everywhere) == game.deck
    sizes = [len(hand) for hand in game.hands]
    if game.phase == "DISCARD":
        sizes[game.seat] -= game.pending
    assert max(sizes) - min(sizes) <= (1 if game.trick else 0)
    if game.trick:
        on_table = {seat for seat, _, _ in game.trick}
        assert {s for s in range(game.seats) if sizes[s] == min(sizes)} == on_table
    state = game.state()
    assert state["hands"] == game.hands
    if game.ghost is not None:
        assert sorted(game.ghost_order) == game.hands[game.ghost]
        assert game.void[game.ghost] == [False] * 4
    if game.terminated:
        assert game.legal() == []
        return
    legal = game.legal()
    assert legal
    assert legal == sorted(set(legal))
    assert legal[-1] < game.action_count
    if game.config["skip_forced"]:
        assert len(legal) > 1
    if game.phase == "PLAY":
        hand = game.hands[game.seat]
        playable = {71 if action == 85 else action - 11 for action in legal}
        assert playable <= set(hand)
        suit = game.follow()
        if suit not in (UNDECIDED, NO_SUIT) and any(SUIT[card] == suit for card in hand):
            allowed = {None, suit, 0} if game.config["follow_rule"] == "SEED" else {None, suit}
            assert all(SUIT[card] in allowed for card in playable)


def check_observation(game: SkullKing, observer: int) -> None:
    vector = game.observe(observer)
    assert len(vector) == game.observation_size()
    assert all(isinstance(value, float) and math.isfinite(value) for value in vector)
    assert sum(vector[:74]) == len(game.hands[observer])
    blocks = game.seats + 1 if game.config["obs"] == "FULL" else 2
    for card in range(74):
        assert sum(vector[74 * block + card] for block in range(blocks)) <= 1


def check_round(game: SkullKing, destroyed: int) -> None:
    last = game.last_round
    assert last is not None
    for player in range(game.num_players):
        bid, won, cards = last["bid"][player], last["won"][player], last["cards"][player]
        points, exact = last["points"][player], bid == won
        extra = 20 if game.config["abilities"] else 0
        assert -10 * cards - extra <= points <= 20 * cards + 280 + extra
        assert 0 <= last["loot_exact"][player] <= last["loot"][player] <= 2
        if game.config["scoring"] == "SKULL_KING":
            assert points % 10 == 0
            assert points <= 0 or exact
    leviathans = game.config["deck"] == "FULL74"
    assert 0 <= destroyed <= (2 if leviathans else 0)
    assert sum(last["loot"]) % 2 == 0


def test_random_games_keep_the_invariants() -> None:
    rng = random.Random(2024)
    for number in range(150):
        game = SkullKing(random_config(rng), Philox(4, number, 0, CHANCE))
        game.reset()
        finished = 0
        while not game.terminated:
            check_state(game)
            if rng.random() < 0.2:
                check_observation(game, rng.randrange(game.num_players))
            if rng.random() < 0.1:
                before = copy.deepcopy(game.state())
                illegal = set(range(-1, game.action_count + 1)) - set(game.legal())
                with pytest.raises(ValueError, match="illegal"):
                    game.step(rng.choice(sorted(illegal)))
                assert game.state() == before
            round_before, cards = game.round, game.cards
            parts = random_step(game, rng)
            assert list(parts) == list(rewards.PARTS)
            for name in ("score_delta_zs", "rank", "win"):
                assert abs(sum(parts[name])) < 1e-6
            if game.terminated or game.round != round_before:
                finished += 1
                assert game.last_round is not None
                # The ghost's tricks are only known while the round stands.
                if game.terminated:
                    check_round(game, cards - sum(game.won))
                elif game.ghost is None:
                    check_round(game, cards - sum(game.last_round["won"]))
        check_state(game)
        for player in range(game.num_players):
            check_observation(game, player)
        one_round = game.config["episode"] == "ROUND"
        assert finished == (1 if one_round else len(game.config["rounds"]))


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


def test_skip_forced_adds_the_rewards_up() -> None:
    """The same choices with and without skipping give the same states and total rewards."""
    for seed in range(6):
        slow = new_game(seed, abilities=1, rounds=[4, 5])
        fast = new_game(seed, abilities=1, rounds=[4, 5], skip_forced=1)
        rng = random.Random(seed)
        while not fast.terminated:
            action = rng.choice(fast.legal())
            parts = fast.step(action)
            total = slow.step(action)
            while not slow.terminated and len(slow.legal()) == 1:
                more = slow.step(slow.legal()[0])
                total = {n: [a + b for a, b in zip(total[n], more[n], strict=True)] for n in total}
            assert slow.state() == fast.state()
            for name, values in parts.items():
                assert values == pytest.approx(total[name])


def test_rotating_the_seats_rotates_the_trajectory() -> None:
    rng = random.Random(99)
    for number in range(30):
        config = {**random_config(rng), "episode": "ROUND", "history": 1}
        config.pop("start_round", None)
        base = SkullKing(config, Philox(6, number, 0, CHANCE))
        turned = SkullKing(config, Philox(6, number, 1, CHANCE))
        base.reset()
        players, shift = base.num_players, rng.randrange(1, base.num_players)
        hands = [list(hand) for hand in base.hands]
        if base.ghost is not None:
            hands[base.ghost] = list(base.ghost_order)
        scores = [10 * rng.randint(-20, 20) for _ in range(players)]
        moved = [hands[(seat - shift) % players] for seat in range(players)] + hands[players:]
        moved_scores = [scores[(seat - shift) % players] for seat in range(players)]
        leader = base.leader
        base.load_round(base.round, hands, leader, scores)
        turned.load_round(base.round, moved, (leader + shift) % players, moved_scores)
        turned.chance = copy.deepcopy(base.chance)
        while not base.terminated:
            assert turned.seat == (base.seat + shift) % players
            for player in range(players):
                assert base.observe(player) == turned.observe((player + shift) % players)
            assert base.legal() == turned.legal()
            action = rng.choice(base.legal())
            parts, turned_parts = base.step(action), turned.step(action)
            for name, values in parts.items():
                for player, value in enumerate(values):
                    assert turned_parts[name][(player + shift) % players] == value
        assert turned.terminated


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
    for number in range(80):
        game = SkullKing({**random_config(rng), "history": 1}, Philox(3, number, 0, CHANCE))
        game.reset()
        while not game.terminated:
            if rng.random() < 0.25:
                observer = rng.randrange(game.num_players)
                assert scrambled(game, observer, rng).observe(observer) == game.observe(observer)
            random_step(game, rng)


def test_same_seed_same_game_and_copies_go_on_alike() -> None:
    rng = random.Random(13)
    for number in range(15):
        config = random_config(rng)
        games = [SkullKing(config, Philox(1, number, 5, CHANCE)) for _ in range(2)]
        for game in games:
            game.reset()
        games.append(copy.deepcopy(games[0]))
        while not games[0].terminated:
            action = rng.choice(games[0].legal())
            parts = [game.step(action) for game in games]
            assert parts[0] == parts[1] == parts[2]
            states = [game.state() for game in games]
            assert states[0] == states[1] == states[2]
            if rng.random() < 0.05:
                games[2] = copy.deepcopy(games[1])


def test_copies_of_identical_cards_resolve_alike() -> None:
    rng = random.Random(17)
    for _ in range(3000):
        cards = rng.sample(range(74), rng.randint(2, 8))
        flags = [rng.random() < 0.5 for _ in cards]
        renamed = list(cards)
        for group in identical_groups(abilities=False):
            held = [card for card in cards if card in group]
            names = dict(zip(held, rng.sample(group, len(held)), strict=True))
            renamed = [names.get(card, card) for card in renamed]
        plays = list(zip(cards, flags, strict=True))
        other = list(zip(renamed, flags, strict=True))
        assert [KIND[card] for card in renamed] == [KIND[card] for card in cards]
        assert resolve(plays) == resolve(other)
        winner, _ = resolve(plays)
        assert capture_bonus(plays, winner) == capture_bonus(other, winner)
