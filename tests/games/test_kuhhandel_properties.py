"""What holds in every game of Kuhhandel (section 19), over random flags and random play."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparring
from sparring.games.kuhhandel import (
    DONKEY_PAYS,
    KINDS,
    NOTES,
    START_HAND,
    VALUES,
    KuhhandelPosition,
    Pile,
    load_position,
    pile_value,
    read,
)

PASS, MIN_RAISE, SELL, ACCEPT, NUM = 41, 42, 43, 45, 47
FEW = settings(max_examples=6, deadline=None)

flags = st.fixed_dictionaries(
    {
        "num_players": st.integers(3, 5),
        "bluff": st.sampled_from(["EXCLUDE", "CAP", "FORBID"]),
        "pass_mode": st.sampled_from(["SOFT", "HARD"]),
        "pay_mode": st.sampled_from(["CHOICE", "AUTO"]),
        "open_pay": st.integers(0, 1),
        "empty_offer": st.integers(0, 1),
        "tie_money": st.sampled_from(["EXCHANGE", "TAKE_BACK"]),
        "tie_rounds": st.integers(1, 2),
        "zeros_return": st.integers(0, 1),
        "auto_forced": st.integers(0, 1),
    }
)
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Moment:
    """One decision of a game."""

    was: KuhhandelPosition
    action: int
    now: KuhhandelPosition
    state: sparring.State


def random_game(config: dict[str, Any], seed: int) -> Iterator[Moment]:
    """Play at random; the last state is over."""
    state = sparring.new_state("kuhhandel", seed=seed, config=config)
    rng = np.random.default_rng(seed)
    now = read(state)
    while not state.over:
        action = int(rng.choice(state.legal()))
        state.apply(action)
        was, now = now, read(state)
        yield Moment(was, action, now, state)


def minus(a: Pile, b: Pile) -> Pile:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def plus(a: Pile, b: Pile) -> Pile:
    return tuple(x + y for x, y in zip(a, b, strict=True))


@FEW
@given(flags, seeds)
def test_money_and_animals_are_conserved(config: dict[str, Any], seed: int) -> None:
    for moment in random_game(config, seed):
        at = moment.now
        players, donkeys = at.players, at.donkeys
        paid_out = [note in DONKEY_PAYS[:donkeys] for note in NOTES]
        assert [sum(counts) for counts in zip(*at.money, strict=True)] == [
            players * (start + extra) for start, extra in zip(START_HAND, paid_out, strict=True)
        ]
        total = players * (90 + sum(DONKEY_PAYS[:donkeys]))
        assert sum(pile_value(hand) for hand in at.money) == total <= 940 * players
        for kind in range(len(KINDS)):
            owned = sum(farm[kind] for farm in at.animals)
            assert owned + at.deck.count(kind) + (at.lot == kind) == 4
        assert moment.state.audit() == ""


@dataclass
class Observer:
    """One player's record, kept from what he sees and nothing else (section 11.1)."""

    seat: int
    players: int
    known: list[Pile] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = [START_HAND] * self.players

    def donkey(self, denomination: int) -> None:
        card = tuple(int(d == denomination) for d in range(len(NOTES)))
        self.known = [plus(known, card) for known in self.known]

    def shown(self, seat: int, hand: Pile) -> None:
        self.known[seat] = hand

    def swapped(self, given: dict[int, Pile | int]) -> None:
        """Two players lay down piles and take up the other's: cards if seen, else how many."""
        (a, from_a), (b, from_b) = given.items()
        for seat, gives, gets in ((a, from_a, from_b), (b, from_b, from_a)):
            lost = gives if isinstance(gives, tuple) else (gives,) * len(NOTES)
            left = tuple(max(0, x) for x in minus(self.known[seat], lost))
            self.known[seat] = plus(left, gets) if isinstance(gets, tuple) else left


def exchange_in(moment: Moment, config: dict[str, Any]) -> dict[int, Pile] | None:
    """The piles that changed hands in a step, by giver; None if there were none."""
    was, now = moment.was, moment.now
    if was.lot >= 0:
        changed = [seat for seat in range(was.players) if was.money[seat] != now.money[seat]]
        if not changed:
            return None
        payer = next(s for s in changed if sum(now.money[s]) < sum(was.money[s]))
        payee = next(s for s in changed if s != payer)
        return {payer: minus(was.money[payer], now.money[payer]), payee: (0,) * len(NOTES)}
    turn, target = was.turn, was.target
    if target < 0 or (now.target >= 0 and now.ties == was.ties):
        return None  # no piles were compared
    taken_back = config["tie_money"] == "TAKE_BACK" and moment.action != ACCEPT
    if taken_back and was.money == now.money:
        return None
    # Only a target without any card answers an offer unasked.
    offer = was.offer if was.phase != "offer" else minus(now.money[target], was.money[target])
    if config["zeros_return"]:
        offer = (0, *offer[1:])
    return {turn: offer, target: plus(minus(now.money[turn], was.money[turn]), offer)}


