"""Default training settings of laser hockey with eight actions."""

from typing import Any

from sparring.games.laser_hockey.preset import GPU_ALGOS as GPU_CONTINUOUS
from sparring.games.laser_hockey.preset import PRESET as CONTINUOUS

PRESET: dict[str, Any] = {
    **CONTINUOUS,
    "ppo": {"epochs": 3, "minibatch": 2048, "gamma": 0.995},
}
ALGOS: dict[str, dict[str, Any]] = {
    "dqn": {
        "net": {"hidden": (256, 256)},
        "dqn": {"gamma": 0.99, "lr": "0%:5e-4,100%:1e-4", "epsilon": "0%:1,10%:0.05"},
        "replay": {
            **{"capacity": 1_000_000, "warmup": 10_000},
            **{"ratio": 8.0, "batch": 256, "n_step": 3},
        },
    },
    "sac": {
        "net": {"hidden": (256, 256)},
        "sac": {"gamma": 0.99, "lr": 3e-4, "critic_lr": 3e-4},
        "replay": {"capacity": 1_000_000, "warmup": 10_000, "ratio": 8.0, "batch": 256},
    },
}
"""Further settings by algorithm."""
GPU_ALGOS: dict[str, dict[str, Any]] = {
    "dqn": {
        "dqn": {"lr": "0%:1e-3,100%:3e-4"},
        "replay": {"batch": 8192, "capacity": 8_000_000, "save": False},
    },
    "sac": GPU_CONTINUOUS["sac"],
}
"""The same with the network on a GPU, where batches are large."""
