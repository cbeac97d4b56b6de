"""How my_game is trained unless it is told otherwise."""

from typing import Any

PRESET: dict[str, Any] = {
    "minutes": 0.5,
    "opponents": ("self=1", "random=1"),
    "net": {"hidden": (64, 64)},
    "collect": {"games": 256, "steps": 32},
    "ppo": {"epochs": 4, "minibatch": 1024, "lr": "0%:2e-3,100%:2e-4"},
}