@FEW
@given(flags, seeds)
def test_players_know_what_they_saw_and_no_more(config: dict[str, Any], seed: int) -> None:
    """The record is what a player can put together himself, and it is never wrong."""
    config = {**config, "auto_forced": 0}  # so that no step holds two exchanges
    observers = [Observer(seat, config["num_players"]) for seat in range(config["num_players"])]
    for moment in random_game(config, seed):
        was, now = moment.was, moment.now
        caught = was.phase == "decide" and moment.action == SELL
        caught = caught and pile_value(was.money[was.high_bidder]) < was.high_bid
        given_piles = exchange_in(moment, config)
        for observer in observers:
            if now.donkeys > was.donkeys:
                observer.donkey(1 + now.donkeys)
            if caught:
                observer.shown(was.high_bidder, was.money[was.high_bidder])
            if given_piles:
                sees = observer.seat in given_piles or (was.lot >= 0 and config["open_pay"])
                observer.swapped(
                    {s: pile if sees else sum(pile) for s, pile in given_piles.items()}
                )
            assert now.known[observer.seat] == observer.known
            assert now.known[observer.seat][observer.seat] == now.money[observer.seat]
            for seat, hand in enumerate(now.money):
                assert min(minus(hand, observer.known[seat])) >= 0


@pytest.mark.slow
@FEW
@given(flags, seeds)
def test_bids_payments_and_trades(config: dict[str, Any], seed: int) -> None:
    exposures = auctions = turns = 0
    for moment in random_game(config, seed):
        was, now, action = moment.was, moment.now, moment.action
        turns += was.phase == "turn"
        if was.phase == "turn" and action == 0:
            auctions, exposures = auctions + 1, 0
        if was.phase in ("bid", "tens") and now.lot >= 0 and now.high_bid != was.high_bid:
            assert now.high_bid > was.high_bid
            assert now.high_bidder == was.actor != was.turn
        if was.phase == "decide" and action == SELL:
            caught = pile_value(was.money[was.high_bidder]) < was.high_bid
            assert not (caught and config["bluff"] == "FORBID")
            exposures += caught
            assert exposures <= was.players - 1
        if was.lot >= 0 and was.money != now.money:
            check_payment(was, now)
        if was.target >= 0 and now.target < 0:
            check_trade(was, now)
        for seat in range(was.players):
            if (was.lot < 0 and now.lot < 0) and seat not in (was.turn, was.target):
                assert was.money[seat] == now.money[seat]
            for kind in range(len(KINDS)):
                if was.animals[seat][kind] == 4:
                    assert now.animals[seat][kind] == 4
    assert moment.state.terminated
    assert auctions == 40 <= turns


def check_payment(was: KuhhandelPosition, now: KuhhandelPosition) -> None:
    """The price is paid, and with no card too many."""
    payer = next(s for s in range(was.players) if sum(now.money[s]) < sum(was.money[s]))
    paid = minus(was.money[payer], now.money[payer])
    assert pile_value(paid) >= was.high_bid
    assert paid[0] == 0
    for note, count in zip(NOTES, paid, strict=True):
        assert count == 0 or pile_value(paid) - note < was.high_bid
    assert now.animals[payer][was.lot] == was.animals[payer][was.lot] + 1


def check_trade(was: KuhhandelPosition, now: KuhhandelPosition) -> None:
    """One or two animals of one kind go from one of the two players to the other."""
    moved = [np.subtract(n, w).tolist() for n, w in zip(now.animals, was.animals, strict=True)]
    assert abs(moved[was.turn][was.traded]) == was.stake in (1, 2)
    for seat, row in enumerate(moved):
        others = [count for kind, count in enumerate(row) if kind != was.traded]
        assert not any(others)
        assert row[was.traded] == 0 or seat in (was.turn, was.target)
    assert sum(row[was.traded] for row in moved) == 0


@FEW
@given(flags, seeds)
def test_the_end(config: dict[str, Any], seed: int) -> None:
    parts = {"rank": 1.0, "win": 10.0, "score_zs": 100.0}
    state = sparring.new_state("kuhhandel", seed=seed, config=config, rewards=parts)
    rng = np.random.default_rng(seed)
    while not state.over:
        assert not state.rewards.any()
        state.apply(int(rng.choice(state.legal())))
    at = read(state)
    assert (state.terminated, at.phase, at.deck) == (True, "done", [])
    quartets = [[kind for kind in range(10) if farm[kind] == 4] for farm in at.animals]
    assert sum(len(mine) for mine in quartets) == 10
    scores = [sum(VALUES[kind] for kind in mine) * len(mine) for mine in quartets]
    assert state.scores == scores
    assert float(state.rewards.sum()) == pytest.approx(0, abs=1e-3)
    best = [seat for seat, score in enumerate(scores) if score == max(scores)]
    for seat, score in enumerate(scores):
        rank = sum(o > score for o in scores) + (scores.count(score) - 1) / 2
        others = (sum(scores) - score) / (at.players - 1)
        expected = 1 - 2 * rank / (at.players - 1)
        expected += 10 * ((seat in best) / len(best) - 1 / at.players)
        expected += 100 * (score - others) / 10000
        assert state.rewards[seat] == pytest.approx(expected, abs=1e-3)


