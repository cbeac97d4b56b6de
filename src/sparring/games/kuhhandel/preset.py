"""Default training settings of Kuhhandel."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 15.0,
    "opponents": ("self=1", "dealer=1"),
    # Half of all decisions have one legal action; points on the way help long before the end.
    "set": ("skip_forced=1", "reward=POTENTIAL"),
    "collect": {"games": 256, "steps": 64},
    "ppo": {"epochs": 3, "minibatch": 2048, "gae_lambda": 0.97},
    "eval": {"every_s": 90.0, "games": 512},  # whole games are long
}
HIERARCHY: dict[str, Any] = {
    "roles": {
        "turn": {
            "net": {"hidden": (128, 128)},
            "ppo": {"epochs": 6, "minibatch": 512},
        },
        "bidder": {"net": {"hidden": (256, 256)}},
    },
}
"""Further settings with one network per role: one chooses auction or trade, one bids and pays."""
GPU_PRESET: dict[str, Any] = {"ppo": {"epochs": 2}}
"""Further settings with the network on a GPU."""
GPU_HIERARCHY: dict[str, Any] = {
    "roles": {
        "turn": {"net": {"hidden": (256, 256)}, "ppo": {"epochs": 3, "minibatch": 16384}},
        "bidder": {"net": {"hidden": (512, 512, 256)}},
    },
}
"""Further settings on a GPU with one network per role."""
