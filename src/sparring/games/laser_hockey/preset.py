"""How laser hockey is trained unless it is told otherwise."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 15.0,
    # Players who hardly move are met so seldom otherwise that nothing is learned about them.
    "opponents": ("self=1", "weak=1", "strong=1", "idle=0.3", "random=0.3"),
    "set": ("scale_observation=1",),
    "net": {"hidden": (128, 128)},
    # Fifty decisions a second: a goal is seconds away from what led to it.
    "ppo": {
        **{"epochs": 3, "minibatch": 2048, "gamma": 0.995},
        "entropy": "0%:0.001,100%:0.0001",
    },
    "collect": {"games": 128, "steps": 128},
    "eval": {"every_s": 60.0},
}
