"""How Skull King is trained unless it is told otherwise."""

from typing import Any

PRESET: dict[str, Any] = {
    "opponents": ("self=1", "captain=1"),
    # Rounds are scored apart, so no decision has to answer for the rounds after its own.
    "collect": {"games": 256, "steps": 64},
    "ppo": {"epochs": 3, "minibatch": 2048, "gamma_into": (0, 1)},
}
GPU_PRESET: dict[str, Any] = {"ppo": {"epochs": 2}, "eval": {"every_s": 10.0}}
"""What else is better with the network on a GPU."""
