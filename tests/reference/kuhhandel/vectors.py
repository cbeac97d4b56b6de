"""Test vectors of section 18 as plain data, for any implementation of the game.

Money is six counts of 0, 10, 50, 100, 200, 500. A pile is written as the values of its cards.
"""

from __future__ import annotations

from typing import Any

H = [2, 4, 1, 0, 0, 0]
R = [2, 4, 1, 1, 1, 1]
NO_MONEY = [0] * 6

_VALUES = (0, 10, 50, 100, 200, 500)


def pile(*cards: int) -> list[int]:
    """Counts of a pile: pile(50, 0) == [1, 0, 1, 0, 0, 0]."""
    return [cards.count(value) for value in _VALUES]


# Name, animals of a player as {kind: cards}, score (18.1).
SCORES: list[tuple[str, dict[str, int], int]] = [
    ("F01", {"pig": 4, "dog": 4, "rooster": 4}, 2460),
    ("F02", {"horse": 4, "cow": 4, "pig": 4}, 7350),
    (
        "F03",
        dict.fromkeys(
            ["rooster", "goose", "cat", "dog", "sheep", "goat", "donkey", "pig", "cow", "horse"],
            4,
        ),
        38500,
    ),
    ("F04", {"horse": 3, "cow": 2}, 0),
    ("F05", {"rooster": 4}, 10),
    ("F06", {"rooster": 4, "goose": 4}, 100),
    ("F07", {"horse": 4}, 1000),
    ("F08", {"donkey": 4, "goat": 4}, 1700),
    ("F09", {"rooster": 4, "horse": 3}, 10),
    ("F10", {"pig": 4, "rooster": 4}, 1320),
]

# Name, hand, price, AUTO, all minimal sets (18.3).
PAYMENTS: list[tuple[str, list[int], int, list[int], list[list[int]]]] = [
    ("P01", H, 30, pile(10, 10, 10), [pile(10, 10, 10), pile(50)]),
    ("P02", H, 50, pile(50), [pile(50)]),
    ("P03", H, 60, pile(50, 10), [pile(50, 10)]),
    ("P04", [0, 1, 1, 1, 0, 0], 20, pile(50), [pile(50), pile(100)]),
    ("P05", [0, 0, 2, 0, 1, 0], 90, pile(50, 50), [pile(50, 50), pile(200)]),
    ("P06", [0, 3, 0, 0, 0, 1], 40, pile(500), [pile(500)]),
    ("P07", [0, 10, 1, 0, 0, 0], 100, pile(50, *[10] * 5), [pile(50, *[10] * 5), pile(*[10] * 10)]),
    ("P08", [0, 2, 3, 0, 1, 0], 210, pile(200, 10), [pile(200, 10), pile(200, 50)]),
    (
        "P09",
        [0, 4, 2, 1, 0, 0],
        120,
        pile(100, 10, 10),
        [pile(100, 10, 10), pile(100, 50), pile(50, 50, 10, 10)],
    ),
    (
        "P10",
        [0, 0, 0, 3, 1, 1],
        300,
        pile(200, 100),
        [pile(200, 100), pile(100, 100, 100), pile(500)],
    ),
]

# Donkeys turned up, total per player, circulation with three players (18.4).
DONKEYS: list[tuple[int, int, int]] = [
    (1, 140, 420),
    (2, 240, 720),
    (3, 440, 1320),
    (4, 940, 2820),
]


def _trade(
    name: str,
    before: list[int],
    money: list[list[int]],
    rounds: list[tuple[list[int], list[int] | None]],
    after: list[int],
    money_after: list[list[int]],
    **config: Any,
) -> dict[str, Any]:
    """`rounds`: offer and counter of each bid, None for accept."""
    return {
        "name": name,
        "before": before,
        "money": money,
        "rounds": rounds,
        "after": after,
        "money_after": money_after,
        "config": config,
    }


# Cow trades for cows between 0 (challenger) and 1 (18.5).
TRADES: list[dict[str, Any]] = [
    _trade(
        "C01",
        [1, 1, 2],
        [H, H],
        [(pile(10, 10), None)],
        [2, 0, 2],
        [[2, 2, 1, 0, 0, 0], [2, 6, 1, 0, 0, 0]],
    ),
    _trade(
        "C02",
        [1, 1, 2],
        [H, H],
        [(pile(50, 0), pile(10, 10, 10))],
        [2, 0, 2],
        [[1, 7, 0, 0, 0, 0], [3, 1, 2, 0, 0, 0]],
    ),
    _trade(
        "C03",
        [1, 2, 1],
        [H, H],
        [(pile(0, 0), pile(10))],
        [0, 3, 1],
        [[0, 5, 1, 0, 0, 0], [4, 3, 1, 0, 0, 0]],
    ),
    _trade(
        "C04",
        [2, 2, 0],
        [R, R],
        [(pile(100), pile(50, 10, 10, 10, 10))],
        [4, 0, 0],
        [[2, 8, 2, 0, 1, 1], [2, 0, 0, 2, 1, 1]],
    ),
    _trade(
        "C05",
        [3, 1, 0],
        [R, R],
        [(pile(100), pile(50))],
        [4, 0, 0],
        [[2, 4, 2, 0, 1, 1], [2, 4, 0, 2, 1, 1]],
    ),
    _trade(
        "C06",
        [1, 3, 0],
        [R, R],
        [(pile(0), pile(10))],
        [0, 4, 0],
        [[1, 5, 1, 1, 1, 1], [3, 3, 1, 1, 1, 1]],
    ),
    _trade(
        "C07",
        [1, 1, 2],
        [R, R],
        [(pile(100), pile(100)), (pile(50), pile(200))],
        [0, 2, 2],
        [[2, 4, 0, 1, 2, 1], [2, 4, 2, 1, 0, 1]],
    ),
    _trade(
        "C08",
        [1, 1, 2],
        [R, R],
        [(pile(0), pile(0)), (pile(0), pile(0, 0))],
        [2, 0, 2],
        [[3, 4, 1, 1, 1, 1], [1, 4, 1, 1, 1, 1]],
    ),
    _trade(
        "C09",
        [1, 1, 2],
        [[0, 5, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]],
        [(pile(*[10] * 5), pile(50)), (pile(50), pile(*[10] * 4))],
        [2, 0, 2],
        [[0, 4, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]],
    ),
    _trade("C10", [1, 1, 2], [NO_MONEY, H], [(pile(), None)], [2, 0, 2], [NO_MONEY, H]),
    _trade(
        "C11",
        [1, 1, 2],
        [NO_MONEY, H],
        [(pile(), pile(0)), (pile(0), pile(0))],
        [2, 0, 2],
        [[1, 0, 0, 0, 0, 0], [1, 4, 1, 0, 0, 0]],
    ),
    _trade(
        "C12",
        [1, 1, 2],
        [R, R],
        [(pile(0), pile(0))],
        [2, 0, 2],
        [R, R],
        tie_rounds=1,
    ),
]
