"""What Kuhhandel pays for auctions, trades, money and potential (section 15)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparring
from games.kuhhandel_helpers import lay, opened, play
from sparring.games.kuhhandel import load_position
from vectors import kuhhandel as vectors
from vectors.kuhhandel import H, action, steps


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
    farms[2]["donkey"] = 4  # so much money is there only when they all have come
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
