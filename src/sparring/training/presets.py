"""What suits each game better than the defaults of `sparring train`."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "skull_king": {
        "opponents": ("self=1", "captain=1"),
        # Rounds are scored apart, so no decision has to answer for the rounds after its own.
        "collect": {"games": 256, "steps": 64},
        "ppo": {"epochs": 3, "minibatch": 2048, "gamma_into": (0, 1)},
    },
    "kuhhandel": {
        "minutes": 15.0,
        "opponents": ("self=1", "dealer=1"),
        # Half of all decisions have one legal action; points on the way help long before the end.
        "set": ("skip_forced=1", "reward=POTENTIAL"),
        "collect": {"games": 256, "steps": 64},
        "ppo": {"epochs": 3, "minibatch": 2048, "gae_lambda": 0.97},
        "eval": {"every_s": 90.0, "games": 512},  # whole games are long
    },
    "laser_hockey": {
        "minutes": 15.0,
        # Players who hardly move are met so seldom otherwise that nothing is learned about them.
        "opponents": ("self=1", "weak=1", "strong=1", "idle=0.3", "random=0.3"),
        "set": ("scale_observation=1",),
        "net": {"hidden": (128, 128)},
        # Fifty decisions a second: a goal is seconds away from what led to it.
        "collect": {"games": 128, "steps": 128},
        "ppo": {
            **{"epochs": 3, "minibatch": 2048, "gamma": 0.995},
            "entropy": "0%:0.001,100%:0.0001",
        },
        "eval": {"every_s": 60.0},
    },
    "cage2": {
        "minutes": 20.0,
        # Without the mask nine actions of ten do nothing.
        "set": ("mask=1", "scan_history=ALL", "decoys_left=1"),
        "net": {"hidden": (128, 128)},
        "collect": {"games": 256, "steps": 64},
        "ppo": {"epochs": 3, "minibatch": 2048, "gamma": 0.99},
        "eval": {"every_s": 60.0, "games": 1024},
    },
    "shogi": {
        "minutes": 30.0,
        "opponents": ("self=1", "random=0.3"),
        # Games are long, and what was captured says early who is ahead; all pieces together stay
        # worth less than the game, or it would rather go on collecting.
        "set": ("material=0.05",),
        "net": {"kind": "residual", "channels": 24, "blocks": 2},
        # Without a discount nothing is gained by winning soon, and won games go on and on.
        "collect": {"games": 128, "steps": 32},
        "ppo": {"epochs": 2, "minibatch": 512, "gamma": 0.99},
        "eval": {
            **{"every_s": 150.0, "games": 128, "final_games": 512},
            **{"against": ("random", "greedy", "ab2")},
        },
    },
    "tic_tac_toe": {
        "minutes": 0.4,
        "opponents": ("self=1", "random=1"),
        "net": {"hidden": (64, 64)},
        "collect": {"games": 256, "steps": 32},
        "ppo": {"epochs": 4, "minibatch": 1024, "lr": "0%:2e-3,100%:2e-4"},
    },
}
"""What suits a game better than the defaults. A file and the command line go before it."""

GPU_PRESET: dict[str, Any] = {
    "net": {"hidden": (512, 512, 256)},
    "collect": {"games": 16384, "steps": 64},
    "ppo": {"minibatch": 32768, "lr": "0%:1e-3,100%:1e-4"},
}
"""What else is better with the network on a GPU, where large batches cost little."""
GPU_PRESETS: dict[str, dict[str, Any]] = {
    "skull_king": {"ppo": {"epochs": 2}, "eval": {"every_s": 10.0}},
    "kuhhandel": {"ppo": {"epochs": 2}},
    "shogi": {
        "minutes": 7.0,
        "opponents": ("self=1", "random=0.1"),
        "set": ("material=0.2",),  # as measured; the smaller weight has not been tried here
        "net": {"channels": 128, "blocks": 6},
        "collect": {"games": 4096, "steps": 32},
        "ppo": {"minibatch": 8192, "epochs": 1, "lr": "0%:7e-4,100%:7e-5"},
        "eval": {"every_s": 40.0, "games": 256, "against": ("greedy", "ab2", "ab3")},
    },
    "tic_tac_toe": {
        "net": {"hidden": (64, 64)},
        "collect": {"games": 2048},
        "ppo": {"minibatch": 8192},
    },
}
"""And by game."""
