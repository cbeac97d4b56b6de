"""Test vectors of section 21 as plain data, for any implementation of the game.

Cards are written in the notation of the specification and read with `card` and `cards`.
"""

from __future__ import annotations

from typing import Any

_SUITS = {"B": 10, "G": 24, "P": 38, "Y": 52}
_NAMED = {"SK": 0, "WW": 1, "KR": 2, "T": 71, "TP": 71, "TE": 71}
_NUMBERED = {"Pi": 5, "M": 3, "E": 66, "L": 72}


def card(text: str) -> tuple[int, bool]:
    """Card id and whether it is the Tigress as pirate: card("G7") == (30, False)."""
    if text in _NAMED:
        return _NAMED[text], text == "TP"
    name = text.rstrip("0123456789")
    first = _SUITS[name] if name in _SUITS else _NUMBERED[name]
    return first + int(text[len(name) :]) - 1, False


def cards(text: str) -> list[tuple[int, bool]]:
    return [card(word) for word in text.split()]


def ids(text: str) -> list[int]:
    return [number for number, _ in cards(text)]


def action(text: str) -> int:
    """Action index that plays the card (section 15); the Tigress as TP or TE."""
    return 85 if text == "TE" else 11 + card(text)[0]


# Name, cards in order, winner, next leader, capture bonus.
TRICKS: list[tuple[str, str, int | None, int, int]] = [
    ("T01", "G7 G12 G8", 1, 1, 0),
    ("T02", "Y12 Y5 P14", 0, 0, 10),
    ("T03", "Y12 Y5 B2", 2, 2, 0),
    ("T04", "Y12 B5 B7 Y14", 2, 2, 10),
    ("T05", "B7 Y8 B4 Y2", 0, 0, 0),
    ("T06", "G14 Y2 P6 B4", 3, 3, 10),
    ("T07", "E1 P11 P6", 1, 1, 0),
    ("T08", "E1 P1 P6 G14", 2, 2, 10),
    ("T09", "E1 E2 E3", 0, 0, 0),
    ("T10", "L1 E1 TE E2", 0, 0, 0),
    ("T11", "TE L1 E1", 0, 0, 0),
    ("T12", "E1 G1 E2", 1, 1, 0),
    ("T13", "B14 Pi1 Y14", 1, 1, 30),
    ("T14", "Pi1 Pi2 Pi3", 0, 0, 0),
    ("T15", "Pi1 TP", 0, 0, 0),
    ("T16", "TP Pi1", 0, 0, 0),
    ("T17", "M1 B14 G3", 0, 0, 20),
    ("T18", "M2 M1 Y9", 0, 0, 0),
    ("T19", "M1 Pi4 G2", 1, 1, 20),
    ("T20", "Pi4 M1 M2", 0, 0, 40),
    ("T21", "TP M1 G2", 0, 0, 20),
    ("T22", "TE M1 G2", 1, 1, 0),
    ("T23", "SK Pi1 Pi2 B14", 0, 0, 80),
    ("T24", "Pi1 SK G5 TP", 1, 1, 60),
    ("T25", "Pi1 SK G5 TE", 1, 1, 30),
    ("T26", "SK M1 G14", 1, 1, 50),
    ("T27", "M1 SK", 0, 0, 40),
    ("T28", "Pi1 SK M2", 2, 2, 40),
    ("T29", "M2 SK Pi1 M1", 0, 0, 40),
    ("T30", "SK M1 TP", 1, 1, 40),
    ("T31", "Y14 Pi1 SK M1", 3, 3, 50),
    ("T32", "Y12 B3 KR G14", None, 1, 0),
    ("T33", "KR G3 Y14 G9", None, 3, 0),
    ("T34", "Pi1 KR SK", None, 2, 0),
    ("T35", "E1 KR E2", None, 0, 0),
    ("T36", "KR E1 L1", None, 1, 0),
    ("T37", "B2 Pi1 Y14 SK WW", 2, 2, 10),
    ("T38", "WW G9 P9", 1, 1, 0),
    ("T39", "G8 B10 WW P4", 1, 1, 0),
    ("T40", "G2 B14 WW", 1, 1, 20),
    ("T41", "E1 M1 Pi1 SK WW", None, 4, 0),
    ("T42", "E1 WW E2 E3", None, 1, 0),
    ("T43", "Y12 B3 WW KR", None, 1, 0),
    ("T44", "G14 P13 KR B11 WW", 0, 0, 10),
    ("T45", "KR WW Pi1", None, 1, 0),
    ("T46", "WW KR Pi1 SK", None, 3, 0),
    ("T47", "WW KR", None, 0, 0),
    ("T48", "P5 E1 Y14 B1 P14", 3, 3, 20),
    ("T49", "G14 G13 P14 Y14", 0, 0, 30),
    ("T50", "SK Pi1 Pi2 Pi3 Pi4 Pi5 TP M1", 7, 7, 40),
    ("T51", "SK Pi1 Pi2 Pi3 Pi4 Pi5 TP", 0, 0, 180),
]

