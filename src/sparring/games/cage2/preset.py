"""How CAGE-2 is trained unless it is told otherwise."""

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
