"""Configuration of the environment: flags of sections 12 and 14.1, defaults and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reference.skull_king.rules import DECKS

DEFAULTS: dict[str, Any] = {
    "num_players": 4,
    "deck": "FULL74",
    "ghost": 1,
    "scoring": "SKULL_KING",
    "cannonball": 0,
    "abilities": 0,
    "dedupe": 1,
    "skip_forced": 0,
    "episode": "GAME",
    "start_round": 0,
    "round_weights": [1.0] * 10,
    "rounds": list(range(1, 11)),
    "kraken_lead": "WOULD_HAVE_WON",
    "follow_rule": "OFFICIAL",
    "whale_loot": 1,
    "tigress_bonus": 1,
    "cap8": 8,
    "rascal_last": 0,
    "open_bids": 0,
    "obs": "FULL",
    "phase_embed": 0,
    "history": 0,
}

ALLOWED: dict[str, Sequence[Any]] = {
    "num_players": range(2, 9),
    "deck": tuple(DECKS),
    "ghost": (0, 1),
    "scoring": ("SKULL_KING", "RASCAL"),
    "cannonball": (0, 1),
    "abilities": (0, 1),
    "dedupe": (0, 1),
    "skip_forced": (0, 1),
    "episode": ("GAME", "ROUND"),
    "kraken_lead": ("WOULD_HAVE_WON", "LEFT_OF_KRAKEN"),
    "follow_rule": ("OFFICIAL", "FIRST_SUIT", "SEED"),
    "whale_loot": (0, 1),
    "tigress_bonus": (0, 1),
    "cap8": (8, 9),
    "rascal_last": (0, 1),
    "open_bids": (0, 1),
    "obs": ("FULL", "COMPACT"),
    "phase_embed": (0, 1),
    "history": (0, 1),
}


def checked_config(config: dict[str, Any] | None) -> dict[str, Any]:
    given = dict(config or {})
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"unknown configuration keys: {', '.join(unknown)}")
    full = {**DEFAULTS, **given}
    for key, values in ALLOWED.items():
        if full[key] not in values:
            raise ValueError(f"{key} = {full[key]!r} is not one of {list(values)}")
    if full["cannonball"] and full["scoring"] != "RASCAL":
        raise ValueError("cannonball needs scoring = RASCAL")
    rounds, weights = list(full["rounds"]), [float(weight) for weight in full["round_weights"]]
    if not 1 <= len(rounds) <= 10 or any(size not in range(1, 11) for size in rounds):
        raise ValueError("rounds must hold 1 to 10 sizes from 1 to 10")
    if full["start_round"] not in range(len(rounds) + 1):
        raise ValueError("start_round must be 0 or a round of the list")
    used = weights[: len(rounds)]
    if len(used) < len(rounds) or min(used) < 0 or sum(used) <= 0:
        raise ValueError("round_weights must cover the rounds, be >= 0 and not all 0")
    full["rounds"], full["round_weights"] = rounds, weights
    return full