# Capture bonuses under other rules (sections 6 and 12): cards, deck, tigress_bonus, bonus.
OTHER_BONUSES: list[tuple[str, str, int, int]] = [
    ("SK Pi1 TE", "CLASSIC66", 1, 60),
    ("SK Pi1 TP", "CLASSIC66", 1, 60),
    ("SK Pi1 TE", "CLASSIC66", 0, 30),
    ("SK Pi1 TP", "CLASSIC66", 0, 30),
    ("Pi1 M1 M2", "CLASSIC66", 1, 0),
    ("SK M1 Pi1", "CLASSIC66", 1, 50),
    ("SK Pi1 TP", "FULL74", 0, 30),
    ("TP M1 G14", "FULL74", 0, 10),
    ("TP M1 G14", "STANDARD70", 1, 30),
]

# Leader after a Kraken with kraken_lead = LEFT_OF_KRAKEN: cards, next leader.
LEFT_OF_KRAKEN: list[tuple[str, int]] = [
    ("Y12 B3 KR G14", 3),
    ("Y12 B3 WW KR", 0),
    ("WW KR Pi1 SK", 2),
    ("KR G3 Y14 G9", 1),
]

# Name, trick so far, hand, legal cards under the official rule.
LEGALITY: list[tuple[str, str, str, str]] = [
    ("L01", "G5", "G3 B2 Pi1 Y9", "G3 Pi1"),
    ("L02", "G5", "B2 Y9 E1", "B2 Y9 E1"),
    ("L03", "E1", "G3 B2 Y9", "G3 B2 Y9"),
    ("L04", "E1 P4", "P9 B3 M1", "P9 M1"),
    ("L05", "E1 Pi1 G5", "G9 B3 Y2", "G9 B3 Y2"),
    ("L06", "Pi1 G5", "G9 B3 Y2", "G9 B3 Y2"),
    ("L07", "WW G5", "G9 B3", "G9 B3"),
    ("L08", "G5 WW", "G9 B3 E2", "G9 E2"),
    ("L09", "G5 KR", "G9 B3 E2", "G9 E2"),
    ("L10", "B4", "B2 G9 T", "B2 T"),
    ("L11", "TE Y3", "Y9 G2", "Y9"),
    ("L12", "TP Y3", "Y9 G2", "Y9 G2"),
    ("L13", "L1 Y3", "Y9 G2 L2", "Y9 L2"),
]

# Legal cards that differ from the official rule, by name.
LEGALITY_FIRST_SUIT = {"L05": "G9", "L06": "G9", "L07": "G9", "L12": "Y9"}
# SEED adds black to the FIRST_SUIT answer; L10 follows black anyway.
LEGALITY_SEED = {
    "L01": "G3 B2 Pi1",
    "L04": "P9 B3 M1",
    "L05": "G9 B3",
    "L06": "G9 B3",
    "L07": "G9 B3",
    "L08": "G9 B3 E2",
    "L09": "G9 B3 E2",
    "L12": "Y9",
}


def _score(name: str, bid: int, won: int, size: int, points: int, **other: Any) -> dict[str, Any]:
    standard = {"scoring": "SKULL_KING", "capture": 0, "loot": 0, "cannonball": 0}
    rest = {"wager": 0, "harry": 0}
    own = {"name": name, "bid": bid, "won": won, "cards": size, "points": points}
    return {**standard, **rest, **own, **other}


