"""The vectors of section 18 of the specification, played through the native game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import sparring
from games.kuhhandel_helpers import FULL_FARM, lay, opened, play
from sparring.games.kuhhandel import load_position, pile_value, read
from vectors import kuhhandel as vectors
from vectors.kuhhandel import NUM, H, action


@pytest.mark.parametrize("auction", vectors.AUCTIONS, ids=lambda auction: auction.name)
def test_auctions(auction: vectors.Auction) -> None:
    state = opened(auction)
    play(state, auction.script)
    at = read(state)
    for seat, hand in auction.money.items():
        assert at.money[seat] == tuple(hand)
    kind = vectors.KINDS.index(auction.card)
    if auction.owner is not None:
        assert [farm[kind] for farm in at.animals] == [
            int(seat == auction.owner) for seat in range(at.players)
        ]
    if auction.seen_by_all is not None:
        shown = auction.seen_by_all
        assert {at.known[seat][shown] for seat in range(at.players)} == {at.money[shown]}
    found = {
        "phase": at.phase,
        "actor": state.seat,
        "turn": at.turn,
        "high": at.high_bid,
        "legal": state.legal(),
        "lowest_number": min((a - NUM for a in state.legal() if a >= NUM), default=None),
        "exposed": at.exposed,
    }
    wanted = {name: getattr(auction, name) for name in found}
    assert {n: found[n] for n, v in wanted.items() if v is not None} == {
        n: v for n, v in wanted.items() if v is not None
    }
    assert state.audit() == ""


def test_a10_shows_no_money() -> None:
    """The auctioneer who buys never learns whether the bid was a bluff."""
    vector = next(a for a in vectors.AUCTIONS if a.name == "A10")
    state = opened(vector)
    play(state, vector.script)
    at = read(state)
    assert at.known[1][2] != at.money[2]


def price_to_pay(hand: Sequence[int], price: int, **config: Any) -> sparring.State:
    """A state in which seat 1 has just been sold the animal for a price."""
    helper = [0, 0, 0, 0, 0, 1]
    state = load_position([{}, {}, {}], [[0] * 6, hand, helper], deck=["horse"], config=config)
    state.apply(action("AUCTION"))
    hundreds, tens = divmod(price // 10, 10)
    if price == 10:
        state.apply(action("RAISE"))
    else:
        state.apply(NUM + hundreds)
        if read(state).phase == "tens":
            state.apply(NUM + tens)
    assert read(state).high_bid == price
    state.apply(action("PASS"))
    state.apply(action("SELL"))
    return state


def paid(state: sparring.State, hand: Sequence[int]) -> list[int]:
    return [had - has for had, has in zip(hand, read(state).money[1], strict=True)]


@pytest.mark.parametrize(("name", "hand", "price", "auto", "minimal"), vectors.PAYMENTS)
def test_payments(
    name: str, hand: list[int], price: int, auto: list[int], minimal: list[list[int]]
) -> None:
    assert paid(price_to_pay(hand, price, pay_mode="AUTO"), hand) == auto
    for auto_forced in (0, 1):
        open_ends = [price_to_pay(hand, price, auto_forced=auto_forced)]
        found = []
        while open_ends:
            state = open_ends.pop()
            if read(state).phase != "pay":
                found.append(paid(state, hand))
                continue
            for count in state.legal():
                open_ends.append(state.clone())
                open_ends[-1].apply(count)
        assert sorted(found) == sorted(minimal)


def test_donkeys() -> None:
    state = load_position([{}, {}, {}], deck=["donkey"] * 4)
    for number, card, total, circulation in vectors.DONKEYS:
        before = read(state).money
        state.apply(action("AUCTION"))
        at = read(state)
        assert at.donkeys == number
        assert [
            pile_value(hand) - pile_value(old) for hand, old in zip(at.money, before, strict=True)
        ] == [card] * 3
        assert [pile_value(hand) for hand in at.money] == [total] * 3
        assert sum(pile_value(hand) for hand in at.money) == circulation
        highest = max(a - NUM for a in state.legal() if a >= NUM)
        assert highest == circulation // 100
        while read(state).phase == "bid":
            state.apply(action("PASS"))


@pytest.mark.parametrize("auto_forced", [1, 0])
@pytest.mark.parametrize("trade", vectors.TRADES, ids=lambda trade: trade.name)
def test_trades(trade: vectors.Trade, auto_forced: int) -> None:
    farms = [{"cow": count} for count in trade.cows]
    config = {**trade.config, "auto_forced": auto_forced}
    state = load_position(farms, [*trade.money, H], config=config)
    state.apply(1 + vectors.KINDS.index("cow"))
    for number, pile in enumerate(trade.piles):
        if number == 1:
            state.apply(action("ACCEPT" if pile is None else "COUNTER"))
        if pile is None:
            continue
        # A pile without a choice is laid down by itself.
        expected = ("offer" if number % 2 == 0 else "counter", number // 2)
        if (read(state).phase, read(state).ties) == expected:
            lay(state, pile)
    at = read(state)
    assert (at.phase, at.turn) == ("turn", 1)
    assert [farm[8] for farm in at.animals] == trade.cows_after
    assert (list(at.money[0]), list(at.money[1])) == trade.money_after
    assert at.money[2] == tuple(H)
    assert state.audit() == ""


@pytest.mark.parametrize(("name", "quartets", "others", "score"), vectors.SCORES)
def test_scores(name: str, quartets: str, others: Mapping[str, int], score: int) -> None:
    farm = {**dict.fromkeys(quartets.split(), 4), **others}
    assert load_position([farm, {}, {}]).scores == [score, 0, 0]


def win_trade(state: sparring.State, chosen: int) -> None:
    """Challenge, offer everything, and see it accepted."""
    state.apply(chosen)
    lay(state, read(state).money[state.seat])
    state.apply(action("ACCEPT"))


def test_f03_all_ten_quartets() -> None:
    state = load_position([{**FULL_FARM, "horse": 3}, {"horse": 1}, {}])
    win_trade(state, 10)
    assert state.terminated
    assert state.scores == [38500, 0, 0]


def test_f10_a_quartet_completed() -> None:
    farms = [{"pig": 4, "rooster": 4, "dog": 3}, {"dog": 1}, {}]
    state = load_position(farms, config={"reward": "POTENTIAL"})
    assert state.scores[0] == 1320
    win_trade(state, 4)
    assert state.scores[0] == 2460
    assert state.rewards.tolist() == pytest.approx([0.1140, 0, 0])


def test_m01_the_first_turn_is_an_auction() -> None:
    assert sparring.new_state("kuhhandel").legal() == [0]


def test_m02_legal_trades() -> None:
    state = load_position([{"rooster": 1, "goose": 2}, {"rooster": 1}, {"goose": 2}])
    assert state.legal() == [0, 1, 12]
    state.apply(12)
    assert read(state).stake == 2


def test_m03_counts_of_an_offer() -> None:
    state = load_position([{"rooster": 1}, {"rooster": 1}, {}])
    state.apply(1)
    for counts, chosen in (([0, 1], 0), ([0, 1, 2, 3, 4], 0), ([1, 2], 2)):
        assert state.legal() == [NUM + count for count in counts]
        state.apply(NUM + chosen)
    at = read(state)
    assert (at.phase, at.offer) == ("respond", (2, 0, 0, 0, 0, 0))
    names = [feature.name for feature in state.rules.features]
    for observer in range(3):
        shown = state.observe(observer)[names.index("trade.offered cards")]
        assert shown == np.float32(2 / 20)


def endgame(reward: str = "RANK") -> sparring.State:
    """The position of M04 before seat 0's turn."""
    farms = [
        {**dict.fromkeys(vectors.KINDS[:8], 4), "horse": 1},
        {"cow": 4},
        {"horse": 3},
    ]
    return load_position(farms, config={"reward": reward})


