"""Test vectors of section 18 as plain data, for any implementation of the game.

Money is a list of counts of [0, 10, 50, 100, 200, 500]. A script is a line of steps such as
"1 PASS, 2 NUM 5", the seat and its action; "=" ends a part that is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KINDS = ("rooster", "goose", "cat", "dog", "sheep", "goat", "donkey", "pig", "cow", "horse")
H = [2, 4, 1, 0, 0, 0]
R = [2, 4, 1, 1, 1, 1]
EMPTY = [0, 0, 0, 0, 0, 0]
RICH = [2, 4, 2, 1, 1, 1]
"""Everything that one player has been given when four donkeys are out: 940."""

_WORDS = {"AUCTION": 0, "PASS": 41, "RAISE": 42, "SELL": 43, "BUY": 44, "ACCEPT": 45, "COUNTER": 46}
NUM = 47


def action(text: str) -> int:
    """Action index of a word (section 12): action("NUM 3") == 50."""
    word, *number = text.split()
    return NUM + int(number[0]) if word == "NUM" else _WORDS[word]


def steps(script: str) -> list[tuple[int, int]]:
    """Seats and actions of a script."""
    found = []
    for step in filter(None, (part.strip() for part in script.split(","))):
        seat, text = step.split(maxsplit=1)
        found.append((int(seat), action(text)))
    return found


# Section 18.1: name, complete quartets, other animals, score.
SCORES: list[tuple[str, str, dict[str, int], int]] = [
    ("F01", "pig dog rooster", {}, 2460),
    ("F02", "horse cow pig", {}, 7350),
    ("F04", "", {"horse": 3, "cow": 2}, 0),
    ("F05", "rooster", {}, 10),
    ("F06", "rooster goose", {}, 100),
    ("F07", "horse", {}, 1000),
    ("F08", "donkey goat", {}, 1700),
    ("F09", "rooster", {"horse": 3}, 10),
]


@dataclass(frozen=True)
class Auction:
    """Section 18.2: what holds after a script. The auctioneer is seat 0."""

    name: str
    script: str
    card: str = "horse"
    config: dict[str, Any] = field(default_factory=dict)
    given: dict[int, list[int]] = field(default_factory=dict)
    """Hands other than H."""
    players: int = 3
    donkeys_out: bool = False
    money: dict[int, list[int]] = field(default_factory=dict)
    owner: int | None = None
    phase: str | None = None
    actor: int | None = None
    turn: int | None = None
    high: int | None = None
    legal: list[int] | None = None
    lowest_number: int | None = None
    exposed: list[int] | None = None
    seen_by_all: int | None = None
    """The seat whose money everybody knows."""


_A02 = "1 RAISE, 2 RAISE, 1 PASS, "
_A07 = "1 RAISE, 2 NUM 1, 2 NUM 5, 1 PASS"
_A10 = "1 PASS, 2 NUM 1, 2 NUM 5, 1 PASS, 0 BUY"
_A11 = "1 NUM 1, 1 NUM 0, 2 PASS, 0 SELL"
_140 = [2, 4, 2, 0, 0, 0]

AUCTIONS = [
    Auction("A01", "1 PASS, 2 PASS", owner=0, turn=1, money={0: H, 1: H, 2: H}),
    Auction(
        "A02",
        _A02 + "0 SELL, 2 NUM 0",
        owner=2,
        turn=1,
        money={0: [2, 6, 1, 0, 0, 0], 1: H, 2: [2, 2, 1, 0, 0, 0]},
    ),
    Auction(
        "A03",
        _A02 + "0 BUY, 0 NUM 0",
        owner=0,
        turn=1,
        money={0: [2, 2, 1, 0, 0, 0], 1: H, 2: [2, 6, 1, 0, 0, 0]},
    ),
    Auction(
        "A04",
        _A02 + "0 SELL, 2 NUM 1",
        owner=2,
        money={0: [2, 4, 2, 0, 0, 0], 2: [2, 4, 0, 0, 0, 0]},
    ),
    Auction("A05 SOFT", "1 PASS, 2 RAISE", phase="bid", actor=1),
    Auction("A05 HARD", "1 PASS, 2 RAISE", config={"pass_mode": "HARD"}, phase="decide", actor=0),
    Auction(
        "A06 digits",
        "1 NUM 0",
        given={1: [2, 0, 2, 0, 0, 0]},
        phase="tens",
        legal=[NUM + digit for digit in range(2, 10)],
    ),
    Auction(
        "A06",
        "1 NUM 0, 1 NUM 3, 2 PASS, 0 SELL",
        given={1: [2, 0, 2, 0, 0, 0]},
        owner=1,
        money={0: [2, 4, 2, 0, 0, 0], 1: [2, 0, 1, 0, 0, 0]},
    ),
    Auction(
        "A07",
        _A07,
        card="donkey",
        money={0: _140, 1: _140, 2: _140},
        high=150,
        phase="decide",
        legal=[action("SELL")],
    ),
    Auction(
        "A08",
        _A07 + ", 0 SELL",
        card="donkey",
        phase="bid",
        actor=1,
        high=0,
        exposed=[2],
        seen_by_all=2,
    ),
    Auction(
        "A09 decide", _A07 + ", 0 SELL, 1 RAISE", card="donkey", phase="decide", actor=0, high=10
    ),
    Auction(
        "A09",
        _A07 + ", 0 SELL, 1 RAISE, 0 SELL, 1 NUM 0",
        card="donkey",
        owner=1,
        money={0: [2, 5, 2, 0, 0, 0], 1: [2, 3, 2, 0, 0, 0]},
    ),
    Auction(
        "A10",
        _A10,
        given={0: [2, 4, 1, 1, 0, 0]},
        owner=0,
        money={0: [2, 4, 0, 0, 0, 0], 2: [2, 4, 2, 1, 0, 0]},
        exposed=[],
    ),
    Auction("A11 first", _A11, phase="bid", actor=2, high=0, exposed=[1], seen_by_all=1),
    Auction("A11", _A11 + ", 2 NUM 2, 2 NUM 0, 0 SELL", owner=0, turn=1, money={0: H, 1: H, 2: H}),
    Auction(
        "A12",
        "1 NUM 0, 1 NUM 8",
        config={"bluff": "FORBID"},
        actor=2,
        legal=[action("PASS"), action("RAISE")],
    ),
    Auction(
        "A12 end",
        "1 NUM 0, 1 NUM 8, 2 RAISE",
        config={"bluff": "FORBID"},
        phase="decide",
        actor=0,
        high=90,
    ),
    Auction("A13", "", actor=1, phase="bid", legal=[41, 42, 47, 48, 49]),
    Auction(
        "A14",
        "1 NUM 47",
        players=5,
        donkeys_out=True,
        given=dict.fromkeys(range(5), RICH),
        phase="decide",
        high=4700,
    ),
    Auction(
        "A15",
        "1 NUM 9, 1 NUM 8",
        players=5,
        donkeys_out=True,
        given=dict.fromkeys(range(5), RICH),
        high=980,
        lowest_number=10,
    ),
    Auction(
        "A15 raise",
        "1 NUM 9, 1 NUM 8, 2 RAISE",
        players=5,
        donkeys_out=True,
        given=dict.fromkeys(range(5), RICH),
        high=990,
    ),
    Auction("A16", "1 PASS, 2 RAISE, 3 PASS", players=4, actor=1, phase="bid"),
    Auction("A16 raise", "1 PASS, 2 RAISE, 3 PASS, 1 RAISE", players=4, actor=2, high=20),
    Auction("A16 then", "1 PASS, 2 RAISE, 3 PASS, 1 RAISE, 2 PASS", players=4, actor=3, high=20),
    Auction(
        "A17",
        _A11,
        config={"bluff": "CAP"},
        phase="bid",
        actor=1,
        high=0,
        exposed=[1],
        legal=[action("PASS"), action("RAISE"), NUM],
    ),
]

# Section 18.3: name, hand, price, AUTO set, all minimal sets.
PAYMENTS: list[tuple[str, list[int], int, list[int], list[list[int]]]] = [
    ("P01", H, 30, [0, 3, 0, 0, 0, 0], [[0, 3, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]]),
    ("P02", H, 50, [0, 0, 1, 0, 0, 0], [[0, 0, 1, 0, 0, 0]]),
    ("P03", H, 60, [0, 1, 1, 0, 0, 0], [[0, 1, 1, 0, 0, 0]]),
    (
        "P04",
        [0, 1, 1, 1, 0, 0],
        20,
        [0, 0, 1, 0, 0, 0],
        [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]],
    ),
    (
        "P05",
        [0, 0, 2, 0, 1, 0],
        90,
        [0, 0, 2, 0, 0, 0],
        [[0, 0, 2, 0, 0, 0], [0, 0, 0, 0, 1, 0]],
    ),
    ("P06", [0, 3, 0, 0, 0, 1], 40, [0, 0, 0, 0, 0, 1], [[0, 0, 0, 0, 0, 1]]),
    (
        "P07",
        [0, 10, 1, 0, 0, 0],
        100,
        [0, 5, 1, 0, 0, 0],
        [[0, 5, 1, 0, 0, 0], [0, 10, 0, 0, 0, 0]],
    ),
    (
        "P08",
        [0, 2, 3, 0, 1, 0],
        210,
        [0, 1, 0, 0, 1, 0],
        [[0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0]],
    ),
    (
        "P09",
        [0, 4, 2, 1, 0, 0],
        120,
        [0, 2, 0, 1, 0, 0],
        [[0, 2, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0], [0, 2, 2, 0, 0, 0]],
    ),
    (
        "P10",
        [0, 0, 0, 3, 1, 1],
        300,
        [0, 0, 0, 1, 1, 0],
        [[0, 0, 0, 1, 1, 0], [0, 0, 0, 3, 0, 0], [0, 0, 0, 0, 0, 1]],
    ),
]

# Section 18.4: donkey, card to each, total per player, circulation of three players.
DONKEYS = [(1, 50, 140, 420), (2, 100, 240, 720), (3, 200, 440, 1320), (4, 500, 940, 2820)]


@dataclass(frozen=True)
class Trade:
    """Section 18.5: a trade for cows between seat 0, the challenger, and seat 1."""

    name: str
    cows: list[int]
    money: tuple[list[int], list[int]]
    piles: list[list[int] | None]
    """Offer, reply, and after a tie both again; None as a reply accepts."""
    cows_after: list[int]
    money_after: tuple[list[int], list[int]]
    config: dict[str, Any] = field(default_factory=dict)


_ZERO = [1, 0, 0, 0, 0, 0]
_TEN = [0, 1, 0, 0, 0, 0]
_FIFTY = [0, 0, 1, 0, 0, 0]
_HUNDRED = [0, 0, 0, 1, 0, 0]

TRADES = [
    Trade(
        "C01",
        [1, 1, 2],
        (H, H),
        [[0, 2, 0, 0, 0, 0], None],
        [2, 0, 2],
        ([2, 2, 1, 0, 0, 0], [2, 6, 1, 0, 0, 0]),
    ),
    Trade(
        "C02",
        [1, 1, 2],
        (H, H),
        [[1, 0, 1, 0, 0, 0], [0, 3, 0, 0, 0, 0]],
        [2, 0, 2],
        ([1, 7, 0, 0, 0, 0], [3, 1, 2, 0, 0, 0]),
    ),
    Trade(
        "C03",
        [1, 2, 1],
        (H, H),
        [[2, 0, 0, 0, 0, 0], _TEN],
        [0, 3, 1],
        ([0, 5, 1, 0, 0, 0], [4, 3, 1, 0, 0, 0]),
    ),
    Trade(
        "C04",
        [2, 2, 0],
        (R, R),
        [_HUNDRED, [0, 4, 1, 0, 0, 0]],
        [4, 0, 0],
        ([2, 8, 2, 0, 1, 1], [2, 0, 0, 2, 1, 1]),
    ),
    Trade(
        "C05",
        [3, 1, 0],
        (R, R),
        [_HUNDRED, _FIFTY],
        [4, 0, 0],
        ([2, 4, 2, 0, 1, 1], [2, 4, 0, 2, 1, 1]),
    ),
    Trade(
        "C06",
        [1, 3, 0],
        (R, R),
        [_ZERO, _TEN],
        [0, 4, 0],
        ([1, 5, 1, 1, 1, 1], [3, 3, 1, 1, 1, 1]),
    ),
    Trade(
        "C07",
        [1, 1, 2],
        (R, R),
        [_HUNDRED, _HUNDRED, _FIFTY, [0, 0, 0, 0, 1, 0]],
        [0, 2, 2],
        ([2, 4, 0, 1, 2, 1], [2, 4, 2, 1, 0, 1]),
    ),
    Trade(
        "C08",
        [1, 1, 2],
        (R, R),
        [_ZERO, _ZERO, _ZERO, [2, 0, 0, 0, 0, 0]],
        [2, 0, 2],
        ([3, 4, 1, 1, 1, 1], [1, 4, 1, 1, 1, 1]),
    ),
    Trade(
        "C09",
        [1, 1, 2],
        ([0, 5, 0, 0, 0, 0], _FIFTY),
        [[0, 5, 0, 0, 0, 0], _FIFTY, _FIFTY, [0, 4, 0, 0, 0, 0]],
        [2, 0, 2],
        ([0, 4, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]),
    ),
    Trade("C10", [1, 1, 2], (EMPTY, H), [EMPTY, None], [2, 0, 2], (EMPTY, H)),
    Trade(
        "C11",
        [1, 1, 2],
        (EMPTY, H),
        [EMPTY, _ZERO, _ZERO, _ZERO],
        [2, 0, 2],
        (_ZERO, [1, 4, 1, 0, 0, 0]),
    ),
    Trade("C12", [1, 1, 2], (R, R), [_ZERO, _ZERO], [2, 0, 2], (R, R), {"tie_rounds": 1}),
]

# Section 18.6, M07 and M08: script, hands other than H, then what observers know of others:
# (observer, other, known, unknown cards).
KNOWLEDGE: list[tuple[str, str, dict[int, list[int]], list[tuple[int, int, list[int], int]]]] = [
    (
        "M07",
        _A02 + "0 SELL, 2 NUM 0",
        {},
        [(1, 2, [0, 2, 0, 0, 0, 0], 3), (1, 0, H, 2), (0, 2, [2, 2, 1, 0, 0, 0], 0)],
    ),
    (
        "M08",
        _A10,
        {0: [2, 4, 1, 1, 0, 0]},
        [(1, 2, H, 2), (1, 0, [0, 2, 0, 0, 0, 0], 4)],
    ),
]