# Bids are the ones before Harry's change, which is `harry`.
ROUND_SCORES: list[dict[str, Any]] = [
    _score("R01", 3, 3, 5, 60),
    _score("R02", 2, 4, 6, -20),
    _score("R03", 2, 0, 6, -20, capture=30),
    _score("R04", 0, 0, 7, 70),
    _score("R05", 0, 2, 9, -90),
    _score("R06", 0, 1, 1, -10),
    _score("R07", 1, 1, 1, 20),
    _score("R08", 1, 0, 1, -10),
    _score("R09", 10, 10, 10, 200),
    _score("R10", 10, 0, 10, -100),
    _score("R11", 4, 4, 8, 130, capture=50),
    _score("R12", 5, 6, 10, -10, capture=180),
    _score("R13", 0, 0, 8, 80),
    _score("R14", 0, 0, 10, 120, loot=20),
    _score("R15", 3, 3, 3, 30, scoring="RASCAL"),
    _score("R16", 0, 1, 4, 20, scoring="RASCAL"),
    _score("R17", 4, 2, 4, 0, scoring="RASCAL", capture=30),
    _score("R18", 3, 4, 6, 55, scoring="RASCAL", capture=50),
    _score("R19", 3, 3, 6, 90, scoring="RASCAL", cannonball=1),
    _score("R20", 3, 2, 6, 0, scoring="RASCAL", cannonball=1, capture=40),
    _score("R21", 2, 2, 5, 60, wager=20),
    _score("R22", 2, 3, 5, -30, wager=20),
    _score("R23", 2, 3, 5, 60, harry=1),
    _score("R24", 1, 1, 4, -40, harry=-1),
    _score("R25", 3, 2, 6, 20, scoring="RASCAL", wager=10),
]

# Whole rounds in ROUND mode. `hands` start the round (the ghost's in play order), `bids` are per
# seat, `plays` are the players' cards (ghost left out) in the order in which they fall. `actors`
# are the seats of these plays, `loot` the alliances of both Loot cards as [by, with]. Keys that a
# round has not are not checked.
ROUNDS: list[dict[str, Any]] = [
    {
        "name": "X01",
        "num_players": 3,
        "round": 4,
        "leader": 0,
        "hands": ["L1 G1 Y1 P1", "G10 Y2 Y3 Y4", "G2 B10 B11 B12"],
        "bids": [0, 1, 3],
        "plays": "L1 G10 G2  Y2 B10 Y1  B11 G1 Y3  B12 P1 Y4",
        "won": [0, 1, 3],
        "loot": [[0, 1], [-1, -1]],
        "points": [60, 40, 60],
    },
    {
        "name": "X02",
        "num_players": 3,
        "round": 4,
        "leader": 0,
        "hands": ["L1 G1 Y1 P1", "G10 Y2 Y3 Y9", "G2 B10 B11 Y5"],
        "bids": [0, 1, 2],
        "plays": "L1 G10 G2  Y9 Y5 Y1  Y2 B10 G1  B11 P1 Y3",
        "won": [0, 2, 2],
        "loot": [[0, 1], [-1, -1]],
        "points": [40, -10, 40],
    },
    {
        "name": "X03",
        "num_players": 3,
        "round": 5,
        "leader": 0,
        "hands": ["L1 L2 G1 P1 Y1", "G10 B13 Y2 Y3 Y4", "G2 B10 B11 B9 G3"],
        "bids": [0, 2, 3],
        "plays": "L1 G10 G2  Y2 B9 Y1  B10 L2 B13  Y3 B11 G1  G3 P1 Y4",
        "config": {"dedupe": 0},
        "won": [0, 2, 3],
        "loot": [[0, 1], [0, 1]],
        "points": [90, 80, 60],
    },
    {
        "name": "X04",
        "num_players": 4,
        "round": 3,
        "leader": 0,
        "hands": ["L1 G1 Y1", "G10 Y2 Y3", "L2 G2 Y4", "G3 B1 B2"],
        "bids": [0, 1, 0, 2],
        "plays": "L1 G10 L2 G3  Y2 Y4 B1 Y1  B2 G1 Y3 G2",
        "won": [0, 1, 0, 2],
        "loot": [[0, 1], [2, 1]],
        "points": [50, 60, 50, 40],
    },
    {
        "name": "X05 T10",
        "num_players": 4,
        "round": 1,
        "leader": 0,
        "hands": ["L1", "E1", "T", "E2"],
        "bids": [1, 0, 0, 0],
        "plays": "L1 E1 TE E2",
        "won": [1, 0, 0, 0],
        "loot": [[-1, -1], [-1, -1]],
        "points": [20, 10, 10, 10],
    },
    {
        "name": "X05 T11",
        "num_players": 3,
        "round": 1,
        "leader": 0,
        "hands": ["T", "L1", "E1"],
        "bids": [1, 0, 0],
        "plays": "TE L1 E1",
        "won": [1, 0, 0],
        "loot": [[1, 0], [-1, -1]],
        "points": [40, 30, 10],
    },
    {
        "name": "X06",
        "num_players": 3,
        "round": 2,
        "leader": 0,
        "hands": ["L1 G1", "KR G2", "G3 G4"],
        "bids": [0, 0, 1],
        "plays": "L1 KR G3  G4 G1 G2",
        "actors": [0, 1, 2, 2, 0, 1],
        "won": [0, 0, 1],
        "loot": [[-1, -1], [-1, -1]],
        "points": [20, 20, 20],
    },
    {
        "name": "X11",
        "num_players": 2,
        "round": 5,
        "leader": 0,
        "hands": ["G1 G4 G9 Y1 Y4", "G2 G3 G6 Y9 Y3", "G10 G11 G5 Y2 P1"],
        "bids": [2, 1],
        "plays": "G1 G2  G3 G4  G6 G9  Y1 Y9  Y3 Y4",
        "actors": [0, 1, 1, 0, 1, 0, 0, 1, 1, 0],
        "leaders": [0, 2, 2, 0, 1],
        "won": [2, 1, 2],
        "points": [40, 20],
    },
    {
        "name": "ghost's loot pays nobody",
        "num_players": 2,
        "round": 1,
        "leader": 1,
        "hands": ["L2", "G9", "L1"],
        "bids": [0, 1],
        "plays": "G9 L2",
        "won": [0, 1, 0],
        "loot": [[-1, -1], [0, 1]],
        "points": [30, 40],
    },
    {
        "name": "D6 loot in a Whale trick",
        "num_players": 3,
        "round": 1,
        "leader": 0,
        "hands": ["WW", "L1", "G3"],
        "bids": [0, 0, 1],
        "plays": "WW L1 G3",
        "won": [0, 0, 1],
        "loot": [[1, 2], [-1, -1]],
        "points": [10, 30, 40],
    },
    {
        "name": "D6 with whale_loot = 0",
        "num_players": 3,
        "round": 1,
        "leader": 0,
        "hands": ["WW", "L1", "G3"],
        "config": {"whale_loot": 0},
        "bids": [0, 0, 1],
        "plays": "WW L1 G3",
        "won": [0, 0, 1],
        "loot": [[-1, -1], [-1, -1]],
        "points": [10, 10, 20],
    },
]

