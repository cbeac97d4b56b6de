"""What the numbers of a Kuhhandel observation say (section 13)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import sparring
from games.kuhhandel_helpers import lay, opened, play
from sparring.games.kuhhandel import load_position, read
from vectors import kuhhandel as vectors
from vectors.kuhhandel import H, action


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
