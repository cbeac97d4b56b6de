"""Kuhhandel's bots against their description (section 17), written down a second time."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import sparring
from sparring.games.kuhhandel import (
    NOTES,
    VALUES,
    KuhhandelPosition,
    load_position,
    pile_value,
    read,
)

PASS, MIN_RAISE, SELL, BUY, ACCEPT, COUNTER, NUM = 41, 42, 43, 44, 45, 46, 47
H = [2, 4, 1, 0, 0, 0]
RICH = [1, 3, 2, 1, 1, 1]
SAMPLES = 1000
SHARES = {3: (0.60, 0.35, 0.30, 0.25, 0.75), 4: (0.60, 0.65, 0.30, 0.35, 1.00)}
"""By players: auction fraction, denial fraction, reserve, refusal fraction, trade fraction."""


def claim(at: KuhhandelPosition, seat: int, kind: int, count: int) -> float:
    missing = 4 - at.animals[seat][kind]
    if missing == 0:
        return 0.0
    quartets = [VALUES[k] for k in range(10) if at.animals[seat][k] == 4]
    gain = sum(quartets) + (len(quartets) + 1) * VALUES[kind]
    return gain * min(count, missing) / missing


def lot_value(at: KuhhandelPosition, seat: int) -> float:
    denial = SHARES[min(at.players, 4)][1]
    rivals = [claim(at, other, at.lot, 1) for other in range(at.players) if other != seat]
    return claim(at, seat, at.lot, 1) + denial * max(rivals)


def sums(hand: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """For every sum that a hand can lay down without zeros, the fewest cards, larger ones first."""
    best: dict[int, tuple[int, ...]] = {}
    for counts in itertools.product(*(range(count + 1) for count in hand[1:])):
        pile = (0, *counts)
        if pile_value(pile) not in best or rank(pile) < rank(best[pile_value(pile)]):
            best[pile_value(pile)] = pile
    return best


def rank(pile: tuple[int, ...]) -> tuple[int, ...]:
    return (sum(pile), *(-count for count in reversed(pile)))


def whole_bid(state: sparring.State, bot: str) -> int:
    """The amount that a bot bids, 0 if it passes."""
    seat = state.seat
    while state.seat == seat and read(state).phase in ("bid", "tens"):
        action = state.ask(bot)
        if action == PASS:
            return 0
        state.apply(action)
    return read(state).last_bids[seat]


def whole_pile(state: sparring.State, bot: str) -> tuple[int, ...]:
    """The offer that a bot lays down."""
    seat = state.seat
    assert read(state).phase == "offer"
    while state.seat == seat:
        state.apply(state.ask(bot))
    return read(state).offer


def distance(one: Counter[Any], other: Counter[Any]) -> float:
    """Half the sum of differences between two distributions."""
    return sum(abs(one[k] / one.total() - other[k] / other.total()) for k in one | other) / 2


def auction(seed: int, players: int = 3) -> sparring.State:
    """Seat 0 has auctioned a cow; seat 1, who has another, is asked after a bid of 20."""
    farms: list[dict[str, int]] = [{}, {"cow": 1, "goose": 4}, {"cow": 2}, {}][:players]
    hands = [H, RICH, H, H][:players]
    state = load_position(farms, hands, turn=1, deck=["rooster", "cow"], seed=seed)
    state.apply(0)
    for _ in range(players - 1):
        state.apply(PASS)
    state.apply(0)  # seat 2 auctions the cow
    while state.seat != 0 and players == 4:
        state.apply(PASS)
    for action in (NUM, NUM + 2):
        state.apply(action)
    assert (state.seat, read(state).high_bid) == (1, 20)
    return state


@pytest.mark.slow
def test_thrifty_bids_small() -> None:
    found = Counter(whole_bid(auction(seed), "thrifty") for seed in range(SAMPLES))
    own = pile_value(RICH)
    amounts = [0, *range(30, own + 10, 10)]
    wanted = Counter({bid: 10**6 // (i + 1) for i, bid in enumerate(amounts)})
    assert set(found) <= set(wanted)
    expected_noise = 0.5 * sum(math.sqrt(w / wanted.total() / SAMPLES) for w in wanted.values())
    assert distance(found, wanted) < 1.2 * expected_noise


def test_thrifty_prefers_what_comes_first() -> None:
    found = Counter()
    for seed in range(SAMPLES):
        state = load_position([{"cow": 1}, {"cow": 1}, {}], seed=seed)
        state.apply(9)
        state.apply(NUM)
        found[state.ask("thrifty") - NUM] += 1
    weights = [1 / (i + 1) for i in range(5)]
    for count, weight in enumerate(weights):
        assert found[count] / SAMPLES == pytest.approx(weight / sum(weights), abs=0.03)
    state = load_position([{"cow": 1}, {"cow": 1}, {}])
    assert {state.ask("thrifty") for _ in range(50)} == {0}


@pytest.mark.parametrize("players", [4, pytest.param(3, marks=pytest.mark.slow)])
def test_dealer_bids_as_described(players: int) -> None:
    found = Counter(whole_bid(auction(seed, players), "dealer") for seed in range(2 * SAMPLES))
    at = read(auction(0, players))
    share, _, reserve, _, _ = SHARES[players]
    payable = sorted(sums(RICH))
    rng = random.Random(1)

    def draw() -> int:
        limit = min(share * lot_value(at, 1), (1 - reserve) * pile_value(RICH))
        cap = int(limit * rng.uniform(0.9, 1.1) / 10 + 1e-9) * 10
        if cap < at.high_bid + 10:
            return 0
        wanted = rng.randrange(at.high_bid + 10, cap + 10, 10)
        bid = next(amount for amount in payable if amount >= wanted)
        return bid if bid <= cap else 0

    wanted = Counter(draw() for _ in range(20 * SAMPLES))
    assert distance(found, wanted) < 0.07
    assert len(found) > 10


@pytest.mark.parametrize("players", [4, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("value", ["goose", pytest.param("sheep", marks=pytest.mark.slow)])
def test_dealer_offers_as_described(players: int, value: str) -> None:
    farms: list[dict[str, int]] = [{value: 1, "cat": 4}, {value: 2}, {}, {}][:players]

    def start(seed: int) -> sparring.State:
        hands = [RICH, H, H, H][:players]
        state = load_position(farms, hands, seed=seed)
        state.apply(next(action for action in state.legal() if action))
        return state

    found = Counter(whole_pile(start(seed), "dealer") for seed in range(SAMPLES))
    at = read(start(0))
    _, denial, _, _, share = SHARES[players]
    worth_it = claim(at, 0, at.traded, 1) + denial * claim(at, 1, at.traded, 1)
    best = sums(RICH)
    rng = random.Random(1)

    def draw() -> tuple[int, ...]:
        limit = math.floor(share * worth_it * rng.uniform(0.5, 1.0))
        pile = best[max(amount for amount in best if amount <= limit)]
        return pile if sum(pile) else (1, 0, 0, 0, 0, 0)

    wanted = Counter(draw() for _ in range(20 * SAMPLES))
    assert distance(found, wanted) < 0.06


def test_dealer_lays_the_lowest_card_if_nothing_fits() -> None:
    for hand, lowest in (([0, 0, 2, 0, 1, 0], 2), ([2, 1, 0, 0, 0, 0], 0), ([3, 0, 0, 0, 0, 0], 0)):
        state = load_position([{"rooster": 1}, {"rooster": 1}, {}], [hand, H, H])
        state.apply(1)
        pile = whole_pile(state, "dealer")
        assert pile == tuple(int(d == lowest) for d in range(len(NOTES)))


@pytest.mark.parametrize(
    ("farms", "choice"),
    [
        ([{"cow": 3}, {"cow": 1}, {}], 9),  # completes a quartet
        ([{"cow": 2}, {"cow": 2}, {}], 9),  # so does two against two
        ([{"cow": 2}, {"cow": 1}, {"cow": 1}], 0),
        ([{"cow": 2, "dog": 3}, {"cow": 1}, {"dog": 1}], 0),  # the best trade completes nothing
        ([{"goose": 3, "dog": 3}, {"goose": 1}, {"dog": 1}], 14),  # the better of two
    ],
)
def test_dealer_trades_early_for_a_quartet(farms: list[dict[str, int]], choice: int) -> None:
    assert load_position(farms).ask("dealer") == choice


@pytest.mark.parametrize(
    ("mine", "theirs", "others", "choice"),
    [
        # First one's own quartet, then equal numbers, then what the target would complete.
        ({"goose": 3, "cow": 2}, {"goose": 1, "cow": 1}, {"cow": 1}, 2),
        ({"goose": 1, "cow": 2}, {"goose": 1, "cow": 1}, {"goose": 2, "cow": 1}, 2),
        ({"goose": 1, "cow": 2}, {"goose": 3, "cow": 1}, {"cow": 1}, 2),
        # Else the worth decides, and it is larger against who has more quartets to multiply.
        ({"goose": 2, "cow": 2}, {"goose": 1, "cow": 1}, {"goose": 1, "cow": 1}, 19),
    ],
)
def test_dealer_in_the_end_game(
    mine: dict[str, int], theirs: dict[str, int], others: dict[str, int], choice: int
) -> None:
    rest = ("rooster", "cat", "dog", "sheep", "goat", "donkey", "pig", "horse")
    state = load_position([mine, theirs, {**others, **dict.fromkeys(rest, 4)}])
    assert state.ask("dealer") == choice


def test_dealer_decides_and_pays() -> None:
    """Buys if the automatic payment is within a quarter of the worth and its spendable money."""
    for bid, animal, choice in ((20, "horse", BUY), (20, "rooster", SELL), (80, "horse", SELL)):
        state = load_position([{}, {}, {}], deck=[animal])
        for action in (0, NUM + bid // 100, NUM + bid // 10 % 10, PASS):
            state.apply(action)
        assert state.ask("dealer") == choice
    state = load_position([{}, {}, {}], deck=["horse"])
    for action in (0, NUM, NUM + 3, PASS, SELL):
        state.apply(action)
    assert state.ask("dealer") == NUM  # three tens instead of the fifty
    state = load_position([{"cow": 1}, {"cow": 1}, {}])
    state.apply(9)
    whole_pile(state, "dealer")
    assert state.ask("dealer") == COUNTER


@pytest.mark.parametrize(("players", "min_share"), [(3, 0.92), (4, 0.80), (5, 0.65)])
def test_dealer_beats_thrifty(players: int, min_share: float) -> None:
    lineup = sparring.Lineup(("dealer", *["thrifty"] * (players - 1)))
    config = {"num_players": players, "bluff": "FORBID"}
    pool = sparring.Pool("kuhhandel", 512, config=config, lineups=[lineup], seed=1, threads=1)
    pool.reset()
    share: dict[int, float] = {}
    while len(share) < 512:
        batch = pool.step(np.zeros(512, np.int32))
        for game, scores, members in zip(
            batch.final_game, batch.final_score, batch.final_policy, strict=True
        ):
            best = scores == scores.max()
            mine = members == pool.player_id("dealer")
            share.setdefault(int(game), float((best & mine).sum() / best.sum()))
    assert np.mean(list(share.values())) > min_share
