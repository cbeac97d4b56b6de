"""Default training settings of CAGE-2."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 20.0,
    # Without the mask nine actions of ten do nothing.
    "set": ("mask=1", "scan_history=ALL", "decoys_left=1"),
    "net": {"hidden": (128, 128)},
    "collect": {"games": 256, "steps": 64},
    "ppo": {"epochs": 3, "minibatch": 2048, "gamma": 0.99},
    "eval": {"every_s": 60.0, "games": 1024},
}
ALGOS: dict[str, dict[str, Any]] = {
    "dqn": {
        # What a decoy or a restored host is worth shows steps later.
        "dqn": {"gamma": 0.99, "lr": "0%:5e-4,100%:1e-4", "epsilon": "0%:1,20%:0.02"},
        "replay": {"capacity": 500_000, "warmup": 10_000, "ratio": 4.0, "batch": 512, "n_step": 3},
    },
}
"""Further settings by algorithm."""
