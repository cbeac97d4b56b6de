"""Training settings of the yardsticks: small games whose perfect play is known."""

from __future__ import annotations

from typing import Any

AVERAGE = 0.2
"""The average of the weights over the last fifth of the training plays."""
SEARCHED: dict[str, Any] = {
    "simulations": 8,
    "fast_simulations": 1,
    "full_share": 1.0,
    "least": 2,
    "eta": "0%:1,100%:0.05",
    "alpha": "0%:0.1,100%:0.01",
    "lr": "0%:1e-3,100%:0",
    "minibatch": 1024,
    "epochs": 2,
}
"""Of `--algo gumbel`: a few playouts of every decision, and steps that become small."""


def by_algorithm(belief: float = 0.0, **gumbel: Any) -> dict[str, dict[str, Any]]:
    """Return further settings by algorithm.

    belief: weight of the head by which worlds are drawn; 0: they are drawn uniformly.
    gumbel: what else suits the game.
    """
    heads = {"heads": {"hidden": belief}} if belief else {}
    searched = {"average": AVERAGE, "gumbel": {**SEARCHED, **gumbel}, **heads}
    return {"ppo": {"average": AVERAGE}, "gumbel": searched}


def preset(minutes: float, hidden: tuple[int, ...], **ppo: Any) -> dict[str, Any]:
    """Return the settings: small steps, a fixed entropy bonus, a rate that falls to 0.

    With the usual clip of 0.2 policies cycle, and the last one is exploited:
    docs/guides/opponents.md.
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
