"""Configuration of the environment: flags of sections 9, 11 and 13, presets, defaults, checks.

The specification names no word for the two ways of `tie_money`. `at_limit` says what the limit of
decisions (K14) does: CUT truncates the game, SCORE ends and pays it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reference.kuhhandel.rewards import OPTIONS

# Default first.
ALLOWED: dict[str, Sequence[Any]] = {
    "num_players": (3, 4, 5),
    "bluff": ("EXCLUDE", "CAP", "FORBID"),
    "pass_mode": ("SOFT", "HARD"),
    "pay_mode": ("CHOICE", "AUTO"),
    "open_pay": (0, 1),
    "empty_offer": (0, 1),
    "tie_money": ("EXCHANGE", "TAKE_BACK"),
    "tie_rounds": (2, 1),
    "zeros_return": (0, 1),
    "edition": (2,),
    "at_limit": ("CUT", "SCORE"),
    "auto_forced": (1, 0),
    "history": (0, 1),
    "skip_forced": (0, 1),
    "reward": tuple(OPTIONS),
}

DEFAULTS: dict[str, Any] = {
    **{key: values[0] for key, values in ALLOWED.items()},
    "max_decisions": 4000,
    "potential_gamma": 1.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "OFFICIAL": {},
    "FAST": {"bluff": "FORBID", "pay_mode": "AUTO", "pass_mode": "HARD"},
    "SEED": {
        "bluff": "FORBID",
        "pay_mode": "AUTO",
        "pass_mode": "SOFT",
        "tie_rounds": 1,
        "empty_offer": 1,
    },
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
    if full["max_decisions"] not in range(2, 65536):
        raise ValueError(f"max_decisions = {full['max_decisions']!r} is not in 2..65535")
    if not 0 <= full["potential_gamma"] <= 1:
        raise ValueError(f"potential_gamma = {full['potential_gamma']!r} is not in 0..1")
    return full