# X07: players, first leader of round 1, first leaders of all rounds.
FIRST_LEADERS = (4, 2, [2, 3, 0, 1, 2, 3, 0, 1, 2, 3])

# X08: deck, players, round, cards dealt, stock.
DEAL_SIZES: list[tuple[str, int, int, int, int]] = [
    ("FULL74", 8, 8, 64, 10),
    ("FULL74", 8, 9, 64, 10),
    ("FULL74", 8, 10, 64, 10),
    ("FULL74", 7, 10, 70, 4),
    ("STANDARD70", 7, 10, 70, 0),
]

# X12: final scores, rank rewards, win rewards.
RANKS: list[tuple[list[int], list[float], list[float]]] = [
    ([310, 310, 120, -40], [2 / 3, 2 / 3, -1 / 3, -1.0], [0.25, 0.25, -0.25, -0.25]),
]

# X13 and X14: seat 0 leads the card `led` (or seat 1 leads if None) and seat 1 holds `hand`.
LEGAL_ACTIONS: list[tuple[str, str | None, str, list[int]]] = [
    ("X13", None, "E2 E4 M2 G3", [15, 37, 78]),
    ("X14 void", "G5", "T", [82, 85]),
    ("X14 leading", None, "T", [82, 85]),
]

# X16: bid, won, cards, capture bonus, MANAGER reward, SCORE_DELTA; the real bid, then relabelled.
HINDSIGHT: list[tuple[int, int, int, int, float, float]] = [
    (2, 4, 6, 10, -1.0, -0.2),
    (4, 4, 6, 10, 5.0, 0.9),
]
