"""Positions of Kuhhandel to test, and short ways to play them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from reference.kuhhandel import bots, rewards
from reference.kuhhandel.config import ALLOWED
from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.rules import ANIMALS, KINDS
from reference.kuhhandel.vectors import H
from reference.philox import BOTS, CHANCE, Philox

AUCTION, PASS, MIN_RAISE, SELL, BUY, ACCEPT, COUNTER = 0, 41, 42, 43, 44, 45, 46
GOOSE, DONKEY, PIG, COW, HORSE = 1, 6, 7, 8, 9
A02 = ((1, MIN_RAISE), (2, MIN_RAISE), (1, PASS))
"""The bids of vector A02: seat 2 offers 20 for what seat 0 auctions."""


def num(number: int) -> int:
    return 47 + number


def owned(**cards: int) -> list[int]:
    """Animals of one player: owned(cow=2)."""
    return [cards.get(name, 0) for name in ANIMALS]


def deck_for(animals: Sequence[Sequence[int]], top: int | None = None) -> list[int]:
    """All cards nobody owns, one of kind `top` first."""
    left = [kind for kind in range(KINDS) for _ in range(4 - sum(own[kind] for own in animals))]
    if top is not None:
        left.remove(top)
        left.insert(0, top)
    return left


def table(
    animals: Sequence[Sequence[int]] | None = None,
    money: Sequence[Sequence[int]] | None = None,
    top: int | None = HORSE,
    turn: int = 0,
    deck: Sequence[int] | None = None,
    **config: Any,
) -> Kuhhandel:
    """A position at the beginning of a turn; without `deck` it holds what nobody owns."""
    game = Kuhhandel(config)
    animals = [owned()] * game.num_players if animals is None else animals
    money = [H] * game.num_players if money is None else money
    cards = deck_for(animals, top) if deck is None else deck
    game.load(cards, animals, money, turn)
    return game


def auction(
    money: Sequence[Sequence[int]] | None = None, top: int = HORSE, **config: Any
) -> Kuhhandel:
    """Seat 0 has just turned up the top card."""
    game = table(money=money, top=top, **config)
    game.step(AUCTION)
    return game


def play(game: Kuhhandel, *moves: tuple[int, int]) -> dict[str, list[float]]:
    """Play (seat, action) pairs and check whose turn it is; the summed reward terms."""
    summed: dict[str, list[float]] = {t: [0.0] * game.num_players for t in rewards.TERMS}
    for seat, action in moves:
        assert game.seat == seat
        for name, values in game.step(action).items():
            summed[name] = [a + b for a, b in zip(summed[name], values, strict=True)]
    return summed


def lay(game: Kuhhandel, cards: Sequence[int]) -> None:
    """Name the counts of a pile, as far as there is a choice."""
    composing = game.pile
    while game.composing is composing:
        game.step(num(cards[composing.denomination]))


def start_trade(
    before: Sequence[int], money: Sequence[Sequence[int]], **config: Any
) -> tuple[Kuhhandel, int]:
    animals = [owned(cow=count) for count in before]
    game = table(animals=animals, money=money, top=None, **config)
    return game, 1 + COW


def final_trades(horses: tuple[int, int, int], **config: Any) -> Kuhhandel:
    rich = [4] * 8 + [0, horses[0]]
    animals = [rich, owned(cow=4, horse=horses[1]), owned(horse=horses[2])]
    return table(animals, deck=[], **config)


def random_config(rng: random.Random) -> dict[str, Any]:
    config = {key: rng.choice(list(values)) for key, values in ALLOWED.items()}
    config["auto_forced"] = int(rng.random() < 0.7)
    config["max_decisions"] = rng.choice([4000, 4000, 4000, rng.randint(2, 400)])
    return config


def random_game(rng: random.Random, number: int) -> tuple[Kuhhandel, list[str], Philox]:
    game = Kuhhandel(random_config(rng), Philox(4, number, 0, CHANCE))
    game.reset()
    players = [rng.choice(bots.NAMES) for _ in range(game.num_players)]
    return game, players, Philox(4, number, 0, BOTS)
