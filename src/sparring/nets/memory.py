"""What a network remembers of a seat between two of its decisions: bytes behind its observation."""

from __future__ import annotations

from torch import Tensor

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.inputs import MEMORY_STEP, Inputs


def memory_of(rules: Rules, net: NetConfig) -> int:
    """Return the bytes per (game, seat) that a network needs: float32 numbers, 0 without memory."""
    if not net.memory:
        return 0
    stacked = (net.frames - 1) * len(rules.features)
    numbers = net.memory_width if net.memory == "gru" else stacked
    return -(-4 * numbers // MEMORY_STEP) * MEMORY_STEP


def stacked(inputs: Inputs, obs: Tensor) -> Tensor:
    """The features of each row, then those that its memory held before, without the oldest."""
    raise ConfigError("net.memory stack is not there yet")
