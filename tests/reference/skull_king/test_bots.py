"""The scripted opponents of the slow Skull King (section 20)."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from reference.philox import BOTS, CHANCE, Philox
from reference.skull_king import bots
from reference.skull_king.game import SkullKing
from reference.skull_king.helpers import loaded, play, random_config
from reference.skull_king.rules import DECKS
from vectors import skull_king as vectors


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
