"""Rules of Skull King as pure functions: cards, following, trick resolution, bonuses, points.

A played card is a pair (card id, Tigress declared as pirate); the flag means nothing for any
other card. Positions are 0-based in play order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Play = tuple[int, bool]

CARD_COUNT = 74
SKULL_KING, WHITE_WHALE, KRAKEN = 0, 1, 2
MERMAIDS = (3, 4)
PIRATES = (5, 6, 7, 8, 9)
ROSIE, BENDT, RASCAL, JADE, HARRY = PIRATES
ESCAPES = (66, 67, 68, 69, 70)
TIGRESS = 71
LOOTS = (72, 73)

BLACK, GREEN, PURPLE, YELLOW = range(4)

# Actions (section 15); the Tigress as a pirate is her card's own action.
FIRST_CARD_ACTION = 11
TIGRESS_AS_PIRATE, TIGRESS_AS_ESCAPE = 82, 85
FIRST_ROSIE, FIRST_WAGER, HARRY_KEEP, GRAPESHOT = 86, 94, 98, 100

# FOLLOW values beside the four suits (section 16.1).
UNDECIDED, NO_SUIT = 4, 5


def _kind(card: int) -> str:
    if 10 <= card <= 65:
        return "SUIT"
    if card in MERMAIDS:
        return "MERMAID"
    if card in PIRATES:
        return "PIRATE"
    if card in ESCAPES:
        return "ESCAPE"
    if card in LOOTS:
        return "LOOT"
    return {SKULL_KING: "KING", WHITE_WHALE: "WHALE", KRAKEN: "KRAKEN", TIGRESS: "TIGRESS"}[card]


KIND = [_kind(card) for card in range(CARD_COUNT)]
SUIT = [(card - 10) // 14 if KIND[card] == "SUIT" else None for card in range(CARD_COUNT)]
NUMBER = [(card - 10) % 14 + 1 if KIND[card] == "SUIT" else 0 for card in range(CARD_COUNT)]

# Section 1.1: ids never move, a smaller deck has holes.
_STANDARD = [card for card in range(CARD_COUNT) if KIND[card] not in ("WHALE", "KRAKEN", "LOOT")]
DECKS = {
    "FULL74": list(range(CARD_COUNT)),
    "STANDARD70": _STANDARD,
    "CLASSIC66": [card for card in _STANDARD if NUMBER[card] != 14],
}


def is_pirate_like(card: int, tigress_as_pirate: bool) -> bool:
    return KIND[card] == "PIRATE" or (card == TIGRESS and tigress_as_pirate)


def is_escape_like(card: int, tigress_as_pirate: bool) -> bool:
    return KIND[card] in ("ESCAPE", "LOOT") or (card == TIGRESS and not tigress_as_pirate)


def identical_groups(abilities: bool) -> list[tuple[int, ...]]:
    """Cards without any strategic difference (section 1.1)."""
    groups = [ESCAPES, MERMAIDS, LOOTS]
    return groups if abilities else [*groups, PIRATES]


def deduplicate(cards: Iterable[int], abilities: bool) -> list[int]:
    """Keep only the lowest id of each group of identical cards (section 15)."""
    kept = sorted(cards)
    for group in identical_groups(abilities):
        for extra in [card for card in kept if card in group][1:]:
            kept.remove(extra)
    return kept


def follow_suit(trick: Sequence[Play], follow_rule: str = "OFFICIAL") -> int:
    """Suit to follow 0..3, or UNDECIDED, or NO_SUIT (section 4 and D3)."""
    for card, as_pirate in trick:
        suit = SUIT[card]
        if suit is not None:
            return suit
        # FIRST_SUIT and SEED wait for the first suit card, whatever else was played before it.
        if follow_rule == "OFFICIAL" and not is_escape_like(card, as_pirate):
            return NO_SUIT
    return UNDECIDED


def legal_cards(
    trick: Sequence[Play], hand: Iterable[int], follow_rule: str = "OFFICIAL"
) -> list[int]:
    """Cards of the hand that may be played, in ascending order (section 4)."""
    hand = sorted(hand)
    suit = follow_suit(trick, follow_rule)
    if suit in (UNDECIDED, NO_SUIT) or all(SUIT[card] != suit for card in hand):
        return hand
    allowed = {None, suit}
    if follow_rule == "SEED":
        allowed.add(BLACK)
    return [card for card in hand if SUIT[card] in allowed]


def shows_void(
    trick_before: Sequence[Play], card: int, follow_rule: str = "OFFICIAL"
) -> int | None:
    """Suit the player of `card` shows not to hold, or None (section 16.3, X10)."""
    suit = follow_suit(trick_before, follow_rule)
    if suit in (UNDECIDED, NO_SUIT) or SUIT[card] in (None, suit):
        return None
    # Under SEED black may be played with the suit in hand, so it proves nothing.
    if follow_rule == "SEED" and SUIT[card] == BLACK:
        return None
    return suit


def active_leviathan(cards: Sequence[Play]) -> int | None:
    """Position of the last leviathan; an earlier one is void (section 5, step 1)."""
    positions = [p for p, (card, _) in enumerate(cards) if card in (KRAKEN, WHITE_WHALE)]
    return positions[-1] if positions else None


def is_whale_trick(cards: Sequence[Play]) -> bool:
    position = active_leviathan(cards)
    return position is not None and cards[position][0] == WHITE_WHALE


def _winner_without_leviathans(cards: Sequence[Play], positions: Sequence[int]) -> int:
    """Section 5, step 4, among the given positions only."""
    kings = [p for p in positions if cards[p][0] == SKULL_KING]
    mermaids = [p for p in positions if cards[p][0] in MERMAIDS]
    pirates = [p for p in positions if is_pirate_like(*cards[p])]
    suited = [p for p in positions if KIND[cards[p][0]] == "SUIT"]
    if kings and mermaids:
        return mermaids[0]
    if kings:
        return kings[0]
    if pirates:
        return pirates[0]
    if mermaids:
        return mermaids[0]
    if suited:
        blacks = [p for p in suited if SUIT[cards[p][0]] == BLACK]
        first_suit = SUIT[cards[suited[0]][0]]
        contenders = blacks or [p for p in suited if SUIT[cards[p][0]] == first_suit]
        return max(contenders, key=lambda p: NUMBER[cards[p][0]])
    return positions[0]


def resolve(cards: Sequence[Play], kraken_lead: str = "WOULD_HAVE_WON") -> tuple[int | None, int]:
    """Winning position (None if the trick is destroyed) and leading position (section 5)."""
    leviathan = active_leviathan(cards)
    if leviathan is None:
        winner = _winner_without_leviathans(cards, range(len(cards)))
        return winner, winner
    if cards[leviathan][0] == KRAKEN:
        if kraken_lead == "LEFT_OF_KRAKEN":
            return None, (leviathan + 1) % len(cards)
        rest = [p for p, (card, _) in enumerate(cards) if card not in (KRAKEN, WHITE_WHALE)]
        return None, _winner_without_leviathans(cards, rest) if rest else 0
    suited = [p for p, (card, _) in enumerate(cards) if KIND[card] == "SUIT"]
    if not suited:
        return None, leviathan
    # max returns the first of equal numbers, which is the earliest played.
    winner = max(suited, key=lambda p: NUMBER[cards[p][0]])
    return winner, winner


def captures(cards: Sequence[Play], winner: int | None, tigress_bonus: int = 1) -> dict[str, int]:
    """Capture events of the trick winner, counted (section 6, D7).

    In a Whale trick the winner is a suit card, so that only the 14s can count.
    """
    counts = {"standard_14": 0, "black_14": 0, "mermaids": 0, "pirates": 0, "king": 0}
    if winner is None:
        return counts

    def counts_as_pirate(play: Play) -> bool:
        return is_pirate_like(*play) and (play[0] != TIGRESS or bool(tigress_bonus))

    for card, _ in cards:
        if NUMBER[card] == 14:
            counts["black_14" if SUIT[card] == BLACK else "standard_14"] += 1
    winning_card = cards[winner][0]
    if counts_as_pirate(cards[winner]):
        counts["mermaids"] = sum(card in MERMAIDS for card, _ in cards)
    elif winning_card == SKULL_KING:
        counts["pirates"] = sum(counts_as_pirate(play) for play in cards)
    elif winning_card in MERMAIDS:
        counts["king"] = sum(card == SKULL_KING for card, _ in cards)
    return counts


def capture_bonus(
    cards: Sequence[Play], winner: int | None, deck: str = "FULL74", tigress_bonus: int = 1
) -> int:
    """Points kept aside for the trick winner (section 6)."""
    counts = captures(cards, winner, tigress_bonus)
    if deck != "CLASSIC66":
        return (
            10 * counts["standard_14"]
            + 20 * counts["black_14"]
            + 20 * counts["mermaids"]
            + 30 * counts["pirates"]
            + 40 * counts["king"]
        )
    bonus = 30 * counts["pirates"] + 50 * counts["king"]
    king_won = winner is not None and cards[winner][0] == SKULL_KING
    if king_won and tigress_bonus and (TIGRESS, False) in cards:
        bonus += 30  # the first edition counts Scary Mary in either role
    return bonus


def round_points(
    bid: int,
    won: int,
    cards: int,
    capture: int = 0,
    loot: int = 0,
    scoring: str = "SKULL_KING",
    cannonball: bool = False,
    wager: int = 0,
) -> int:
    """Points of one player for one round (section 7); `loot` is what its alliances really pay."""
    error = abs(won - bid)
    if scoring == "RASCAL":
        if cannonball:
            points = 15 * cards + capture + loot if error == 0 else 0
        elif error == 0:
            points = 10 * cards + capture + loot
        elif error == 1:
            points = 5 * cards + capture // 2
        else:
            points = 0
    elif bid == 0:
        points = 10 * cards + capture + loot if won == 0 else -10 * cards
    else:
        points = 20 * bid + capture + loot if error == 0 else -10 * error
    return points + (wager if error == 0 else -wager)
