"""Default training settings of tic-tac-toe."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 0.4,
    "opponents": ("self=1", "random=1"),
    "net": {"hidden": (64, 64)},
    "collect": {"games": 256, "steps": 32},
    "ppo": {"epochs": 4, "minibatch": 1024, "lr": "0%:2e-3,100%:2e-4"},
}
ALGOS: dict[str, dict[str, Any]] = {
    "dqn": {
        # A seat decides at most five times per game, and only the end is rewarded.
        "dqn": {"gamma": 1.0, "lr": "0%:1e-3,100%:1e-4", "epsilon": "0%:1,30%:0.05"},
        "replay": {"capacity": 200_000, "warmup": 2_000, "ratio": 8.0, "batch": 256},
    },
    "gumbel": {
        # Play without mistakes visits few positions.
        "starts": ("usual=1", "random:6=3"),
        "opponents": ("self=1",),
        "minutes": 1.0,
        "net": {"hidden": (128, 128)},
        "collect": {"games": 128, "steps": 16, "mirror": True},
        "gumbel": {"epochs": 2, "td_lambda": 0.5, "lr": "0%:3e-3,100%:2e-4"},
    },
    "sac": {
        "sac": {"gamma": 1.0, "lr": 1e-3, "critic_lr": 1e-3, "temperature_lr": 1e-3},
        "replay": {"capacity": 200_000, "warmup": 2_000, "ratio": 8.0, "batch": 256},
    },
}
"""Further settings by algorithm."""
GPU_PRESET: dict[str, Any] = {
    "net": {"hidden": (64, 64)},
    "collect": {"games": 2048},
    "ppo": {"minibatch": 8192},
}
"""Further settings with the network on a GPU."""