@FEW
@given(flags, seeds, st.integers(1, 4), st.integers(0, 1))
def test_seats_are_alike(config: dict[str, Any], seed: int, by: int, history: int) -> None:
    """The same game some places further round looks the same from there."""
    players = config["num_players"]
    config = {**config, "history": history, "reward": "SEED"}
    rng = np.random.default_rng(seed)
    deck = [str(kind) for kind in rng.permutation(np.repeat(KINDS, 4))]
    owned = [deck.pop() for _ in range(int(rng.integers(0, 25)))]
    farms = [{k: owned[seat::players].count(k) for k in KINDS} for seat in range(players)]
    donkeys = owned.count("donkey")  # each has brought a card, and none may exceed the box
    most = (2, 2, 1 + (donkeys > 0), donkeys > 1, donkeys > 2, donkeys > 3)
    hands = [[int(rng.integers(count + 1)) for count in most] for _ in range(players)]
    turn = int(rng.integers(players))

    def seated(ahead: int) -> sparring.State:
        order = [(seat - ahead) % players for seat in range(players)]
        return load_position(
            [farms[seat] for seat in order],
            [hands[seat] for seat in order],
            turn=(turn + ahead) % players,
            deck=deck,
            config=config,
        )

    one, other = seated(0), seated(by)
    for _ in range(300):
        assert (one.seat + by) % players == other.seat
        assert one.legal() == other.legal()
        for seat in range(players):
            there = (seat + by) % players
            assert (one.observe_bytes(seat) == other.observe_bytes(there)).all()
            assert one.rewards[seat] == other.rewards[there]
        action = int(rng.choice(one.legal()))
        one.apply(action)
        other.apply(action)
        if one.over:
            break


@pytest.mark.slow
@FEW
@given(flags, seeds, st.sampled_from(["RANK", "WIN", "SCORE_ZS", "POTENTIAL", "SEED"]))
def test_skipping_forced_decisions_pays_the_same(
    config: dict[str, Any], seed: int, reward: str
) -> None:
    """At gamma 1 a decision earns the same whether forced ones are asked for or not."""
    config = {**config, "reward": reward}
    asked = sparring.new_state("kuhhandel", seed=seed, config=config)
    skips = sparring.new_state("kuhhandel", seed=seed, config={**config, "skip_forced": 1})
    rng = np.random.default_rng(seed)
    earned = np.zeros(config["num_players"])
    decisions = 0

    def play_forced() -> None:
        nonlocal earned
        while not asked.over and len(asked.legal()) == 1:
            asked.apply(asked.legal()[0])
            earned += asked.rewards

    play_forced()
    earned[:] = 0
    while not asked.over:
        assert (asked.seat, asked.legal()) == (skips.seat, skips.legal())
        assert (asked.observe_bytes(asked.seat) == skips.observe_bytes(skips.seat)).all()
        action = int(rng.choice(asked.legal()))
        skips.apply(action)
        asked.apply(action)
        earned = np.array(asked.rewards, np.float64)
        play_forced()
        np.testing.assert_allclose(earned, skips.rewards, atol=1e-5)
        decisions += 1
    assert skips.over
    assert decisions > 40


def test_a_pass_that_had_to_be_looks_like_any_other() -> None:
    """Seat 2 cannot tell whether seat 0 gave away its fifty and is now too poor to raise."""
    seen = []
    for offer in ((0, 1, 0), (0, 0, 1)):
        config = {"bluff": "FORBID", "history": 1}
        state = load_position([{"cow": 1}, {"cow": 1}, {}], config=config)
        state.apply(9)
        for count in reversed(offer):
            if read(state).phase == "offer":
                state.apply(NUM + count)
        for action in (ACCEPT, 0, PASS, PASS, 0):  # seat 1 auctions, then seat 2
            state.apply(action)
        for action in (MIN_RAISE, NUM, NUM + 5):  # seat 0 bids 10, seat 1 bids 50
            state.apply(action)
        if pile_value(read(state).money[0]) > 50:
            assert state.seat == 0
            state.apply(PASS)
        assert (state.seat, read(state).phase) == (2, "decide")
        seen.append(state.observe_bytes(2))
    assert (seen[0] == seen[1]).all()


@pytest.mark.parametrize(
    "config",
    [
        {"num_players": 4, "bluff": "CAP", "auto_forced": 0, "history": 1, "reward": "SEED"},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param(
            {"num_players": 5, "bluff": "FORBID", "skip_forced": 1, "max_decisions": 300},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_conformance(config: dict[str, Any]) -> None:
    report = sparring.check("kuhhandel", config=config, games=3)
    assert report.passed, report
