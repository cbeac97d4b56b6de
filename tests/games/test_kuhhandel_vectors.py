"""The vectors of the specification, played through the native game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import sparring
from sparring.games.kuhhandel import Position, load_position, read, worth
from vectors import kuhhandel as vectors
from vectors.kuhhandel import NUM, H, action, steps

FULL_FARM = dict.fromkeys(vectors.KINDS, 4)


def play(state: sparring.State, script: str) -> None:
    for seat, chosen in steps(script):
        assert state.seat == seat, script
        state.apply(chosen)


def opened(auction: vectors.Auction) -> sparring.State:
    """The auction of a vector, before the first bid."""
    farms: list[dict[str, int]] = [{} for _ in range(auction.players)]
    if auction.donkeys_out:
        farms[-1]["donkey"] = 4
    hands = [auction.given.get(seat, H) for seat in range(auction.players)]
    state = load_position(farms, hands, deck=[auction.card], config=auction.config)
    state.apply(action("AUCTION"))
    return state


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
        assert [worth(hand) - worth(old) for hand, old in zip(at.money, before, strict=True)] == [
            card
        ] * 3
        assert [worth(hand) for hand in at.money] == [total] * 3
        assert sum(worth(hand) for hand in at.money) == circulation
        highest = max(a - NUM for a in state.legal() if a >= NUM)
        assert highest == circulation // 100
        while read(state).phase == "bid":
            state.apply(action("PASS"))


def lay(state: sparring.State, pile: Sequence[int]) -> None:
    """Name the counts of a pile, as far as they are asked for."""
    at = read(state)
    phase, actor, pointer = at.phase, at.actor, 9
    while (at.phase, at.actor) == (phase, actor) and at.pointer < pointer:
        pointer = at.pointer
        state.apply(NUM + pile[pointer])
        at = read(state)


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


def test_spot_checks_of_section_13() -> None:
    state = sparring.new_state("kuhhandel", seed=3)
    seen = state.observe(state.seat)
    expected = np.zeros(163)
    expected[[0, 8, 9, 10]] = 1
    expected[15:25] = 1
    expected[64:71] = [0.2, 0.2, 0.1, 0, 0, 0, 0.09]
    expected[71:81] = [0.35, 0.2, 0.2, 0.1, 0, 0, 0, 0, 1, 0.09]
    expected[81:91] = expected[71:81]
    np.testing.assert_allclose(seen, expected, atol=1e-7)


@pytest.mark.parametrize(("players", "size"), [(3, 163), (4, 193), (5, 223)])
def test_sizes(players: int, size: int) -> None:
    rules = sparring.Rules("kuhhandel", {"num_players": players})
    assert (len(rules.features), rules.actions) == (size, 95)
    longer = rules.changed({"history": 1})
    assert len(longer.features) == size + 64 * 8
    firsts = {block.name: block.first for block in rules.blocks}
    n = players
    assert {
        "phase": 0,
        "to act": 8,
        "deck": 9,
        "donkeys": 10,
        "unseen": 15,
        "animals": 25,
        "points": 25 + 10 * n,
        "own money": 25 + 13 * n,
        "own total": 31 + 13 * n,
        "opponent": 32 + 13 * n,
        "auction": 22 + 23 * n,
        "auctioneer": 37 + 23 * n,
        "trade": 37 + 28 * n,
        "challenger": 53 + 28 * n,
        "composing": 53 + 30 * n,
    }.items() <= firsts.items()


def features(state: sparring.State, observer: int) -> dict[str, float]:
    """What an observer sees, by name."""
    names = (feature.name for feature in state.rules.features)
    return dict(zip(names, state.observe(observer).tolist(), strict=True))


def block_of(seen: Mapping[str, float], block: str) -> list[float]:
    return [value for name, value in seen.items() if name.startswith(f"{block}.")]


def test_what_is_seen_of_an_auction() -> None:
    state = opened(vectors.Auction("", ""))
    play(state, "1 RAISE, 2 PASS, 0 SELL")
    assert read(state).phase == "pay"
    for observer in range(3):
        seen = features(state, observer)
        assert seen["auction.horse"] == seen["auction.value"] == 1
        assert seen["auction.high bid"] == np.float32(0.01)
        assert seen["auction.minimum raise"] == np.float32(0.02)
        assert seen["auction.bid exists"] == 1
        assert seen["composing.price"] == np.float32(0.01)
        assert block_of(seen, "auctioneer")[-observer % 3] == 1
        assert block_of(seen, "high bidder")[(1 - observer) % 3] == 1
        assert block_of(seen, "passed")[(2 - observer) % 3] == 1
        assert block_of(seen, "last bid")[(1 - observer) % 3] == np.float32(0.01)
        assert sum(block_of(seen, "excluded")) == sum(block_of(seen, "trade")) == 0
        assert seen["composing.asked for 50"] == float(observer == 1)


def test_what_is_seen_of_a_jump_bid() -> None:
    state = opened(vectors.Auction("", ""))
    play(state, "1 NUM 2")
    assert features(state, 1)["auction.own hundreds"] == np.float32(2 / 47)
    assert features(state, 0)["auction.own hundreds"] == 0
    assert features(state, 2)["auction.own hundreds"] == 0


def test_what_is_seen_of_a_tied_trade() -> None:
    state = load_position([{"cow": 2}, {"cow": 2}, {}])
    state.apply(9)
    lay(state, [1, 1, 0, 0, 0, 0])
    assert features(state, 0)["composing.offered 10"] == np.float32(1 / 20)
    assert features(state, 1)["trade.offered cards"] == np.float32(0.1)
    state.apply(action("COUNTER"))
    lay(state, [0, 1, 0, 0, 0, 0])
    for observer in range(3):
        seen = features(state, observer)
        assert (seen["trade.stake 1"], seen["trade.stake 2"]) == (0, 1)
        assert seen["trade.bid again"] == 1
        assert seen["trade.tied at"] == (0 if observer == 2 else np.float32(0.01))
        assert seen["trade.offered cards"] == seen["composing.offered 10"] == 0
        assert block_of(seen, "challenger")[-observer % 3] == 1
        assert block_of(seen, "target")[(1 - observer) % 3] == 1


def test_history_tells_the_public_events_latest_first() -> None:
    config = {"history": 1}
    hands = [H, H, [2, 4, 2, 0, 0, 0]]
    state = load_position([{"cow": 1}, {}, {"cow": 1}], hands, deck=["donkey"], config=config)
    state.apply(0)
    play(state, "1 NUM 4, 1 NUM 0, 2 PASS, 0 SELL, 2 RAISE, 0 SELL, 2 NUM 0")
    play(state, "1 AUCTION, 2 PASS, 0 PASS")
    state.apply(1 + 8)  # seat 2 trades the cow with seat 0
    lay(state, [1, 0, 0, 0, 0, 0])
    state.apply(action("COUNTER"))
    lay(state, [2, 0, 0, 0, 0, 0])
    lay(state, [0, 1, 0, 0, 0, 0])
    lay(state, [0, 0, 1, 0, 0, 0])
    seats = {
        1: lambda at: (at - 1) % 3,
        0: lambda at: at,
    }
    for observer, r in seats.items():
        raw = state.observe_bytes(observer)
        first = state.rules.blocks[-1].first
        offset = state.rules.features[first].offset
        rows = raw[offset : offset + 1024].view(np.int16).reshape(64, 8)[:, :8].tolist()
        rooster, donkey, cow = 0, 6, 8
        expected = [
            [8, r(2), r(0), cow, 1, 1, 1, r(0)],
            [9, r(2), r(0), 1, 2, 0, 0, 0],
            [6, r(1), -1, rooster, 0, 0, 0, 0],
            [3, r(0), -1, 0, 0, 0, 0, 0],
            [3, r(2), -1, 0, 0, 0, 0, 0],
            [1, r(1), -1, rooster, 0, 0, 0, 0],
            [4, r(2), r(0), 1, 1, 0, 0, 0],
            [2, r(2), -1, 1, 0, 0, 0, 0],
            [7, r(1), 2, 4, 2, 0, 0, 0],
            [3, r(2), -1, 0, 0, 0, 0, 0],
            [2, r(1), -1, 40, 0, 0, 0, 0],
            [10, -1, -1, 1, 0, 0, 0, 0],
            [1, r(0), -1, donkey, 0, 0, 0, 0],
        ]
        assert rows[: len(expected)] == expected
        assert not np.any(rows[len(expected) :])


def approx(values: list[float]) -> Any:
    return pytest.approx(values, abs=1e-6)


def seed_rewards(state: sparring.State, script: str) -> list[list[float]]:
    paid = []
    for seat, chosen in steps(script):
        assert state.seat == seat
        state.apply(chosen)
        paid.append(state.rewards.tolist())
    return paid


def test_seed_rewards_of_auctions() -> None:
    """Section 15: free animals, raises above ten, sales and purchases."""
    for reward, free, sold, was_paid, bought, raised in (
        ("SEED", 0.2, 0.1, 0.1, -0.05, -0.2),
        ("SEED_AGGRESSIVE", 0.2, 0.2, 0.2, 0, 0),
        ("SEED_WIN_ONLY", 0, 0, 0, 0, 0),
    ):
        config = {"reward": reward, "pay_mode": "AUTO"}
        vector = vectors.Auction("", "", config=config)
        assert seed_rewards(opened(vector), "1 PASS, 2 PASS")[-1] == approx([free, -free, -free])
        bids = "1 NUM 0, 1 NUM 3, 2 PASS, "
        told = seed_rewards(opened(vector), bids + "0 SELL")
        assert told[1] == approx([0, raised, 0])
        assert told[-1] == approx([0, sold, 0])
        told = seed_rewards(opened(vector), bids + "0 BUY")
        assert told[-1] == approx([bought, was_paid, 0])


@pytest.mark.parametrize(
    ("cows", "piles", "empty_deck", "expected"),
    [
        # 100 against 50: net payment 50; the loser's quartet does not exist while cards last.
        ([1, 1, 2], ([0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]), False, [0.19, -0.185, 0]),
        ([2, 2, 0], ([0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]), False, [0.29 + 0.5, -0.285, 0]),
        ([2, 2, 0], ([0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]), True, [0.29, -0.185, 0]),
        ([1, 1, 2], ([0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]), False, [-0.053, 0.102, 0]),
    ],
)
def test_seed_rewards_of_trades(
    cows: list[int], piles: tuple[list[int], list[int]], empty_deck: bool, expected: list[float]
) -> None:
    farms: list[dict[str, int]] = [{"cow": count} for count in cows]
    if empty_deck:
        farms[2] |= {kind: 4 for kind in vectors.KINDS if kind not in ("cow", "horse")}
        farms[1]["horse"], farms[2]["horse"] = 2, 2
    hands = [vectors.R, vectors.R, vectors.R]
    state = load_position(farms, hands, config={"reward": "SEED"})
    state.apply(9)
    lay(state, piles[0])
    state.apply(action("COUNTER"))
    lay(state, piles[1])
    assert state.rewards.tolist() == approx(expected)


def test_seed_rewards_of_money() -> None:
    """The poor and the rich are told so whenever they are to decide."""
    hands = [[2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 1], H]
    state = load_position([{}, {}, {}], hands, config={"reward": "SEED"})
    state.apply(0)
    assert state.rewards.tolist() == pytest.approx([0, 0.05, 0])
    play(state, "1 PASS, 2 RAISE, 1 PASS")
    assert state.seat == 0
    assert state.rewards.tolist() == pytest.approx([-0.2, 0, 0])


def test_potential_is_discounted_between_own_decisions() -> None:
    """Whatever happens in between, a seat is paid g * F(now) - F(then)."""
    config = {"reward": "POTENTIAL", "potential_gamma": 0.9, "bluff": "FORBID"}
    state = sparring.new_state("kuhhandel", seed=8, config=config, rewards={"potential": 1.0})
    rng = np.random.default_rng(1)
    open_since: dict[int, tuple[float, float]] = {}
    checked = 0
    while not state.over:
        seat = state.seat
        if seat in open_since:
            then, paid_since = open_since[seat]
            now = state.scores[seat] / 10000
            assert paid_since == pytest.approx(0.9 * now - then, abs=1e-5)
            checked += 1
        open_since[seat] = (state.scores[seat] / 10000, 0.0)
        state.apply(int(rng.choice(state.legal())))
        for other, (then, paid_since) in open_since.items():
            open_since[other] = (then, paid_since + float(state.rewards[other]))
    for seat, (then, paid_since) in open_since.items():
        assert paid_since == pytest.approx(0.9 * state.scores[seat] / 10000 - then, abs=1e-5)
    assert checked > 200


def test_flags_of_section_9() -> None:
    """Each option does what its line says; the defaults are in the vectors."""
    farms = [{"cow": 1}, {"cow": 1}, {"cow": 2}]

    def traded(offer: Sequence[int], counter: Sequence[int], **config: Any) -> Position:
        state = load_position(farms, config=config)
        state.apply(9)
        lay(state, offer)
        state.apply(action("COUNTER"))
        lay(state, counter)
        return read(state)

    ten = [0, 1, 0, 0, 0, 0]
    # K8: tied piles go back, and nobody has learnt anything.
    back = traded(ten, [1, 1, 0, 0, 0, 0], tie_money="TAKE_BACK")
    assert (back.ties, back.money) == (1, [tuple(H)] * 3)
    assert back.known[2][0] == back.known[0][1] == tuple(H)
    # K11: zeros return to their owners.
    zeros = traded([2, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], zeros_return=1)
    assert zeros.money[0] == (2, 3, 1, 0, 0, 0)
    assert zeros.money[1] == (2, 5, 1, 0, 0, 0)
    # K7: a pile may be empty.
    empty = traded([0] * 6, [0] * 6, empty_offer=1, tie_rounds=1)
    assert empty.animals[0][8] == 2
    # K6: everybody sees what is paid.
    vector = vectors.Auction("", "", config={"open_pay": 1})
    state = opened(vector)
    play(state, "1 RAISE, 2 RAISE, 1 PASS, 0 SELL, 2 NUM 0")
    at = read(state)
    assert at.known[1] == at.money
    # K2: HARD passes stay, but a repeated auction starts from zero for everybody.
    state = opened(vectors.Auction("", "", config={"pass_mode": "HARD"}))
    play(state, "1 PASS, 2 NUM 2, 2 NUM 0, 0 SELL")
    assert (state.seat, read(state).phase, read(state).passed) == (1, "bid", [])


def test_k14_the_limit_cuts_or_scores() -> None:
    for at_limit, terminated in (("CUT", False), ("SCORE", True)):
        config = {"max_decisions": 300, "at_limit": at_limit}
        state = sparring.new_state("kuhhandel", seed=2, config=config)
        rng = np.random.default_rng(0)
        decisions = 0
        while not state.over:
            assert not state.rewards.any()
            state.apply(int(rng.choice(state.legal())))
            decisions += 1
        assert decisions == 300
        assert (state.terminated, state.truncated) == (terminated, not terminated)
        assert state.end == "decision limit"
        assert state.rewards.any() == terminated
        assert state.audit() == ""


def test_presets() -> None:
    from sparring.games.kuhhandel import PRESETS

    fast = sparring.Rules("kuhhandel", PRESETS["FAST"]).config
    assert (fast["bluff"], fast["pay_mode"], fast["pass_mode"]) == ("FORBID", "AUTO", "HARD")
    seed = sparring.Rules("kuhhandel", PRESETS["SEED"]).config
    assert (seed["bluff"], seed["pay_mode"], seed["pass_mode"]) == ("FORBID", "AUTO", "SOFT")
    assert (seed["tie_rounds"], seed["empty_offer"]) == (1, 1)
    assert PRESETS["OFFICIAL"] == {}
    with pytest.raises(sparring.ConfigError, match="edition=1 is outside"):
        sparring.Rules("kuhhandel", {"edition": 1})


@pytest.mark.parametrize(
    ("farms", "change", "message"),
    [
        ([{}, {}], {}, "num_players=2 is outside 3..5"),
        ([{"yak": 1}, {}, {}], {}, "no animal called 'yak'"),
        ([{"cow": 3}, {"cow": 2}, {}], {}, "four of cow"),
        ([{}, {}, {}], {"turn": 3}, "turn must be 0..2"),
        ([{}, {}, {}], {"deck": ["cow"] * 5}, "at most 40 cards"),
        ([{}, {}, {}], {"money": [H, H]}, "3 players need 3 farms and hands"),
        ([{}, {}, {}], {"money": [[11, 0, 0, 0, 0, 0], H, H]}, "counts of money"),
        (
            [{}, {}, {}],
            {"money": [[0, 0, 0, 0, 0, 5], [0, 0, 0, 0, 0, 5], H]},
            "fewer cards of 500",
        ),
        ([FULL_FARM, {}, {}], {}, "can do nothing"),
    ],
)
def test_bad_positions_are_refused(
    farms: list[dict[str, int]], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(sparring.ConfigError, match=message):
        load_position(farms, **change)
