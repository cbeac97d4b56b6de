"""Tricks, following and points of the slow Skull King: vectors of section 21."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reference.skull_king.rules import (
    KIND,
    capture_bonus,
    identical_groups,
    legal_cards,
    resolve,
    round_points,
)
from vectors import skull_king as vectors


@pytest.mark.parametrize(("name", "cards", "winner", "leader", "bonus"), vectors.TRICKS)
def test_tricks(name: str, cards: str, winner: int | None, leader: int, bonus: int) -> None:
    plays = vectors.cards(cards)
    assert resolve(plays) == (winner, leader)
    assert capture_bonus(plays, winner) == bonus


@pytest.mark.parametrize(("cards", "deck", "tigress_bonus", "bonus"), vectors.OTHER_BONUSES)
def test_other_bonuses(cards: str, deck: str, tigress_bonus: int, bonus: int) -> None:
    plays = vectors.cards(cards)
    winner, _ = resolve(plays)
    assert capture_bonus(plays, winner, deck, tigress_bonus) == bonus


@pytest.mark.parametrize(("cards", "leader"), vectors.LEFT_OF_KRAKEN)
def test_left_of_kraken(cards: str, leader: int) -> None:
    assert resolve(vectors.cards(cards), "LEFT_OF_KRAKEN") == (None, leader)


@pytest.mark.parametrize("rule", ["OFFICIAL", "FIRST_SUIT", "SEED"])
@pytest.mark.parametrize(("name", "trick", "hand", "legal"), vectors.LEGALITY)
def test_legality(name: str, trick: str, hand: str, legal: str, rule: str) -> None:
    other = {"FIRST_SUIT": vectors.LEGALITY_FIRST_SUIT, "SEED": vectors.LEGALITY_SEED}
    expected = other.get(rule, {}).get(name, legal)
    found = legal_cards(vectors.cards(trick), vectors.ids(hand), rule)
    assert found == sorted(vectors.ids(expected))


@pytest.mark.parametrize("vector", vectors.ROUND_SCORES, ids=lambda vector: vector["name"])
def test_round_scores(vector: dict[str, Any]) -> None:
    points = round_points(
        vector["bid"] + vector["harry"],
        vector["won"],
        vector["cards"],
        vector["capture"],
        vector["loot"],
        vector["scoring"],
        bool(vector["cannonball"]),
        vector["wager"],
    )
    assert points == vector["points"]


def test_copies_of_identical_cards_resolve_alike() -> None:
    rng = random.Random(17)
    for _ in range(3000):
        cards = rng.sample(range(74), rng.randint(2, 8))
        flags = [rng.random() < 0.5 for _ in cards]
        renamed = list(cards)
        for group in identical_groups(abilities=False):
            held = [card for card in cards if card in group]
            names = dict(zip(held, rng.sample(group, len(held)), strict=True))
            renamed = [names.get(card, card) for card in renamed]
        plays = list(zip(cards, flags, strict=True))
        other = list(zip(renamed, flags, strict=True))
        assert [KIND[card] for card in renamed] == [KIND[card] for card in cards]
        assert resolve(plays) == resolve(other)
        winner, _ = resolve(plays)
        assert capture_bonus(plays, winner) == capture_bonus(other, winner)
