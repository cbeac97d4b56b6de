"""Default training settings of Shogi."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 30.0,
    "opponents": ("self=1", "random=0.3"),
    # Games are long, and captures predict the winner early. All pieces together are worth less
    # than a win; otherwise the agent would collect pieces instead of winning.
    "set": ("material=0.05",),
    "net": {"kind": "residual", "channels": 24, "blocks": 2},
    # Without a discount an early win is worth no more than a late one, and won games drag on.
    "collect": {"games": 128, "steps": 32},
    "ppo": {"epochs": 2, "minibatch": 512, "gamma": 0.99},
    "eval": {
        **{"every_s": 150.0, "games": 128, "final_games": 512},
        **{"against": ("random", "greedy", "ab2")},
    },
}
GPU_PRESET: dict[str, Any] = {
    "minutes": 7.0,
    "opponents": ("self=1", "random=0.1"),
    "set": ("material=0.2",),  # as measured; the smaller weight has not been tried here
    "net": {"channels": 128, "blocks": 6},
    "collect": {"games": 4096, "steps": 32},
    "ppo": {"minibatch": 8192, "epochs": 1, "lr": "0%:7e-4,100%:7e-5"},
    "eval": {"every_s": 40.0, "games": 256, "against": ("greedy", "ab2", "ab3")},
}
"""Further settings with the network on a GPU."""
