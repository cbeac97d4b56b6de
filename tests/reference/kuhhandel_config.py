"""Configuration of the environment: flags of sections 9, 11 and 13, presets, defaults, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reference.kuhhandel_rewards import OPTIONS

# The specification names no word for the two ways of `tie_money`; default first, as everywhere.
ALLOWED: dict[str, Sequence[Any]] = {
    "num_players": (3, 4, 5),
    "bluff": ("EXCLUDE", "CAP", "FORBID"),
    "pass_mode": ("SOFT", "HARD"),
    "pay_mode": ("CHOICE", "AUTO"),
    "open_pay": (0, 1),
    "empty_offer": (0, 1),
    "tie_money": ("EXCHANGE", "RETURN"),
    "tie_rounds": (2, 1),
    "zeros_return": (0, 1),
    "edition": (2,),
    "auto_forced": (1, 0),
    "history": (0, 1),
    "skip_forced": (0, 1),
    "reward": tuple(OPTIONS),
}

DEFAULTS: dict[str, Any] = {
    **{key: values[0] for key, values in ALLOWED.items()},
    "max_decisions": 4000,
    "shaping_gamma": 1.0,
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
    if full["max_decisions"] not in range(1, 65536):
        raise ValueError(f"max_decisions = {full['max_decisions']!r} is not in 1..65535")
    if not 0 <= full["shaping_gamma"] <= 1:
        raise ValueError(f"shaping_gamma = {full['shaping_gamma']!r} is not in 0..1")
    return full
