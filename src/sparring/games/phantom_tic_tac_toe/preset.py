"""Default training settings of phantom tic-tac-toe."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 1.0,
    "opponents": ("self=1",),
    "net": {"hidden": (128, 128)},
    "collect": {"games": 512, "steps": 32},
    "ppo": {"epochs": 4, "minibatch": 2048, "lr": "0%:2e-3,100%:1e-4", "entropy": 0.05},
}
GPU_PRESET: dict[str, Any] = {
    "net": {"hidden": (128, 128)},
    "collect": {"games": 2048},
    "ppo": {"minibatch": 8192},
}
"""Further settings with the network on a GPU."""