def test_m04_who_cannot_trade_is_skipped() -> None:
    state = endgame()
    win_trade(state, 20)  # seat 0 and seat 2 now hold two horses each
    assert state.seat == 2
    assert state.legal() == [10]


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        ("RANK", [1, -1, 0]),
        ("WIN", [2 / 3, -1 / 3, -1 / 3]),
        ("SCORE_ZS", [1.55, -0.79, -0.76]),
        ("SEED_WIN_ONLY", [2, 0, 0]),
    ],
)
def test_m05_the_end(reward: str, expected: list[float]) -> None:
    state = endgame(reward)
    state.apply(20)
    lay(state, [1, 0, 0, 0, 0, 0])
    state.apply(action("COUNTER"))
    lay(state, [0, 1, 0, 0, 0, 0])
    assert state.terminated
    assert state.end == "all quartets complete"
    assert state.scores == [16400, 800, 1000]
    np.testing.assert_allclose(state.rewards, expected, atol=1e-6)


@pytest.mark.parametrize(("offer", "after"), [(2, [3, 0, 1]), (0, [1, 2, 1])])
def test_m06_no_progress_is_needed(offer: int, after: list[int]) -> None:
    rest = {kind: 4 for kind in vectors.KINDS if kind != "cow"}
    state = load_position([{**rest, "cow": 2}, {"cow": 1}, {"cow": 1}])
    state.apply(9)
    assert read(state).stake == 1
    lay(state, [0 if offer else 1, offer, 0, 0, 0, 0])
    state.apply(action("COUNTER"))
    lay(state, [0, 1, 0, 0, 0, 0])
    assert [farm[8] for farm in read(state).animals] == after
    assert not state.over


@pytest.mark.parametrize(("name", "script", "given", "facts"), vectors.KNOWLEDGE)
def test_m07_m08_knowledge(
    name: str,
    script: str,
    given: dict[int, list[int]],
    facts: list[tuple[int, int, list[int], int]],
) -> None:
    state = opened(vectors.Auction(name, script, given=given))
    play(state, script)
    at = read(state)
    for observer, other, known, unknown in facts:
        assert at.known[observer][other] == tuple(known)
        assert sum(at.money[other]) - sum(known) == unknown


def test_m09_the_offer_is_hidden() -> None:
    """Piles of one size look the same to the target and to who watches."""
    seen: dict[int, set[bytes]] = {1: set(), 2: set()}
    own = set()
    for pile in ([2, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]):
        state = load_position([{"cow": 1}, {"cow": 1}, {}])
        state.apply(9)
        lay(state, pile)
        assert read(state).phase == "respond"
        for answered in (False, True):
            if answered:
                state.apply(action("COUNTER"))
            for observer, found in seen.items():
                found.add(bytes([answered]) + state.observe_bytes(observer).tobytes())
            own.add(bytes([answered]) + state.observe_bytes(0).tobytes())
    assert [len(found) for found in seen.values()] == [2, 2]
    assert len(own) == 6
