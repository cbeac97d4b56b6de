"""What suits a game better than the defaults of `sparring train`.

A game that has something to say has a `preset.py` in its folder, with a `PRESET` and, for what else
is better with the network on a GPU, a `GPU_PRESET`. A file and the command line go before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparring.games.lookup import game_module

GPU_PRESET: dict[str, Any] = {
    "net": {"hidden": (512, 512, 256)},
    "collect": {"games": 16384, "steps": 64},
    "ppo": {"minibatch": 32768, "lr": "0%:1e-3,100%:1e-4"},
}
"""What else is better with the network on a GPU, where large batches cost little."""


LEAGUES: dict[str, dict[str, Any]] = {
    "": {},
    "generations": {"opponents": ("past=1",), "league": {"choose": "uniform"}},
}
"""Whole ways to play against one's past, by the names of league.preset."""


def preset_of(game: str, *, gpu: bool = False) -> Mapping[str, Any]:
    """Return what a game's preset says; nothing if it has none."""
    preset: Mapping[str, Any] = getattr(
        game_module(game, "preset"), "GPU_PRESET" if gpu else "PRESET", {}
    )
    return preset
