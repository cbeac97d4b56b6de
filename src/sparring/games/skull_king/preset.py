"""Default training settings of Skull King."""

from typing import Any

PRESET: dict[str, Any] = {
    "opponents": ("self=1", "captain=1"),
    # Rounds are scored apart, so no decision affects the rewards of later rounds.
    "collect": {"games": 256, "steps": 64},
    "ppo": {"epochs": 3, "minibatch": 2048, "gamma_into": (0, 1)},
}
ALGOS: dict[str, dict[str, Any]] = {
    "dqn": {
        "collect": {"games": 32, "steps": 8},
        "dqn": {"gamma": 1.0, "gamma_into": (0, 1), "epsilon": "0%:1,20%:0.05"},
        "replay": {"capacity": 500_000, "warmup": 20_000, "ratio": 4.0, "batch": 512, "n_step": 3},
    },
    "gumbel": {"gumbel": {"gamma_into": (0, 1)}},
}
"""Further settings by algorithm."""
HIERARCHY: dict[str, Any] = {
    # The manager bids, the worker plays to make the bid; each has its reward.
    "rewards": ("score_delta=0", "manager.manager=1", "worker.worker=1"),
    "roles": {
        "manager": {
            "net": {
                "hidden": (128, 128),
                # What a hand is worth before a card is played; `?`: where the flags have it.
                "inputs": ("hand", "round", "progress", "seat", "stage?", "extra phase?"),
            },
            "ppo": {"epochs": 16, "minibatch": 512, "entropy": "0%:0.02,100%:0.002"},
        },
        "worker": {
            "net": {"hidden": (256, 256)},
            "ppo": {"epochs": 6, "minibatch": 2048},
            "ended_by": ("manager",),
        },
    },
}
"""Further settings with one network per role."""
GPU_PRESET: dict[str, Any] = {"ppo": {"epochs": 2}, "eval": {"every_s": 10.0}}
"""Further settings with the network on a GPU."""
GPU_HIERARCHY: dict[str, Any] = {
    "roles": {
        "manager": {"net": {"hidden": (256, 256)}, "ppo": {"epochs": 4, "minibatch": 16384}},
        "worker": {"net": {"hidden": (512, 512, 256)}, "ppo": {"epochs": 2, "minibatch": 32768}},
    },
}
"""Further settings on a GPU with one network per role."""
