"""Default training settings of Connect Four."""

from typing import Any

PRESET: dict[str, Any] = {
    "opponents": ("self=3", "past=1"),
    # No solved position of the tests is among these openings.
    "starts": ("usual=1", "random:14=8"),
    "net": {"hidden": (256, 256)},
    "collect": {"games": 512, "steps": 32, "mirror": True},
    "ppo": {
        "epochs": 3,
        "minibatch": 2048,
        "lr": "0%:1e-3,100%:1e-4",
        "entropy": "0%:2e-2,100%:5e-3",
    },
}
ALGOS: dict[str, dict[str, Any]] = {
    "gumbel": {"opponents": ("self=1",)},
}
"""Further settings by algorithm."""
GPU_PRESET: dict[str, Any] = {
    "net": {"hidden": (512, 512, 256)},
    "collect": {"games": 8192},
    "ppo": {"minibatch": 32_768},
}
"""Changes for a network on a GPU."""
