"""What a network reads of a row: the game's observation, and memory behind it if there is any."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch

from sparring.errors import ConfigError
from sparring.games.rules import Feature, Rules, runs_of

MEMORY_STEP = 16
"""Memory comes in so many bytes, so that rows stay aligned."""


class Inputs:
    """The numbers of a row. Memory is float32: a goal, or the state of a recurrent network."""

    def __init__(self, rules: Rules, memory: int = 0) -> None:
        """Describe the rows of a pool with so many bytes of memory per seat."""
        if memory < 0 or memory % MEMORY_STEP:
            raise ConfigError(f"memory {memory} must be a multiple of {MEMORY_STEP} bytes")
        self.rules, self.memory = rules, memory
        self.row_bytes = rules.obs_bytes + memory

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The game's features, then those of the memory."""
        first = self.rules.obs_bytes
        held = (
            Feature(f"memory[{i}]", "float32", first + 4 * i, 1.0) for i in range(self.memory // 4)
        )
        return (*self.rules.features, *held)

    @cached_property
    def runs(self) -> list[tuple[int, int, int, int, float]]:
        """Neighbouring features of one kind, as the native core takes them."""
        return runs_of(self.features)

    def stretches(self) -> tuple[list[tuple[torch.dtype, int, int]], list[int], list[float]]:
        """Split a row by type: (dtype, from, to) stretches, feature order and divisors in them."""
        stretches, order, divisors = [], [], []
        types = {
            "uint8": torch.uint8,
            "int8": torch.int8,
            "int16": torch.int16,
            "float32": torch.float32,
        }
        game = len(self.rules.features)
        for among in (range(game), range(game, len(self.features))):
            for name, dtype in types.items():
                chosen = [i for i in among if self.features[i].dtype == name]
                if not chosen:
                    continue
                chosen.sort(key=lambda i: self.features[i].offset)
                first = self.features[chosen[0]].offset
                stretches.append((dtype, first, first + np.dtype(name).itemsize * len(chosen)))
                order += chosen
                divisors += [self.features[i].divisor for i in chosen]
        return stretches, order, divisors
