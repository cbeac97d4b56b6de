"""Rounds of Skull King to test, and short ways to play them."""

from __future__ import annotations

import random
from typing import Any

from reference.philox import CHANCE, Philox
from reference.skull_king import rewards
from reference.skull_king.game import SkullKing
from reference.skull_king.rules import DECKS
from vectors import skull_king as vectors


def new_game(seed: int = 1, **config: Any) -> SkullKing:
    game = SkullKing(config, Philox(seed, 0, 0, CHANCE))
    game.reset()
    return game


def loaded(
    number: int, hands: list[str], leader: int, bids: list[int] | None = None, **config: Any
) -> SkullKing:
    """A single round with given hands, bids already placed when they are given (per seat)."""
    config = {"episode": "ROUND", "num_players": len(hands), **config}
    game = SkullKing(config, Philox(5, 0, 0, CHANCE))
    game.load_round(number, [vectors.ids(hand) for hand in hands], leader)
    while bids is not None and game.phase == "BID":
        game.step(bids[game.seat])
    return game


def play(game: SkullKing, cards: str) -> dict[str, list[float]]:
    """Play the cards in turn; the summed reward parts."""
    total: dict[str, list[float]] = {name: [0.0] * game.num_players for name in rewards.PARTS}
    for word in cards.split():
        for name, values in game.step(vectors.action(word)).items():
            total[name] = [a + b for a, b in zip(total[name], values, strict=True)]
    return total


def random_config(rng: random.Random) -> dict[str, Any]:
    scoring = rng.choice(["SKULL_KING", "RASCAL"])
    config: dict[str, Any] = {
        "num_players": rng.randint(2, 8),
        "deck": rng.choice(list(DECKS)),
        "ghost": rng.randint(0, 1),
        "scoring": scoring,
        "cannonball": rng.randint(0, 1) if scoring == "RASCAL" else 0,
        "abilities": rng.randint(0, 1),
        "dedupe": rng.randint(0, 1),
        "skip_forced": rng.randint(0, 1),
        "episode": rng.choice(["GAME", "ROUND"]),
        "rounds": [rng.randint(1, 10) for _ in range(rng.randint(1, 6))],
        "kraken_lead": rng.choice(["WOULD_HAVE_WON", "LEFT_OF_KRAKEN"]),
        "follow_rule": rng.choice(["OFFICIAL", "FIRST_SUIT", "SEED"]),
        "whale_loot": rng.randint(0, 1),
        "tigress_bonus": rng.randint(0, 1),
        "cap8": rng.choice([8, 9]),
        "rascal_last": rng.randint(0, 1),
        "open_bids": rng.randint(0, 1),
        "obs": rng.choice(["FULL", "COMPACT"]),
        "phase_embed": rng.randint(0, 1),
        "history": rng.randint(0, 1),
        "round_weights": [rng.random() for _ in range(10)],
    }
    if rng.random() < 0.3:
        config["start_round"] = rng.randint(1, len(config["rounds"]))
    return config


def random_step(game: SkullKing, rng: random.Random) -> dict[str, list[float]]:
    return game.step(rng.choice(game.legal()))
