"""Training settings of the yardsticks: small games whose perfect play is known."""

from __future__ import annotations

from typing import Any

AVERAGED: dict[str, dict[str, Any]] = {"ppo": {"average": 0.2}}
"""By algorithm: the average of the weights over the last fifth of the training plays."""


def preset(minutes: float, hidden: tuple[int, ...], **ppo: Any) -> dict[str, Any]:
    """Return the settings: small steps, a fixed entropy bonus, a rate that falls to 0.

    With the usual clip of 0.2 policies cycle, and the last one is exploited (docs/league.md).
    ppo: what else suits the game.
    """
    return {
        "minutes": minutes,
        "opponents": ("self=1",),
        "net": {"hidden": hidden},
        "collect": {"games": 512, "steps": 32},
        "ppo": {
            "epochs": 4,
            "minibatch": 2048,
            "lr": "0%:1e-3,100%:0",
            "entropy": 0.05,
            "clip": 0.02,
            **ppo,
        },
    }


def gpu_preset(hidden: tuple[int, ...]) -> dict[str, Any]:
    """Return further settings with the network on a GPU."""
    return {"net": {"hidden": hidden}, "collect": {"games": 2048}, "ppo": {"minibatch": 8192}}
