"""The reward parts of the slow Skull King."""

from __future__ import annotations

import random

import pytest

from reference.skull_king import rewards
from reference.skull_king.helpers import loaded, new_game
from reference.skull_king.rules import round_points
from vectors import skull_king as vectors


@pytest.mark.parametrize(("scores", "rank", "win"), vectors.RANKS)
def test_x12_final_ties(scores: list[int], rank: list[float], win: list[float]) -> None:
    assert [float(x) for x in rewards.rank_rewards(scores)] == pytest.approx(rank)
    assert [float(x) for x in rewards.win_rewards(scores)] == pytest.approx(win)
    assert rewards.flat_ranks(scores) == [6.5, 6.5, -2, -5]


@pytest.mark.parametrize(("bid", "won", "cards", "capture", "manager", "delta"), vectors.HINDSIGHT)
def test_x16_hindsight(
    bid: int, won: int, cards: int, capture: int, manager: float, delta: float
) -> None:
    assert rewards.manager_reward(bid, won, cards) == manager
    assert round_points(bid, won, cards, capture) / 100 == delta


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
