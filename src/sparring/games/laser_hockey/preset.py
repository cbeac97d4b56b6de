"""Default training settings of laser hockey."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 15.0,
    # Without these bots the learner seldom meets opponents that hardly move.
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
ALGOS: dict[str, dict[str, Any]] = {
    "sac": {
        "net": {"hidden": (256, 256)},
        # A low initial temperature: shaping rewards are small compared with a goal.
        "sac": {"gamma": 0.99, "initial_temperature": 0.2, "temperature_lr": 1e-3},
        "replay": {"ratio": 32.0, "batch": 256, "warmup": 10_000},
    },
}
"""Further settings by algorithm."""
GPU_ALGOS: dict[str, dict[str, Any]] = {
    "sac": {
        "sac": {"lr": 1e-3, "critic_lr": 1e-3},
        # A million decisions take half a second here: with fewer, the replay of a policy that
        # stops scoring soon holds no goals.
        "replay": {"ratio": 8.0, "batch": 8192, "capacity": 8_000_000, "save": False},
    },
}
"""The same with the network on a GPU, where batches are large."""
