"""What a network remembers of a seat between two of its decisions: bytes behind its observation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.inputs import MEMORY_STEP, Inputs
from sparring.nets.normaliser import Normaliser


def memory_of(rules: Rules, net: NetConfig) -> int:
    """Return the bytes per (game, seat) that a network needs: float32 numbers, 0 without memory."""
    if not net.memory:
        return 0
    stacked = (net.frames - 1) * len(rules.features)
    numbers = net.memory_width if net.recurrent else stacked
    return -(-4 * numbers // MEMORY_STEP) * MEMORY_STEP


def room_for(rules: Rules, net: NetConfig, memory: int) -> int:
    """Return the bytes behind the observations of a network, of which a pool has so many.

    A network that remembers has all of them for itself; 0: as many as it needs.
    """
    needed = memory_of(rules, net)
    if needed and memory not in (0, needed):
        raise ConfigError(
            f"rows have {memory} bytes of memory and net.memory {net.memory} needs {needed}; "
            f"make the pool with memory={needed}"
        )
    return needed or memory


def held(inputs: Inputs, obs: Tensor) -> Tensor:
    """The numbers that lie behind the observation of each row [rows, memory / 4]."""
    first = inputs.rules.obs_bytes
    return obs[:, first : inputs.row_bytes].contiguous().view(torch.float32)


def stacked(
    inputs: Inputs, obs: Tensor, frames: int, normaliser: Normaliser | None = None
) -> Tensor:
    """The features of each row, then those that its memory held before, without the oldest.

    Features are numbers as the first layer reads them, in the order of the rules; what was not
    seen yet in this game is 0, and so is what memory is filled up with.
    """
    before = held(inputs, obs)
    numbers = inputs.numbers(obs, normaliser)
    features = numbers.shape[1]
    older = before[:, : (frames - 2) * features]
    filled = before.shape[1] - (frames - 1) * features
    return functional.pad(torch.cat((numbers, older), 1), (0, filled))
