"""What a seat of the slow Kuhhandel sees (section 13), and what it must not see."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Sequence

import pytest

from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.helpers import (
    A02,
    COUNTER,
    COW,
    DONKEY,
    HORSE,
    PASS,
    SELL,
    auction,
    lay,
    num,
    play,
    random_game,
    start_trade,
    table,
)
from reference.kuhhandel.observation import blocks
from reference.kuhhandel.vectors import R, pile
from reference.philox import CHANCE, Philox


def test_spot_checks_of_section_13() -> None:
    game = Kuhhandel()
    game.reset()
    seen = game.observe(game.seat)
    assert len(seen) == 163
    assert seen[:8] == [1, 0, 0, 0, 0, 0, 0, 0]
    assert seen[8:11] == [1, 1, 1]
    assert seen[11:15] == [0] * 4
    assert seen[15:25] == [1] * 10
    assert seen[64:71] == [0.2, 0.2, 0.1, 0, 0, 0, 0.09]
    assert seen[71:81] == [0.35, 0.2, 0.2, 0.1, 0, 0, 0, 0, 1, 0.09]
    assert not any(seen[91:])


@pytest.mark.parametrize("players", [3, 4, 5])
def test_offsets_of_the_blocks(players: int) -> None:
    n = players
    game = table(num_players=n)
    offsets = {
        "PHASE": (0, 8),
        "ACT": (8, 1),
        "DECK": (9, 1),
        "DONK": (10, 5),
        "UNSEEN": (15, 10),
        "ANIM": (25, 10 * n),
        "SUMM": (25 + 10 * n, 3 * n),
        "OWN": (25 + 13 * n, 6),
        "TOTAL": (31 + 13 * n, 1),
        "OPP": (32 + 13 * n, 10 * (n - 1)),
        "AUC": (22 + 23 * n, 15),
        "AUCS": (37 + 23 * n, 5 * n),
        "TRD": (37 + 28 * n, 16),
        "TRDS": (53 + 28 * n, 2 * n),
        "COMP": (53 + 30 * n, 20),
    }
    at = 0
    for name, block in blocks(game, 0).items():
        assert (at, len(block)) == offsets[name]
        at += len(block)
    assert at == game.observation_size() == 73 + 30 * n


def test_auction_blocks() -> None:
    game = auction()
    play(game, (1, num(1)))
    shown = blocks(game, 1)
    assert shown["AUC"] == [*[0.0] * 9, 1, 1, 0, 0, 0.01, 1 / 47]
    assert blocks(game, 0)["AUC"][14] == 0
    play(game, (1, num(2)), (2, PASS))
    shown = blocks(game, 2)
    assert shown["AUC"][10:] == [1, 0.12, 1, 0.13, 0]
    assert shown["AUCS"] == [0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0.12]
    play(game, (0, SELL))
    assert blocks(game, 0)["AUCS"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_trade_blocks() -> None:
    game, action = start_trade([2, 2, 0], [R, R, R])
    play(game, (0, action), (0, num(0)), (0, num(1)))
    # Below the choice of the hundred: the pointer has moved on.
    assert blocks(game, 0)["COMP"] == [
        *[0, 0, 0, 1, 0, 0],
        *[0, 0, 0, 0, 0.2, 0],
        *[0.2, 0],
        *[0] * 6,
    ]
    for other in (1, 2):
        assert not any(blocks(game, other)["COMP"])
        assert blocks(game, other)["TRD"] == [*[0.0] * 8, 1, 0, 0.8, 0, 1, 0, 0, 0]
    play(game, (0, num(0)), (0, num(0)), (0, num(0)), (0, num(1)))
    assert blocks(game, 0)["COMP"] == [*[0] * 14, 0.1, 0, 0, 0, 0.2, 0]
    assert blocks(game, 1)["TRD"][13] == 0.1
    assert blocks(game, 1)["TRDS"] == [0, 0, 1, 1, 0, 0]
    game.step(COUNTER)
    lay(game, pile(200))
    for observer, tied in enumerate((0.2, 0.2, 0)):
        assert blocks(game, observer)["TRD"][13:] == [0, 1, tied]


def test_the_price_is_public() -> None:
    game = auction()
    play(game, *A02, (0, SELL))
    assert blocks(game, 1)["COMP"] == [*[0] * 13, 0.02, *[0] * 6]
    assert blocks(game, 2)["COMP"] == [0, 0, 1, *[0] * 10, 0.02, *[0] * 6]


def test_history_is_relative_and_keeps_64_events() -> None:
    game = auction(history=1)
    play(game, *A02, (0, SELL), (2, num(0)))
    rows = [blocks(game, 1)["HISTORY"][8 * i : 8 * i + 8] for i in range(64)]
    assert rows[:5] == [
        [4, 1, 2, 0.2, 2, 0, 0, 0],
        [3, 0, -1, 0, 0, 0, 0, 0],
        [2, 1, -1, 0.2, 0, 0, 0, 0],
        [2, 0, -1, 0.1, 0, 0, 0, 0],
        [1, 2, -1, HORSE / 10, 0, 0, 0, 0],
    ]
    assert not any(value for row in rows[5:] for value in row)
    game, action = start_trade([1, 1, 2], [R, R, R], history=1)
    play(game, (0, action))
    lay(game, pile(100))
    game.step(COUNTER)
    lay(game, pile(100))
    lay(game, pile(50, 0))
    lay(game, pile(200))
    rows = [blocks(game, 2)["HISTORY"][8 * i : 8 * i + 8] for i in range(3)]
    assert rows[0] == [8, 1, 2, COW / 10, 1, 2, 1, 2]
    assert rows[1] == [9, 1, 2, 0.1, 1, 0, 0, 0]
    game = auction(top=DONKEY, history=1)
    assert blocks(game, 0)["HISTORY"][:8] == [10, -1, -1, 0.1, 0, 0, 0, 0]
    game = Kuhhandel({"history": 1}, Philox(2, 0, 0, CHANCE))
    game.reset()
    rng = random.Random(1)
    for _ in range(300):
        game.step(rng.choice(game.legal()))
    assert len(game.events) == 64
    assert len(game.observe(0)) == 163 + 512


def some_cards(hand: Sequence[int], count: int, rng: random.Random) -> list[int]:
    cards = [d for d in range(6) for _ in range(hand[d])]
    chosen = rng.sample(cards, count)
    return [chosen.count(d) for d in range(6)]


def scrambled(game: Kuhhandel, observer: int, rng: random.Random) -> Kuhhandel:
    """A copy in which everything that the observer must not see is different (section 13)."""
    other = copy.deepcopy(game)
    others = [p for p in game.players if p != observer]
    unknown = {
        p: [m - k for m, k in zip(game.money[p], game.known[observer][p], strict=True)]
        for p in others
    }
    loose = [d for p in others for d in range(6) for _ in range(unknown[p][d])]
    rng.shuffle(loose)
    for p in others:
        size = sum(unknown[p])
        mine, loose = loose[:size], loose[size:]
        known = game.known[observer][p]
        other.money[p] = [known[d] + mine.count(d) for d in range(6)]
        other.known[p] = [[0] * 6 for _ in game.players]
    rng.shuffle(other.deck)
    if other.trade is not None and observer != other.trade.challenger:
        hand = other.money[other.trade.challenger]
        other.trade.offer = some_cards(hand, sum(other.trade.offer), rng)
        if observer != other.trade.target:
            other.trade.tied = 10 * rng.randrange(50)
    if other.composing is not None and game.seat != observer:
        hand = other.money[game.seat]
        other.composing.selected = some_cards(hand, rng.randint(0, sum(hand)), rng)
        other.composing.denomination = rng.randrange(6)
    if other.auction is not None and game.seat != observer:
        other.auction.hundreds = rng.randrange(48)
    return other


def test_observations_leak_nothing() -> None:
    rng = random.Random(31)
    for number in range(8):
        game, players, stream = random_game(rng, 1000 + number)
        while not game.over:
            if rng.random() < 0.1:
                observer = rng.randrange(game.num_players)
                seen = game.observe(observer)
                assert len(seen) == game.observation_size()
                assert all(isinstance(x, float) and math.isfinite(x) for x in seen)
                assert scrambled(game, observer, rng).observe(observer) == seen
            game.step(game.bot(players[game.seat], stream))
