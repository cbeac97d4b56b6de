"""Scripted opponents of section 20, in exact arithmetic so that no rounding decides a choice."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from reference.skull_king.rules import (
    BLACK,
    FIRST_CARD_ACTION,
    KIND,
    MERMAIDS,
    NUMBER,
    PIRATES,
    SKULL_KING,
    SUIT,
    TIGRESS,
    TIGRESS_AS_ESCAPE,
    TIGRESS_AS_PIRATE,
    Play,
    is_escape_like,
    resolve,
)

if TYPE_CHECKING:
    from reference.philox import Rng
    from reference.skull_king.game import SkullKing

NAMES = ("random", "rule_easy", "rule_medium", "rule_hard", "captain")

RULE_NOISE = {"EASY": Fraction(1), "MEDIUM": Fraction(1, 2), "HARD": Fraction(1, 5)}


def choose(game: SkullKing, name: str, rng: Rng) -> int:
    if name not in NAMES:
        raise ValueError(f"unknown bot {name!r}")
    if game.terminated:
        raise ValueError("the episode is over")
    if name == "random":
        legal = game.legal()
        return legal[rng.below(len(legal))]
    if name == "captain":
        if game.phase == "BID":
            return captain_bid(game)
        if game.phase == "PLAY":
            return captain_play(game)
        return _extension_choice(game, {card: captain_value(card) for card in _legal_cards(game)})
    level = name.removeprefix("rule_").upper()
    if game.phase == "BID":
        return rule_bid(game, level, rng)
    if game.phase == "PLAY":
        return rule_play(game, level, rng)
    return _extension_choice(game, rule_strengths(_legal_cards(game)))


def _legal_cards(game: SkullKing) -> list[int]:
    """Distinct cards behind the legal actions, ascending; the Tigress counts once."""
    if game.phase not in ("PLAY", "DISCARD"):
        return []
    return [action - FIRST_CARD_ACTION for action in game.legal() if action != TIGRESS_AS_ESCAPE]


def _need(game: SkullKing) -> int:
    return game.bid[game.seat] - game.won[game.seat]


def _strongest(strength: dict[int, int]) -> int:
    return min(strength, key=lambda card: (-strength[card], card))


def _weakest(strength: dict[int, int]) -> int:
    return min(strength, key=lambda card: (strength[card], card))


def _extension_choice(game: SkullKing, strength: dict[int, int]) -> int:
    """Fixed answers outside BID and PLAY, the same for RULE and CAPTAIN."""
    if game.phase == "CANNON":
        return 100
    if game.phase == "ROSIE":
        return 86 if _need(game) > 0 else 87
    if game.phase == "DISCARD":
        card = _weakest(strength) if _need(game) > 0 else _strongest(strength)
        return FIRST_CARD_ACTION + card
    if game.phase == "WAGER":
        return 94
    assert game.phase == "HARRY"
    legal_changes = [action - 98 for action in game.legal()]
    # Smallest error, ties prefer 0, then -1.
    change = min(legal_changes, key=lambda d: (abs(_need(game) + d), abs(d), d))
    return 98 + change


def rule_bid_value(card: int) -> int:
    """Expected tricks of a card in hundredths."""
    number = NUMBER[card]
    if SUIT[card] == BLACK:
        return 70 if number >= 10 else 40 if number >= 6 else 20
    if KIND[card] == "SUIT":
        return 30 if number >= 12 else 15 if number >= 8 else 0
    return {
        "KING": 90,
        "PIRATE": 60,
        "MERMAID": 40,
        "TIGRESS": 35,
        "WHALE": 20,
        "KRAKEN": 15,
        "LOOT": 5,
        "ESCAPE": 0,
    }[KIND[card]]


def rule_bid(game: SkullKing, level: str, rng: Rng) -> int:
    noise = Fraction(rng.u32() - 2**31, 2**31) * RULE_NOISE[level]
    total = Fraction(sum(rule_bid_value(card) for card in game.hands[game.seat]), 100) + noise
    return max(0, min(game.cards, round(total)))  # round() of a Fraction is half to even


def rule_strengths(legal: Collection[int]) -> dict[int, int]:
    """Strength of each legal card in 140ths, which makes n/35 and 3n/140 whole."""
    high = sum(NUMBER[card] >= 12 for card in legal)
    fixed = {
        "KING": 140,
        "PIRATE": 119,
        "MERMAID": 105,
        "TIGRESS": 77,
        "WHALE": 84 if high >= 2 else 49,
        "KRAKEN": 35,
        "LOOT": 7,
        "ESCAPE": 0,
    }
    strength = {}
    for card in legal:
        if SUIT[card] == BLACK:
            strength[card] = 56 + 4 * NUMBER[card]
        elif KIND[card] == "SUIT":
            strength[card] = 14 + 3 * NUMBER[card]
        else:
            strength[card] = fixed[KIND[card]]
    return strength


def rule_plan(need: int, remaining: int) -> str:
    """`remaining` counts the tricks after the current one (section 20)."""
    if need > remaining or need <= 0:
        return "LOSE"
    if need == remaining or need > remaining // 2:
        return "WIN"
    return "MEDIUM"


def rule_play(game: SkullKing, level: str, rng: Rng) -> int:
    need = _need(game)
    plan = rule_plan(need, game.cards - game.tricks_done - 1)
    if level == "EASY" and rng.u32() * 10 < 3 * 2**32:
        plan = ("WIN", "LOSE", "MEDIUM")[rng.below(3)]
    strength = rule_strengths(_legal_cards(game))
    if plan == "WIN":
        card = _strongest(strength)
    elif plan == "LOSE":
        card = _weakest(strength)
    else:
        ascending = sorted(strength, key=lambda card: (strength[card], card))
        card = ascending[len(ascending) // 2]
    if card == TIGRESS:
        return TIGRESS_AS_PIRATE if need > 0 else TIGRESS_AS_ESCAPE
    return FIRST_CARD_ACTION + card


def captain_threat(card: int, deck: Iterable[int], seen: Collection[int]) -> Fraction:
    """How many unseen cards of the deck would beat `card` later."""
    unseen = [other for other in deck if other not in seen]
    kings = unseen.count(SKULL_KING)
    mermaids = sum(other in MERMAIDS for other in unseen)
    pirates = sum(other in PIRATES for other in unseen)
    half_tigress = Fraction(unseen.count(TIGRESS), 2)
    if card == SKULL_KING:
        return Fraction(mermaids)
    if card in PIRATES or card == TIGRESS:
        return Fraction(kings)
    if card in MERMAIDS:
        return pirates + half_tigress
    specials = kings + mermaids + pirates + half_tigress
    higher = sum(SUIT[other] == SUIT[card] and NUMBER[other] > NUMBER[card] for other in unseen)
    if SUIT[card] == BLACK:
        return higher + specials
    blacks = sum(SUIT[other] == BLACK for other in unseen)
    return higher + Fraction(3, 5) * blacks + specials


def captain_bid(game: SkullKing) -> int:
    expected = Fraction(0)
    for card in game.hands[game.seat]:
        if KIND[card] in ("ESCAPE", "LOOT", "KRAKEN", "WHALE"):
            continue
        beaten = (captain_threat(card, game.deck, ()) + 2) / (len(game.deck) - 1)
        if card == TIGRESS:
            factor = Fraction("0.6")
        elif SUIT[card] == BLACK:
            factor = Fraction("0.95")
        elif KIND[card] == "SUIT":
            factor = Fraction("0.6875") if game.cards <= 2 else Fraction("0.55")
        else:
            factor = Fraction(1)
        expected += factor * (1 - beaten) ** (game.num_players - 1)
    bid = math.floor(Fraction("0.95") * expected + Fraction(1, 2))
    return max(0, min(game.cards, bid))


def captain_value(card: int) -> int:
    """What a card is worth keeping, in 1400ths."""
    if SUIT[card] == BLACK:
        return 630 + 35 * NUMBER[card]
    if KIND[card] == "SUIT":
        return 70 + 40 * NUMBER[card]
    return {
        "KING": 1400,
        "PIRATE": 1330,
        "TIGRESS": 1260,
        "MERMAID": 1190,
        "WHALE": 84,
        "KRAKEN": 70,
        "LOOT": 14,
        "ESCAPE": 0,
    }[KIND[card]]


def captain_win_chance(game: SkullKing, option: Play) -> Fraction:
    card, _ = option
    cards = [*game.trick_cards(), option]
    winner, _ = resolve(cards)
    if KIND[card] in ("KRAKEN", "WHALE") or winner != len(cards) - 1:
        return Fraction(0)
    after = game.seats - len(cards)
    if is_escape_like(*option):
        return Fraction(1) if after == 0 else Fraction(1, 50)
    seen = set(game.hands[game.seat]).union(*game.played)
    pool = max(1, len(game.deck) - len(seen))
    beaten = (captain_threat(card, game.deck, seen) + (1 if after > 0 else 0)) / pool
    return Fraction((1 - min(Fraction(1), beaten)) ** after)


def captain_play(game: SkullKing) -> int:
    options: list[Play] = []
    for card in _legal_cards(game):
        options += [(card, True), (card, False)] if card == TIGRESS else [(card, False)]
    # `options` stands in tie-break order and min() keeps the first of equals.
    chance = {option: captain_win_chance(game, option) for option in options}
    value = {option: captain_value(option[0]) for option in options}
    need = _need(game)
    left = game.cards - game.tricks_done
    lowest = min(chance.values())
    if need <= 0 or need > left:
        value = {o: 420 if o[0] == TIGRESS else v for o, v in value.items()}
        safe = [o for o in options if chance[o] <= lowest + Fraction(3, 100)]
        best = min(safe, key=lambda o: -value[o])
    elif need == left:
        best = min(options, key=lambda o: (-chance[o], value[o]))
    else:
        last_to_act = len(game.trick) == game.seats - 1
        wanted = Fraction(99, 100) if last_to_act else Fraction(62, 100)
        winning = [o for o in options if chance[o] >= wanted]
        safe = [o for o in options if chance[o] <= lowest + Fraction(5, 100)]
        if winning:
            best = min(winning, key=lambda o: value[o])
        elif 2 * need > left:
            best = min(safe, key=lambda o: value[o])
        else:
            best = min(safe, key=lambda o: abs(value[o] - 350))
    if best == (TIGRESS, False):
        return TIGRESS_AS_ESCAPE
    return FIRST_CARD_ACTION + best[0]
