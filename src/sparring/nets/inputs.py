"""Layout of a network's input row: the game's observation, followed by memory if there is any.

Torch is imported where tensors are read: the layout is needed without it, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sparring.config import NetConfig
from sparring.errors import ConfigError, suggestion
from sparring.games.features import Feature, FeatureBlock, runs_of
from sparring.games.rules import Rules
from sparring.pools.custom.cache import pixels_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

MEMORY_STEP = 16
"""Memory sizes are multiples of this many bytes, so that rows stay aligned."""


class Inputs:
    """Features of a row. Memory is float32: a goal, or the state of a recurrent network."""

    def __init__(self, rules: Rules, memory: int = 0, block_names: Sequence[str] = ()) -> None:
        """Describe the rows of a pool.

        memory: bytes of memory per seat.
        block_names: the blocks that the network reads, `NAME?` for one that not every set of flags
            has; empty: all of them. Other features count as 0 and keep their index; memory is
            always read.
        """
        if memory < 0 or memory % MEMORY_STEP:
            raise ConfigError(f"memory {memory} must be a multiple of {MEMORY_STEP} bytes")
        self.rules, self.memory = rules, memory
        self.row_bytes = rules.obs_bytes + memory
        self.blocks = select_blocks(rules, block_names)
        """The blocks that the network reads."""
        self._order_of: dict[torch.device, tuple[Tensor | None, Tensor]] = {}

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The game's features, then those of the memory."""
        first = self.rules.obs_bytes
        memory = (
            Feature(f"memory[{i}]", "float32", first + 4 * i, 1.0) for i in range(self.memory // 4)
        )
        return (*self.rules.features, *memory)

    @cached_property
    def runs(self) -> list[tuple[int, int, int, int, float]]:
        """Neighboring features of one type, in the format of the native core."""
        return runs_of(self.features, self.used_features)

    @cached_property
    def used_features(self) -> dict[int, None] | None:
        """Indices of the features that the network reads, in order; None: all of them."""
        if len(self.blocks) == len(self.rules.blocks):
            return None
        ranges = [range(b.first, b.first + b.rows * len(b.columns)) for b in self.blocks]
        memory = range(len(self.rules.features), len(self.features))
        return dict.fromkeys(index for part in (*ranges, memory) for index in part)

    def byte_ranges(self) -> tuple[list[tuple[torch.dtype, int, int]], list[int], list[float]]:
        """Return `typed_ranges` with the types of torch."""
        import torch

        ranges, order, divisors = self.typed_ranges()
        return [(getattr(torch, name), *where) for name, *where in ranges], order, divisors

    def typed_ranges(self) -> tuple[list[tuple[str, int, int]], list[int], list[float]]:
        """Split a row by type: (type, first byte, end) ranges, their features and divisors.

        Features that the network does not read are divided by infinity.
        """
        ranges, order, divisors = [], [], []
        game = len(self.rules.features)
        for part in (range(game), range(game, len(self.features))):
            for name in ("uint8", "int8", "int16", "float32"):
                indices = [i for i in part if self.features[i].dtype == name]
                if not indices:
                    continue
                indices.sort(key=lambda i: self.features[i].offset)
                first = self.features[indices[0]].offset
                ranges.append((name, first, first + np.dtype(name).itemsize * len(indices)))
                order += indices
                divisors += [self.divisor(i) for i in indices]
        return ranges, order, divisors

    def numbers(self, obs: Tensor, normalize: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Return the observation's features of byte rows as float32, without memory.

        normalize: applied to the features in the order of their bytes, as first layers do.
        """
        import torch

        order, divisors = self._order_on(obs.device)
        ranges = self.observation_ranges
        parts = [obs[:, a:b].contiguous().view(dtype).float() for dtype, a, b in ranges]
        numbers = torch.cat(parts, dim=1) / divisors
        if normalize is not None:
            numbers = normalize(numbers)
        return numbers if order is None else numbers[:, order]

    @cached_property
    def observation_ranges(self) -> list[tuple[torch.dtype, int, int]]:
        """The `byte_ranges` of the observation, without memory."""
        return [part for part in self.byte_ranges()[0] if part[1] < self.rules.obs_bytes]

    def _order_on(self, device: torch.device) -> tuple[Tensor | None, Tensor]:
        """Return the permutation from byte order to feature order (None: identity), and divisors.

        They are cached: a CUDA graph copies nothing from the host.
        """
        import torch

        if device not in self._order_of:
            count = len(self.rules.features)
            _, byte_order, divided = self.byte_ranges()
            indices = np.argsort(byte_order[:count])
            in_order = bool((indices == np.arange(count)).all())
            divisors = torch.tensor(divided[:count], device=device)
            order = None if in_order else torch.from_numpy(indices).to(device)
            self._order_of[device] = order, divisors
        return self._order_of[device]

    def divisor(self, feature: int) -> float:
        unused = self.used_features is not None and feature not in self.used_features
        return math.inf if unused else self.features[feature].divisor


def select_blocks(rules: Rules, names: Sequence[str]) -> tuple[FeatureBlock, ...]:
    """Return the blocks of these names, in the order of the observation."""
    known = {block.name for block in rules.blocks}
    for name in names:
        if not name.endswith("?") and name not in known:
            raise ConfigError(
                f"net.inputs: {rules.name} has no block {name!r}{suggestion(name, known)}"
            )
    wanted = {name.removesuffix("?") for name in names}
    blocks = tuple(block for block in rules.blocks if not names or block.name in wanted)
    if not blocks:
        raise ConfigError(f"net.inputs {' '.join(names)}: {rules.name} has none of them now")
    return blocks


def memory_bytes_of(rules: Rules, net: NetConfig) -> int:
    """Return the bytes of memory per (game, seat) of a network; 0 without memory."""
    if not net.memory:
        return 0
    used = 4 * net.memory_width if net.recurrent else (net.frames - 1) * frame_bytes(rules, net)
    return -(-used // MEMORY_STEP) * MEMORY_STEP


def frame_bytes(rules: Rules, net: NetConfig) -> int:
    """Return the bytes of a stacked observation: pixels as they come, other features as floats."""
    pixels = pixels_of(rules) if net.reads_pixels else None
    return pixels.count if pixels else 4 * len(rules.features)


def fit_memory_bytes(rules: Rules, net: NetConfig, memory: int) -> int:
    """Return the bytes of memory in a network's rows; raise if the pool's do not fit.

    memory: bytes in the pool's rows, 0 for as many as the network needs.
    """
    needed = memory_bytes_of(rules, net)
    if needed and memory not in (0, needed):
        raise ConfigError(
            f"rows have {memory} bytes of memory and net.memory {net.memory} needs {needed}; "
            f"make the pool with memory={needed}"
        )
    return needed or memory


def read_memory(inputs: Inputs, obs: Tensor) -> Tensor:
    """Return the memory of each row as float32 [rows, memory / 4]."""
    import torch

    first = inputs.rules.obs_bytes
    return obs[:, first : inputs.row_bytes].contiguous().view(torch.float32)


def stack_frames(
    inputs: Inputs,
    obs: Tensor,
    frames: int,
    normalize: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Return each row's features followed by the frames in its memory, without the oldest.

    Features are scaled as for the first layer, in the order of the rules; frames before the start
    of the game and the padding are 0.
    """
    import torch

    memory = read_memory(inputs, obs)
    numbers = inputs.numbers(obs, normalize)
    features = numbers.shape[1]
    older = memory[:, : (frames - 2) * features]
    padding = memory.shape[1] - (frames - 1) * features
    return torch.nn.functional.pad(torch.cat((numbers, older), 1), (0, padding))
